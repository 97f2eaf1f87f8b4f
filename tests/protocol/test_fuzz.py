"""Hostile bytes: only `ProtocolError`, no more memory than the frame is worth, and a second opinion.

The compiled decoder and the plain reader share nothing but the declarations, so they have to agree on
every frame: on what it says, or that it says nothing.
"""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Iterator

import pytest

from barnabas.protocol import Message, ProtocolError
from barnabas.protocol.codec import codec
from barnabas.protocol.reading import Reader
from barnabas.protocol.schema import Field
from barnabas.protocol.source import minimum_size

from .declarations import BY_NAME, MESSAGES

EXAMPLES = 40
HUGE_COUNTS = [
    b"\x7f\xff\xff\xff",
    b"\xff\xff\xff\xff\x07",
    b"\xff\xff\xff\xff",
    b"\xff\xff\xff\xff\xff\xff",
    b"\0\0\0\0",
]
MEMORY_PER_BYTE = 200
MEMORY_AT_LEAST = 100_000


def sample(cls: type, version: int, rng: random.Random) -> Message:
    """A message with something in every field."""
    values = {}
    for field in cls.schema.fields:  # type: ignore[attr-defined]
        if version in field.versions:
            element = [
                sample_value(field, version, rng) for _ in range(rng.randrange(3) if field.is_array else 1)
            ]
            values[field.name] = element if field.is_array else element[0]
    return cls(**values)  # type: ignore[no-any-return]


def sample_value(field: Field, version: int, rng: random.Random) -> object:
    if field.struct is not None:
        return sample(field.struct, version, rng)
    samples: dict[str, object] = {
        "Bool": True,
        "Float64": 1.5,
        "Uuid": rng.randbytes(16),
        "String": "text" * rng.randrange(3),
        "Bytes": rng.randbytes(5),
        "Records": rng.randbytes(9),
    }
    return samples.get(field.type, rng.randrange(100))


def hostile(cls: type[Message], version: int, rng: random.Random) -> Iterator[bytes]:
    yield b""
    for _ in range(EXAMPLES):
        frame = bytearray(sample(cls, version, rng).encode(version))
        place = rng.randrange(len(frame) + 1)
        match rng.randrange(6):
            case 0:
                del frame[place:]
            case 1:
                frame[place : place + 1] = bytes([rng.randrange(256)])
            case 2:
                frame[place:place] = rng.randbytes(rng.randrange(1, 4))
            case 3:
                del frame[place : place + rng.randrange(1, 4)]
            case 4:
                count = rng.choice(HUGE_COUNTS)
                frame[place : place + len(count)] = count
            case 5:
                frame = bytearray(rng.randbytes(rng.randrange(1, 40)))
        yield bytes(frame)


@pytest.mark.parametrize("cls", MESSAGES, ids=lambda cls: cls.__name__)
def test_hostile_bytes_are_decoded_or_refused_as_the_plain_reader_does(cls: type[Message]) -> None:
    rng = random.Random(cls.__name__)
    for version in cls.schema.versions:
        for frame in hostile(cls, version, rng):
            reader = Reader(cls, version, frame, 0)
            try:
                expected, refused = reader.message(cls), None
            except ProtocolError as error:
                expected, refused = None, error
            try:
                decoded, end = codec(cls, version).decode(memoryview(frame), 0)
            except ProtocolError as error:
                assert refused is not None, f"{frame.hex()} is version {version}: {expected}"
                assert (error.path, error.reason) == (refused.path, refused.reason)
            else:
                assert refused is None, f"{frame.hex()} of version {version} was decoded: {decoded}"
                same = repr(decoded) == repr(expected)  # where a float is not a number
                assert same or decoded == expected
                assert end == reader.position


@pytest.mark.parametrize("name", ["ProduceRequest", "FetchRequest", "MetadataResponse", "JoinGroupRequest"])
def test_hostile_bytes_take_no_more_memory_than_the_frame_is_worth(name: str) -> None:
    cls, rng = BY_NAME[name], random.Random(name)
    frames = [(v, frame) for v in cls.schema.versions for frame in hostile(cls, v, rng)]
    for version in cls.schema.versions:
        codec(cls, version).decode(cls().encode(version), 0)
    tracemalloc.start()
    try:
        for version, frame in frames:
            before = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            try:
                cls.decode(frame, version)
            except ProtocolError:
                pass
            used = tracemalloc.get_traced_memory()[1] - before
            assert used < MEMORY_AT_LEAST + MEMORY_PER_BYTE * len(frame), frame.hex()
    finally:
        tracemalloc.stop()


def test_a_count_of_two_billion_allocates_nothing() -> None:
    cls = BY_NAME["MetadataRequest"]
    frame = b"\x7f\xff\xff\xff" + bytes(1_000_000)
    codec(cls, 1).decode(cls().encode(1), 0)
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError):
            cls.decode(frame, 1)
        assert tracemalloc.get_traced_memory()[1] < MEMORY_AT_LEAST
    finally:
        tracemalloc.stop()


def test_every_element_of_an_array_takes_at_least_a_byte() -> None:
    def check(cls: type, version: int, flexible: bool) -> None:
        for field in cls.schema.fields:  # type: ignore[attr-defined]
            if version in field.versions:
                if field.is_array:
                    assert minimum_size(field, version, flexible, element=True) > 0
                if field.struct is not None:
                    check(field.struct, version, flexible)

    for message in MESSAGES:
        for version in message.schema.versions:
            check(message, version, version in message.schema.flexible)
