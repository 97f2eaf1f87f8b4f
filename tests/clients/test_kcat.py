"""kcat: metadata, produce, consume, offsets by time, from a shell."""

from __future__ import annotations

import json
import subprocess

import pytest

from installed_tools import needs

from .conftest import NewTopicName, Served


@pytest.fixture(autouse=True, scope="module")
def installed() -> None:
    needs("kcat")


def kcat(broker: Served, *args: str, input: str = "") -> str:
    done = subprocess.run(
        ["kcat", "-q", "-b", broker.bootstrap, *args], input=input, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_lines_go_in_and_come_out(broker: Served, new_topic: NewTopicName, compression: str) -> None:
    topic = new_topic()
    lines = [f"key{n}:value {n}" for n in range(500)]

    kcat(broker, "-P", "-t", topic, "-p", "0", "-z", compression, "-K:", input="\n".join(lines) + "\n")
    out = kcat(broker, "-C", "-t", topic, "-p", "0", "-o", "beginning", "-e", "-K:")

    assert out.splitlines() == lines


def test_offsets_headers_and_nulls_are_printed(broker: Served, new_topic: NewTopicName) -> None:
    topic = new_topic()

    kcat(broker, "-P", "-t", topic, "-p", "0", "-H", "a=1", "-H", "b", "-Z", "-K:", input="k:\n:v\n")
    out = kcat(broker, "-C", "-t", topic, "-p", "0", "-o", "beginning", "-e", "-J")

    records = [json.loads(line) for line in out.splitlines()]
    assert [(r["offset"], r["key"], r["payload"]) for r in records] == [(0, "k", None), (1, None, "v")]
    assert records[0]["headers"] == ["a", "1", "b", None]


def test_reading_starts_at_an_offset_or_a_distance_from_the_end(
    broker: Served, new_topic: NewTopicName
) -> None:
    topic = new_topic()
    kcat(broker, "-P", "-t", topic, "-p", "0", input="".join(f"{n}\n" for n in range(20)))

    def numbers(offset: str) -> list[int]:
        return [int(n) for n in kcat(broker, "-C", "-t", topic, "-p", "0", "-o", offset, "-e").split()]

    assert numbers("15") == [15, 16, 17, 18, 19]
    assert numbers("-3") == [17, 18, 19]


def test_metadata_shows_the_topic_and_its_leader(broker: Served, new_topic: NewTopicName) -> None:
    topic = new_topic(partitions=3)

    metadata = json.loads(kcat(broker, "-L", "-J", "-t", topic))

    assert [b["name"] for b in metadata["brokers"]] == [broker.bootstrap]
    [described] = metadata["topics"]
    assert [p["partition"] for p in described["partitions"]] == [0, 1, 2]
    assert {p["leader"] for p in described["partitions"]} == {metadata["brokers"][0]["id"]}


def test_offsets_are_queried_by_time(broker: Served, new_topic: NewTopicName) -> None:
    topic = new_topic()
    kcat(broker, "-P", "-t", topic, "-p", "0", input="a\nb\n")

    assert kcat(broker, "-Q", "-t", f"{topic}:0:-2").split()[-1] == "0"
    assert kcat(broker, "-Q", "-t", f"{topic}:0:-1").split()[-1] == "2"
    assert kcat(broker, "-Q", "-t", f"{topic}:0:0").split()[-1] == "0"


def test_an_idempotent_producer_is_served(broker: Served, new_topic: NewTopicName) -> None:
    topic = new_topic()
    lines = [str(n) for n in range(1_000)]

    kcat(broker, "-P", "-t", topic, "-p", "0", "-X", "enable.idempotence=true", input="\n".join(lines) + "\n")

    assert kcat(broker, "-C", "-t", topic, "-p", "0", "-o", "beginning", "-e").splitlines() == lines
