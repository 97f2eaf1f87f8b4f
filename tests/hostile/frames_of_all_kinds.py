"""Hostile frames without end: random bytes, and requests of every API with something wrong in them."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterable, Iterator

from barnabas.protocol import ApiKey
from barnabas.protocol.apis import APIS, request_class, request_header_version
from interop.frames import framed, request
from interop.plain import fill
from interop.requests import batch

NOWHERE = "not a name"
"""Requests that make or change something name this: however they are mutated, they are refused."""


def valid_requests(keys: Iterable[int]) -> list[bytes]:
    """Requests of these APIs in every version, without the size in front."""
    found = []
    for key in sorted(keys):
        api = APIS[key]
        for version in range(api.versions.first, api.versions.last + 1):
            for values in contents(ApiKey(key)):
                body = fill(request_class(key), values, version).encode(version)
                found.append(request(key, version, request_header_version(key, version), 7, body))
    return found


def contents(api: ApiKey) -> list[dict[str, object]]:
    """Interesting bodies; every API also gets the one of defaults."""
    place = {"partition_index": 0, "timestamp": -1}
    special: dict[ApiKey, dict[str, object]] = {
        ApiKey.PRODUCE: {
            "acks": 1,
            "timeout_ms": 100,
            "transactional_id": None,
            "topic_data": [
                {
                    "name": "hostile",
                    "partition_data": [{"index": 0, "records": batch(b"one", b"two", key=b"k")}],
                }
            ],
        },
        ApiKey.FETCH: {
            "max_wait_ms": 10,
            "min_bytes": 1,
            "topics": [{"topic": "hostile", "partitions": [{"partition": 0, "partition_max_bytes": 1_000}]}],
        },
        ApiKey.LIST_OFFSETS: {"replica_id": -1, "topics": [{"name": "hostile", "partitions": [place]}]},
        ApiKey.METADATA: {"topics": [{"name": "hostile"}], "allow_auto_topic_creation": False},
        ApiKey.CREATE_TOPICS: {"topics": [{"name": NOWHERE, "num_partitions": 1, "replication_factor": 1}]},
        ApiKey.DELETE_TOPICS: {"topics": [{"name": NOWHERE}], "topic_names": [NOWHERE]},
        ApiKey.CREATE_PARTITIONS: {"topics": [{"name": NOWHERE, "count": 2, "assignments": None}]},
        ApiKey.DESCRIBE_CONFIGS: {
            "resources": [{"resource_type": 2, "resource_name": "hostile", "configuration_keys": None}]
        },
        ApiKey.INIT_PRODUCER_ID: {"transactional_id": None, "transaction_timeout_ms": 1_000},
        ApiKey.DESCRIBE_TOPIC_PARTITIONS: {"topics": [{"name": "hostile"}]},
        ApiKey.DESCRIBE_PRODUCERS: {"topics": [{"name": "hostile", "partition_indexes": [0]}]},
        ApiKey.DESCRIBE_LOG_DIRS: {"topics": [{"topic": "hostile", "partitions": [0]}]},
        ApiKey.DESCRIBE_QUORUM: {
            "topics": [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]
        },
        ApiKey.OFFSET_FOR_LEADER_EPOCH: {
            "topics": [{"topic": "hostile", "partitions": [{"partition": 0, "leader_epoch": 0}]}]
        },
        ApiKey.INCREMENTAL_ALTER_CONFIGS: {
            "resources": [
                {
                    "resource_type": 2,
                    "resource_name": NOWHERE,
                    "configs": [{"name": "retention.ms", "config_operation": 0, "value": "1"}],
                }
            ]
        },
    }
    quiet = api in (ApiKey.METADATA, ApiKey.CREATE_TOPICS)  # defaults mean every topic, or 0 partitions
    return [*([special[api]] if api in special else []), *([] if quiet else [{}])]


def hostile_frames(seed: int, keys: Iterable[int]) -> Iterator[bytes]:
    """Frames with their sizes, each wrong in its own way (a few are right), to the APIs with these keys."""
    rng = random.Random(seed)
    valid = valid_requests(keys)
    while True:
        yield MUTATIONS[rng.randrange(len(MUTATIONS))](rng, bytearray(rng.choice(valid)))


def noise(rng: random.Random, data: bytearray) -> bytes:
    return framed(rng.randbytes(rng.choice((1, 4, 8, 16, 64, 500))))


def noise_behind_a_header(rng: random.Random, data: bytearray) -> bytes:
    key, version = rng.choice(list(APIS)), rng.randrange(20)
    return framed(request(key, version, rng.randrange(1, 3), 7, rng.randbytes(rng.randrange(200))))


def flipped_bits(rng: random.Random, data: bytearray) -> bytes:
    for _ in range(rng.randrange(1, 6)):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return framed(bytes(data))


def extreme_numbers(rng: random.Random, data: bytearray) -> bytes:
    form, values = rng.choice(
        (("i", (-1, -(2**31), 2**31 - 1, 0)), ("h", (-1, -32768, 32767)), ("B", (255, 128, 127)))
    )
    at = rng.randrange(max(1, len(data) - 4))
    if at + struct.calcsize(">" + form) <= len(data):
        struct.pack_into(">" + form, data, at, rng.choice(values))
    return framed(bytes(data))


def cut(rng: random.Random, data: bytearray) -> bytes:
    return framed(bytes(data[: rng.randrange(len(data))]))


def longer(rng: random.Random, data: bytearray) -> bytes:
    return framed(bytes(data) + rng.randbytes(rng.randrange(1, 300)))


def doubled(rng: random.Random, data: bytearray) -> bytes:
    start = rng.randrange(len(data))
    end = rng.randrange(start, len(data))
    return framed(bytes(data[:end]) + bytes(data[start:]))


def wrong_size(rng: random.Random, data: bytearray) -> bytes:
    sizes = (-1, 0, 2**31 - 1, -(2**31), 104_857_601, len(data) + rng.randrange(-20, 20), 104_857_600)
    return struct.pack(">i", rng.choice(sizes)) + bytes(data)


def other_version(rng: random.Random, data: bytearray) -> bytes:
    struct.pack_into(">h", data, 2, rng.randrange(-2, 25))
    return framed(bytes(data))


def right(rng: random.Random, data: bytearray) -> bytes:
    return framed(bytes(data))


MUTATIONS = (
    noise,
    noise_behind_a_header,
    flipped_bits,
    flipped_bits,
    extreme_numbers,
    extreme_numbers,
    cut,
    longer,
    doubled,
    wrong_size,
    other_version,
    right,
)
