"""Produce: batches with a right checksum and records that are not. Our broker validates strictly here (see
`conftest.ALIKE`), as Apache Kafka always does."""

from __future__ import annotations

from barnabas.protocol import ApiKey
from barnabas.records.compression import Compression
from poisoned_batches import CODECS, UNCOMPRESSED, compressed

from ..requests import produce
from ..talk import Talk, scenario


def ask_all(talk: Talk, batches: dict[str, bytes], suffix: str = "topic", **configs: str) -> None:
    """A partition for each batch: whether one is stored shows in no other's offset."""
    topic = talk.topic(suffix, partitions=len(batches), **configs)
    for partition, (label, data) in enumerate(batches.items()):
        talk.ask(f"{suffix}: {label}", ApiKey.PRODUCE, 9, **produce(talk, topic, {partition: data}))


@scenario
def records_that_are_none(talk: Talk) -> None:
    ask_all(talk, UNCOMPRESSED)


@scenario
def records_that_are_none_in_a_compacted_topic(talk: Talk) -> None:
    ask_all(talk, UNCOMPRESSED, cleanup_policy="compact")


@scenario
def records_that_are_none_where_the_broker_stamps_them(talk: Talk) -> None:
    ask_all(talk, UNCOMPRESSED, message_timestamp_type="LogAppendTime")


@scenario
def records_that_are_none_where_the_broker_compresses_them(talk: Talk) -> None:
    ask_all(talk, UNCOMPRESSED, compression_type="lz4")


@scenario
def records_that_are_none_behind_a_codec(talk: Talk) -> None:
    for codec in CODECS:
        ask_all(talk, compressed(codec), codec.name)


@scenario
def records_that_are_none_behind_another_codec(talk: Talk) -> None:
    ask_all(talk, compressed(Compression.LZ4), compression_type="zstd")
