"""A host for one shard in tests: applies and stores records, writes markers, moves the clock.

Every request, response and record goes through its bytes, as on the wire. Markers are written at once, or
wait in `unwritten` when `holds_markers` is set.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from barnabas.metadata.features import FeaturesImage
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.topic_changes import NO_CHANGES
from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.transactions.outcome import Caller, Markers, TopicPartition, TransactionOutcome
from barnabas.transactions.records import Entry, decode, encode
from barnabas.transactions.settings import TransactionSettings
from barnabas.transactions.shard import TransactionShard
from barnabas.transactions.states import State
from groups.host import image_of, on_the_wire

START_MS = 1_700_000_000_000
EPOCH_OF_COORDINATOR = 3
OFFSETS_TOPIC = "__consumer_offsets"


class Ids:
    """A source of producer ids; it is exhausted while `is_dry`."""

    def __init__(self) -> None:
        self.next = 1000
        self.is_dry = False

    def pop(self) -> int:
        if self.is_dry:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        self.next += 1
        return self.next - 1


class Host:
    def __init__(
        self,
        settings: TransactionSettings | None = None,
        topics: Mapping[str, int] | None = None,
        transaction_version: int = 2,
    ) -> None:
        self.settings = settings or TransactionSettings()
        self.now_ms = START_MS
        self.ids = Ids()
        self.topics = dict(topics or {})
        self.transaction_version = transaction_version
        self.image = self.make_image()
        self.coordinator_epoch = EPOCH_OF_COORDINATOR
        self.log: list[tuple[bytes, bytes | None]] = []
        self.new_records: list[Entry] = []
        self.holds_markers = False
        self.unwritten: list[Markers] = []
        self.new_markers: list[Markers] = []
        self.shard = self.replayed()

    def make_image(self) -> MetadataImage:
        finalized = {"transaction.version": self.transaction_version} if self.transaction_version else {}
        topics = image_of({OFFSETS_TOPIC: 1, **self.topics}).topics
        return MetadataImage(topics=topics, features=FeaturesImage(finalized))

    def ask(self, request: Message, version: int) -> Message:
        request = type(request).decode(request.encode(version), version)
        may_take = self.shard.needs_producer_id(request)
        next_id = self.ids.next
        outcome = self.shard.handle(request, Caller(version), self.image, self.now_ms, self.ids)
        assert outcome.reply is not None and outcome.waiting_token is None and not outcome.responses
        assert self.ids.next - next_id <= may_take, "an id was taken without a word"
        self.take(outcome)
        return on_the_wire(outcome.reply, version)

    def take(self, outcome: TransactionOutcome) -> None:
        for entry in outcome.records:
            key, value = encode(entry)
            self.log.append((key, value))
            replayed = decode(key, value)
            assert replayed is not None
            assert replayed == entry or entry.version == 0
            self.shard.apply(entry)
        self.new_records += outcome.records
        self.new_markers += outcome.markers
        self.unwritten += outcome.markers
        if not self.holds_markers:
            self.write_markers()

    def write_markers(self, partitions: Collection[TopicPartition] | None = None) -> None:
        """Write the markers to their partitions: all, or the given ones."""
        unwritten, self.unwritten = self.unwritten, []
        for markers in unwritten:
            done = [each for each in markers.partitions if partitions is None or each in partitions]
            outcomes = self.shard.markers_written(
                markers.transactional_id, markers.producer_id, markers.producer_epoch, done, self.now_ms
            )
            for outcome in outcomes:
                self.take(outcome)
            transaction = self.shard.transactions.get(markers.transactional_id)
            if transaction is not None and transaction.state.is_prepared:
                self.unwritten.append(markers)

    def advance(self, ms: int) -> None:
        """Advance time. Timers that are due on the way run at their time."""
        end_ms = self.now_ms + ms
        while (due_ms := self.shard.next_deadline_ms()) is not None and due_ms <= end_ms:
            self.now_ms = max(self.now_ms, due_ms)
            for outcome in self.shard.on_timer(self.now_ms, self.image, self.ids):
                self.take(outcome)
        self.now_ms = end_ms

    def replayed(self) -> TransactionShard:
        """Another shard with the same log, before `loaded`."""
        shard = TransactionShard(self.settings, self.coordinator_epoch, self.now_ms, lambda group: 0)
        for key, value in self.log:
            entry = decode(key, value)
            assert entry is not None
            shard.apply(entry)
        return shard

    def restart(self) -> None:
        """Replay the shard from its log, with a new coordinator epoch."""
        assert not self.shard.unload()
        self.coordinator_epoch += 1
        self.unwritten.clear()
        self.shard = self.replayed()
        for outcome in self.shard.loaded(self.now_ms):
            self.take(outcome)
        self.shard.metadata_changed(self.image, NO_CHANGES, self.now_ms)


def durable(shard: TransactionShard) -> dict[str, tuple[object, ...]]:
    """The recorded state of each id."""
    return {
        each.transactional_id: (
            State(each.state),
            each.producer_id,
            each.producer_epoch,
            each.previous_producer_id,
            each.next_producer_id,
            each.timeout_ms,
            tuple(each.partitions),
            each.start_ms,
            each.update_ms,
            each.client_version,
        )
        for each in shard.transactions.values()
    }
