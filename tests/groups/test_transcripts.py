"""Transcripts of classic groups and of offsets, run against one shard."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from barnabas.groups.basics.settings import GroupSettings
from barnabas.protocol import Message
from barnabas.protocol.log_records.consumer_offsets import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from replication.transcript import replay

from .conversation import Conversation, Words
from .host import Host, topic_id

TRANSCRIPTS = sorted((Path(__file__).parent / "transcripts").glob("*.txt"))
TOPICS = {"t": 3, "u": 2}


class ShardSide:
    """Serves the requests of a transcript with our shard. Due timers run at once, as in a host."""

    def __init__(self, settings: GroupSettings) -> None:
        self.host = Host(settings, TOPICS)

    def ask(self, client: str, request: Message, version: int) -> Message | None:
        answer = self.host.ask(client, request, version)
        self.host.advance(0)
        return answer if answer is not None else self.host.answers.pop(client, None)

    def heard(self) -> dict[str, Message]:
        found = dict(self.host.answers)
        self.host.answers.clear()
        return found

    def topic_id(self, name: str) -> bytes:
        return topic_id(name)


class ShardTranscript:
    """Runs commands for the shard itself, passes all others to the conversation, and shows records."""

    def __init__(self) -> None:
        self.begin({})

    def begin(self, words: Words) -> None:
        values: dict[str, Any] = {name: int(value) for name, value in words.items()}
        self.side = ShardSide(GroupSettings(**{"initial_rebalance_delay_ms": 0, **values}))
        self.talk = Conversation(self.side)

    def answer(self, verb: str, words: Words) -> str:
        host = self.side.host
        said = []
        if verb == "begin":
            self.begin(words)
        elif verb == "wait":
            host.advance(int(words["ms"]))
            said = self.talk.overheard()
        elif verb == "restart":
            changes: dict[str, Any] = {name: int(value) for name, value in words.items()}
            host.settings = replace(host.settings, **changes)
            host.restart()
            said = self.talk.overheard()
        elif verb == "topics":
            host.change_topics({name: int(count) for name, count in words.items()})
        else:
            said = [self.talk.answer(verb, words)]
        records = [self.record(entry.key, entry.value) for entry in host.new_records]
        host.new_records.clear()
        return "\n".join([*records, *said]) or ("silence" if verb == "wait" else "")

    def record(self, key: Message, value: Message | None) -> str:
        name = self.talk.name
        if isinstance(key, OffsetCommitKey):
            where = f"  offset {key.group} {key.topic}:{key.partition}"
            return f"{where} {value.offset}" if isinstance(value, OffsetCommitValue) else f"{where} gone"
        assert isinstance(key, GroupMetadataKey)
        if not isinstance(value, GroupMetadataValue):
            return f"  group {key.group} gone"
        members = [f" {name(member.member_id)}({member.assignment.decode()})" for member in value.members]
        shown = f"  group {key.group} generation {value.generation} {value.protocol or '-'}"
        return shown + "".join(members)


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_the_shard_behaves_as_its_transcript_says(path: Path) -> None:
    replay(path, ShardTranscript().answer)


def test_there_are_transcripts() -> None:
    assert len(TRANSCRIPTS) >= 5
