"""Transcripts of transactions, run against one shard."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from barnabas.protocol import Message
from barnabas.transactions.outcome import TopicPartition
from barnabas.transactions.records import Entry, decode, encode
from barnabas.transactions.settings import TransactionSettings
from barnabas.transactions.states import State
from replication.transcript import replay

from .conversation import Conversation, Words
from .host import Host

TRANSCRIPTS = sorted((Path(__file__).parent / "transcripts").glob("*.txt"))
TOPICS = {"t": 3, "u": 2}


class ShardSide:
    """Serves the requests of a transcript with our shard."""

    def __init__(self, settings: TransactionSettings, transaction_version: int) -> None:
        self.host = Host(settings, TOPICS, transaction_version)

    def ask(self, client: str, request: Message, version: int) -> Message:
        return self.host.ask(request, version)


class ShardTranscript:
    """Runs commands for the shard itself, passes all others to the conversation, and shows records."""

    def __init__(self) -> None:
        self.begin({})

    def begin(self, words: Words) -> None:
        values: dict[str, Any] = {name: int(value) for name, value in words.items()}
        level = values.pop("transaction_version", 2)
        self.side = ShardSide(TransactionSettings(**values), level)
        self.talk = Conversation(self.side)

    def answer(self, verb: str, words: Words) -> str:
        host = self.side.host
        said = []
        if verb == "begin":
            self.begin(words)
        elif verb == "wait":
            host.advance(int(words["ms"]))
        elif verb == "restart":
            changes: dict[str, Any] = {name: int(value) for name, value in words.items()}
            host.settings = replace(host.settings, **changes)
            host.restart()
        elif verb == "hold":
            host.holds_markers = True
        elif verb == "mark":
            host.holds_markers = False
            host.write_markers(partitions(words["partitions"]) if "partitions" in words else None)
        elif verb == "exhaust":
            self.exhaust(words)
        elif verb == "dry":
            host.ids.is_dry = words["ids"] == "yes"
        else:
            said = [self.talk.answer(verb, words)]
        records = [self.record(entry) for entry in host.new_records]
        markers = [
            f"  markers {'commit' if each.is_commit else 'abort'} {self.talk.name(each.producer_id)} "
            f"epoch {each.producer_epoch} version {each.transaction_version} "
            f"coordinator {each.coordinator_epoch} {shown(each.partitions)}"
            for each in host.new_markers
        ]
        host.new_records.clear()
        host.new_markers.clear()
        return "\n".join([*records, *markers, *said]) or ("silence" if verb == "wait" else "")

    def exhaust(self, words: Words) -> None:
        """Write a record that leaves an id few epochs, as after many transactions."""
        host = self.side.host
        name, epoch = words.get("id", "tx"), int(words["epoch"])
        key, value, version = next(
            entry for entry in map(decoded, reversed(host.log)) if entry.key.transactional_id == name
        )
        assert value is not None
        value.producer_epoch = epoch
        entry = Entry(key, value, version)
        host.shard.apply(entry)
        host.log.append(encode(entry))
        client = words.get("as", "a")
        self.talk.own[client] = (value.producer_id, epoch)

    def record(self, entry: Entry) -> str:
        value, name = entry.value, self.talk.name
        if value is None:
            return f"  {entry.key.transactional_id} gone"
        parts = [
            TopicPartition(topic.topic, number)
            for topic in value.transaction_partitions or ()
            for number in topic.partition_ids
        ]
        shown_value = (
            f"  {entry.key.transactional_id} {State(value.transaction_status).label} "
            f"{name(value.producer_id)} epoch {value.producer_epoch} {shown(parts)}"
        )
        if value.previous_producer_id not in (value.producer_id, -1):
            shown_value += f" was {name(value.previous_producer_id)}"
        if value.next_producer_id >= 0:
            shown_value += f" then {name(value.next_producer_id)}"
        return shown_value + f" v{value.client_transaction_version}" * (value.client_transaction_version > 0)


def decoded(record: tuple[bytes, bytes | None]) -> Entry:
    entry = decode(*record)
    assert entry is not None
    return entry


def partitions(text: str) -> list[TopicPartition]:
    return [
        TopicPartition(topic, int(number)) for topic, number in (each.split(":") for each in text.split(","))
    ]


def shown(parts: Any) -> str:
    return "[" + " ".join(sorted(f"{topic}:{number}" for topic, number in parts)) + "]"


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_the_shard_behaves_as_its_transcript_says(path: Path) -> None:
    replay(path, ShardTranscript().answer)


def test_there_are_transcripts() -> None:
    assert len(TRANSCRIPTS) >= 5
