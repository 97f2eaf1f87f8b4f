"""Many requests on one connection, bytes in any portions: every answer, in the order of requests."""

from __future__ import annotations

import random
import struct

from barnabas.protocol import ApiKey
from barnabas.protocol.apis import request_header_version

from ..frames import Wire, framed, request
from ..requests import batch, fetch, produce
from ..talk import Talk, encode, scenario


def frame(talk: Talk, api: ApiKey, version: int, correlation_id: int, **values: object) -> bytes:
    header = request_header_version(api, version)
    return framed(request(api, version, header, correlation_id, encode(api, version, values)))


def mixed(talk: Talk, name: str, count: int) -> list[bytes]:
    """Requests of several kinds; those with a number divisible by 7 have no answer."""
    frames = []
    for n in range(count):
        data = batch(b"%d" % n)
        if n % 7 == 0:
            frames.append(frame(talk, ApiKey.PRODUCE, 9, n, **produce(talk, name, data, acks=0)))
        elif n % 7 in (1, 2):
            frames.append(frame(talk, ApiKey.PRODUCE, 9, n, **produce(talk, name, data, acks=-1)))
        elif n % 7 == 3:
            waits = fetch(talk, {name: [{"fetch_offset": 0}]}, max_wait_ms=10, min_bytes=1)
            frames.append(frame(talk, ApiKey.FETCH, 12, n, **waits))
        elif n % 7 == 4:
            place = [{"name": name, "partitions": [{"partition_index": 0, "timestamp": 0}]}]
            frames.append(frame(talk, ApiKey.LIST_OFFSETS, 7, n, replica_id=-1, topics=place))
        elif n % 7 == 5:
            frames.append(frame(talk, ApiKey.INIT_PRODUCER_ID, 4, n, transactional_id=None))
        else:
            frames.append(frame(talk, ApiKey.METADATA, 9, n, topics=[{"name": name}]))
    return frames


def answered(wire: Wire, count: int) -> list[int]:
    return [struct.unpack(">i", wire.receive()[:4])[0] for _ in range(count)]


def note_order(talk: Talk, label: str, wire: Wire, count: int) -> None:
    expected = [n for n in range(count) if n % 7]
    talk.note(label, {"in order": answered(wire, len(expected)) == expected, "answers": len(expected)})


@scenario
def answers_keep_the_order_of_requests(talk: Talk) -> None:
    name = talk.topic()
    with Wire(talk.port) as wire:
        wire.send_bytes(b"".join(mixed(talk, name, 300)))
        note_order(talk, "three hundred at once", wire, 300)
    talk.ask(
        "what was stored",
        ApiKey.LIST_OFFSETS,
        7,
        replica_id=-1,
        topics=[{"name": name, "partitions": [{"partition_index": 0, "timestamp": -1}]}],
    )


@scenario
def bytes_arrive_in_any_portions(talk: Talk) -> None:
    name = talk.topic()
    rng = random.Random(5)
    for label, sizes in {
        "one by one": (1, 1),
        "a few": (1, 9),
        "some": (1, 200),
        "many": (500, 5_000),
    }.items():
        with Wire(talk.port) as wire:
            data = b"".join(mixed(talk, name, 28))
            position = 0
            while position < len(data):
                size = rng.randint(*sizes)
                wire.send_bytes(data[position : position + size])
                position += size
            note_order(talk, f"bytes in portions: {label}", wire, 28)


@scenario
def large_requests_one_behind_the_other(talk: Talk) -> None:
    name = talk.topic()
    with Wire(talk.port) as wire:
        for n in range(1, 31):
            data = batch(b"%d" % n + b"x" * 900_000)
            wire.send_bytes(
                frame(talk, ApiKey.PRODUCE, 9, n, **produce(talk, name, data, acks=1 if n % 2 else -1))
            )
        talk.note("thirty of 900 KB", {"in order": answered(wire, 30) == list(range(1, 31))})
        for n in range(1, 31):
            body = fetch(talk, {name: [{"fetch_offset": n - 1, "partition_max_bytes": 1}]})
            wire.send_bytes(frame(talk, ApiKey.FETCH, 12, n, **body))
        sizes = []
        for n in range(1, 31):
            answer = wire.receive()
            sizes.append(struct.unpack(">i", answer[:4])[0] == n and len(answer) > 900_000)
        talk.note("thirty fetches of 900 KB", {"whole and in order": all(sizes)})
