"""Every message and version against Apache Kafka's own classes, records of internal topics included.

They read what we wrote, write the same bytes again, and name the same values in their JSON.
"""

from __future__ import annotations

import base64
import json
import random
from pathlib import Path
from typing import Any

import pytest

from barnabas.protocol import NULL_UUID, Message, Struct
from barnabas.protocol.schema import Field
from barnabas.protocol.uuid import to_text
from barnabas.testing import apache

from .declarations import MESSAGES, RANGES

EXAMPLES = 3
ANYTHING = object()

pytestmark = pytest.mark.java


@pytest.fixture(scope="module")
def cases() -> list[tuple[Message, int]]:
    rng = random.Random(431)
    return [
        (sample(cls, version, version in cls.schema.flexible, rng), version)
        for cls in MESSAGES
        for version in cls.schema.versions
        for _ in range(EXAMPLES)
    ]


@pytest.fixture(scope="module")
def echoes(java: None, cases: list[tuple[Message, int]]) -> list[str]:
    lines = [
        f"{message.schema.name} {version} {message.encode(version).hex()}\n" for message, version in cases
    ]
    done = apache.java_program(Path(__file__).parent / "ApacheEcho.java", input="".join(lines))
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_apache_kafka_reads_and_writes_the_same_bytes(
    cases: list[tuple[Message, int]], echoes: list[str]
) -> None:
    for (message, version), echo in zip(cases, echoes, strict=True):
        left, written, _ = echo.split(" ", 2)
        assert (left, written) == ("0", message.encode(version).hex()), f"{version} of {message}: {echo:.200}"


def test_apache_kafka_sees_the_same_values(cases: list[tuple[Message, int]], echoes: list[str]) -> None:
    for (message, version), echo in zip(cases, echoes, strict=True):
        assert_same(
            json.loads(echo.split(" ", 2)[2]), plain(message, version), f"{message.schema.name} {version}"
        )


def sample(cls: type, version: int, flexible: bool, rng: random.Random) -> Any:
    """A message in which anything goes: nulls, tags left out, tags unknown, both ends of every range."""
    values: dict[str, Any] = {}
    for field in cls.schema.fields:  # type: ignore[attr-defined]
        if version not in field.versions or (field.tag is not None and rng.random() < 0.3):
            continue
        if version in field.nullable and rng.random() < 0.3:
            values[field.name] = None
        elif field.is_array:
            values[field.name] = [one(field, version, flexible, rng) for _ in range(rng.randrange(4))]
        else:
            values[field.name] = one(field, version, flexible, rng)
    if flexible and rng.random() < 0.15:
        values["unknown_tagged_fields"] = [(100, b"xyz"), (1000, b"")]
    return cls(**values)


def one(field: Field, version: int, flexible: bool, rng: random.Random) -> Any:
    if field.struct is not None:
        return sample(field.struct, version, flexible, rng)
    if field.type in RANGES:
        low, high = RANGES[field.type]
        return rng.choice([0, 1, low, high, rng.randint(low, high)])
    choices: dict[str, list[Any]] = {
        "Bool": [False, True],
        "Float64": [0.0, 1.5, -2.25],
        "Uuid": [NULL_UUID, rng.randbytes(16)],
        "String": ["", "abc", "ü" * 70, "\U0001f600é"],
        "Bytes": [b"", rng.randbytes(5), rng.randbytes(200)],
        "Records": [b"", rng.randbytes(5), rng.randbytes(200)],
    }
    return rng.choice(choices[field.type])


def plain(struct: Struct, version: int) -> dict[str, Any]:
    """A message the way Kafka's JSON has it, its names in lower case."""
    out = {}
    for field in struct.schema.fields:
        if version in field.versions:
            value = getattr(struct, field.name)
            is_list = field.is_array and value is not None
            shown = (
                [shown_value(field, v, version) for v in value]
                if is_list
                else shown_value(field, value, version)
            )
            out[field.name.replace("_", "")] = shown
    return out


def shown_value(field: Field, value: Any, version: int) -> Any:
    if field.type == "Records":
        return ANYTHING
    if value is None:
        return None
    if field.struct is not None:
        return plain(value, version)
    if field.type == "Uuid":
        return to_text(value)
    if field.type == "Bytes":
        return base64.b64encode(value).decode()
    return value


def assert_same(theirs: Any, ours: Any, path: str) -> None:
    """Equal, but for tagged fields at their defaults, which their JSON leaves out, and records."""
    if isinstance(ours, dict):
        found = {name.lower(): value for name, value in theirs.items()}
        size_of_records = {name for name in found if ours.get(name.removesuffix("sizeinbytes")) is ANYTHING}
        assert found.keys() - size_of_records <= ours.keys(), path
        for name, value in ours.items():
            if name in found:
                assert_same(found[name], value, f"{path}.{name}")
    elif isinstance(ours, list):
        assert len(theirs) == len(ours), path
        for number, (their, our) in enumerate(zip(theirs, ours, strict=True)):
            assert_same(their, our, f"{path}[{number}]")
    elif ours is not ANYTHING:
        assert theirs == ours, path
