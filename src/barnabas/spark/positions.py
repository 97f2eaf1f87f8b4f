"""Positions in topics as options and checkpoints write them: JSON by topic and partition.

In: the texts of options such as `startingOffsets`, dicts of checkpoints. Out: a value for each partition, and
back. An error names the option and what is wrong in it. Does not know: clusters, Spark.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from barnabas.client.core.topology import TopicPartition
from barnabas.spark.basics.settings import OptionError

LATEST = -1
EARLIEST = -2
EXAMPLE = '{"topic": {"0": 23, "1": -2}}'
Offsets = dict[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class At:
    """The position at which reading begins or ends: one of four kinds."""

    option: str
    special: int | None = None  # EARLIEST or LATEST, for all partitions
    offsets: tuple[tuple[TopicPartition, int], ...] | None = None
    timestamp_ms: int | None = None
    timestamps_ms: tuple[tuple[TopicPartition, int], ...] | None = None
    falls_back_to_latest: bool = False  # where no record is as young as the timestamp


def to_checkpoint(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """As Spark's connector writes them, so that people can read them."""
    found: dict[str, dict[str, int]] = {}
    for place in sorted(offsets):
        found.setdefault(place.topic, {})[str(place.partition)] = offsets[place]
    return found


def from_checkpoint(offsets: Mapping[str, Mapping[str, int]]) -> Offsets:
    return {
        TopicPartition(topic, int(partition)): int(offset)
        for topic, partitions in offsets.items()
        for partition, offset in partitions.items()
    }


def parse_positions(text: str, option: str) -> dict[TopicPartition, int]:
    """`{"topic": {"0": 23}}`."""
    found: dict[TopicPartition, int] = {}
    for topic, partitions in parse_object(text, option, EXAMPLE).items():
        if not isinstance(partitions, dict):
            raise wrong(option, text, EXAMPLE)
        for partition, value in partitions.items():
            if not (partition.isascii() and partition.isdigit()) or type(value) is not int:
                raise wrong(option, text, EXAMPLE)
            found[TopicPartition(topic, int(partition))] = value
    if not found:
        raise wrong(option, text, EXAMPLE)
    return found


def parse_assignment(text: str, option: str) -> list[TopicPartition]:
    """`{"topicA": [0, 1], "topicB": [2, 4]}`."""
    example = '{"topicA": [0, 1], "topicB": [2]}'
    found = []
    for topic, partitions in parse_object(text, option, example).items():
        if not isinstance(partitions, list) or not all(type(each) is int for each in partitions):
            raise wrong(option, text, example)
        found += [TopicPartition(topic, partition) for partition in partitions]
    if not found:
        raise OptionError(f"the option {option} names no partition")
    return sorted(set(found))


def parse_object(text: str, option: str, example: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        raise wrong(option, text, example) from None
    if not isinstance(found, dict):
        raise wrong(option, text, example)
    return found


def wrong(option: str, text: str, example: str) -> OptionError:
    return OptionError(f"the option {option} is {text!r}, it must look like {example}")
