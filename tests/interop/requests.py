"""The bodies of common requests, so that a scenario says only what is special about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from barnabas.protocol import NULL_UUID, ApiKey
from barnabas.protocol.apis import APIS
from barnabas.records.record import Record, build_batch

from .talk import Talk

BASE_TIME_MS = 1_700_000_000_000
"""Every record that says nothing else is from November 2023, a millisecond after the one before it."""


def versions(api: ApiKey) -> range:
    """Every version that Apache Kafka 4.3.1 serves."""
    served = APIS[api].versions
    return range(served.first, served.last + 1)


def batch(
    *values: bytes | None, key: bytes | None = None, time_ms: int = BASE_TIME_MS, **fields: Any
) -> bytes:
    """One batch; `fields` as for `build_batch`."""
    records = [Record(timestamp=time_ms + n, key=key, value=value) for n, value in enumerate(values)]
    return bytes(build_batch(records, **fields))


def produce(
    talk: Talk,
    topic: str,
    records: bytes | Mapping[int, bytes | None] | None,
    acks: int = -1,
    topic_id: bytes | None = None,
    transactional_id: str | None = None,
) -> dict[str, Any]:
    """A Produce request to one topic: partition 0, or a mapping of partitions."""
    partitions = records if isinstance(records, Mapping) else {0: records}
    return {
        "acks": acks,
        "timeout_ms": 30_000,
        "transactional_id": transactional_id,
        "topic_data": [
            {
                "name": topic,
                "topic_id": topic_id if topic_id is not None else talk.topic_ids.get(topic, NULL_UUID),
                "partition_data": [{"index": index, "records": data} for index, data in partitions.items()],
            }
        ],
    }


def fetch(
    talk: Talk,
    topics: Mapping[str, Sequence[Mapping[str, Any]]],
    *,
    forget: Mapping[str, Sequence[int]] | None = None,
    topic_ids: Mapping[str, bytes] | None = None,
    **fields: Any,
) -> dict[str, Any]:
    """A Fetch request: per topic, partitions as dicts of which `partition` and `fetch_offset` matter most."""
    ids = {**talk.topic_ids, **(topic_ids or {})}
    defaults: dict[str, Any] = {
        "max_wait_ms": 0,
        "min_bytes": 0,
        "max_bytes": 50_000_000,
        "session_epoch": -1,
    }
    return {
        **defaults,
        **fields,
        "topics": [
            {
                "topic": name,
                "topic_id": ids.get(name, NULL_UUID),
                "partitions": [
                    {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1_000_000, **partition}
                    for partition in partitions
                ],
            }
            for name, partitions in topics.items()
        ],
        "forgotten_topics_data": [
            {"topic": name, "topic_id": ids.get(name, NULL_UUID), "partitions": list(partitions)}
            for name, partitions in (forget or {}).items()
        ],
    }
