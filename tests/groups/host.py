"""A host for one shard in tests: applies and stores records, keeps the responses, moves the clock.

Every request and record goes through its bytes, as on the wire. A token that gets two responses, or that no
request waits with, is a failure.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

from barnabas.groups.basics.outcome import Caller, Outcome, StateCall, Token
from barnabas.groups.basics.records import Entry, decode, encode
from barnabas.groups.basics.settings import GroupSettings
from barnabas.groups.shard import GroupShard
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.difference import difference
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.partitions import PartitionRegistration
from barnabas.metadata.steps import at_once
from barnabas.metadata.topic_changes import NO_CHANGES, TopicChanges, topic_changes
from barnabas.metadata.topics import TopicImage, TopicsImage
from barnabas.protocol import Message

START_MS = 1_000_000


class Host:
    def __init__(
        self, settings: GroupSettings | None = None, topics: Mapping[str, int] | None = None, seed: int = 1
    ) -> None:
        self.settings = settings or GroupSettings(initial_rebalance_delay_ms=0)
        self.rng = random.Random(seed)
        self.now_ms = START_MS
        self.image = image_of(topics or {})
        self.log: list[tuple[bytes, bytes | None]] = []
        self.waiting: dict[Token, tuple[str, int]] = {}
        self.answers: dict[str, Message] = {}
        self.new_records: list[Entry] = []
        self.state_calls: list[StateCall] = []  # requests to share coordinators
        self.shard = GroupShard(self.settings, self.rng, self.now_ms)
        self.shard.loaded(self.now_ms)
        self.shard.metadata_changed(self.image, NO_CHANGES, self.now_ms)

    def ask(self, client: str, request: Message, version: int) -> Message | None:
        """The response, or None when the client has to wait; then it comes in `answers`."""
        request = type(request).decode(request.encode(version), version)
        caller = Caller(client, "/127.0.0.1", version)
        outcome = self.shard.handle(request, caller, self.image, self.now_ms)
        assert (outcome.reply is None) != (outcome.waiting_token is None)
        if outcome.waiting_token is not None:
            assert outcome.waiting_token not in self.waiting
            self.waiting[outcome.waiting_token] = (client, version)
        self.take(outcome)
        return None if outcome.reply is None else on_the_wire(outcome.reply, version)

    def take(self, outcome: Outcome) -> None:
        for entry in outcome.records:
            key, value = encode(entry)
            self.log.append((key, value))
            replayed = decode(key, value)
            assert replayed == entry
            self.shard.apply(entry)
        self.new_records += outcome.records
        self.state_calls += outcome.state_calls
        for token, message in outcome.responses:
            client, version = self.waiting.pop(token)
            self.answers[client] = on_the_wire(message, version)

    def advance(self, ms: int) -> None:
        """Advance time. Timers that are due on the way run at their time."""
        end_ms = self.now_ms + ms
        while (due_ms := self.shard.next_deadline_ms()) is not None and due_ms <= end_ms:
            self.now_ms = max(self.now_ms, due_ms)
            for outcome in self.shard.on_timer(self.now_ms, self.image):
                self.take(outcome)
        self.now_ms = end_ms

    def change_topics(self, topics: Mapping[str, int]) -> None:
        self.change_image(image_of(topics))
        self.advance(0)

    def change_image(self, image: MetadataImage) -> None:
        changes = changes_between(self.image, image)
        self.image = image
        for outcome in self.shard.metadata_changed(image, changes, self.now_ms):
            self.take(outcome)

    def replayed(self) -> GroupShard:
        """Another shard with the same log, before `loaded`."""
        shard = GroupShard(self.settings, self.rng, self.now_ms)
        for key, value in self.log:
            entry = decode(key, value)
            assert entry is not None
            shard.apply(entry)
        return shard

    def restart(self) -> None:
        """Replay the shard from its log, as another coordinator would."""
        for token, message in self.shard.unload():
            client, version = self.waiting.pop(token)
            self.answers[client] = on_the_wire(message, version)
        assert not self.waiting
        self.shard = self.replayed()
        at_once(self.shard.replayed(self.now_ms))
        self.shard.loaded(self.now_ms)
        self.shard.metadata_changed(self.image, NO_CHANGES, self.now_ms)


def changes_between(before: MetadataImage, after: MetadataImage) -> TopicChanges:
    delta = MetadataDelta(before)
    delta.replay_all(difference(before, after))
    return NO_CHANGES if delta.topics is None else topic_changes(delta.topics)


def on_the_wire(message: Message, version: int) -> Message:
    return type(message).decode(message.encode(version), version)


def topic_id(name: str) -> bytes:
    return name.encode().rjust(16, b"\1")


def image_of(topics: Mapping[str, int]) -> MetadataImage:
    images = {
        name: TopicImage(name, topic_id(name), {number: partition() for number in range(count)})
        for name, count in topics.items()
    }
    return MetadataImage(topics=TopicsImage({image.id: image for image in images.values()}, images))


def partition() -> PartitionRegistration:
    return PartitionRegistration(replicas=(1,), directories=(b"\0" * 16,), isr=(1,), leader=1)
