"""Batches with a correct checksum and malformed records, in logs that tools and clients read."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from barnabas.client.cluster import Cluster
from barnabas.client.consumer import Consumer
from barnabas.client.core.address import parse_bootstrap
from barnabas.client.core.fetching import DamagedBatch
from barnabas.client.core.topology import TopicPartition
from barnabas.records.compression import Compression
from barnabas.testing import Broker
from barnabas.testing.waiting import wait_until
from broker.conversation import Conversation, batch, list_offset, produce
from poisoned_batches import TIME_MS, UNCOMPRESSED, batch_around, compressed, good

from .conftest import RunTool

TOPIC = "poisoned"
POISON = UNCOMPRESSED["text instead of a record"]  # one record declared
UNPACKABLE = compressed(Compression.LZ4)["plain records under a codec"]  # three
FIRST = "offsets 1 to 1 of poisoned-0 cannot be read"
SECOND = "offsets 3 to 5 of poisoned-0 cannot be read"


@pytest.fixture(scope="module")
def poisoned() -> Iterator[Broker]:
    """Partition 0 holds a, poison, b, poison, c; the other partitions are intact."""
    with Broker() as broker, Conversation(broker) as talk:
        configs = {"barnabas.produce.validation": "none", "retention.ms": -1}
        broker.create_topic(TOPIC, partitions=3, configs=configs)
        for number, each in enumerate((b"a", POISON, b"b", UNPACKABLE, b"c")):
            first = each if len(each) > 1 else batch(each, timestamp=TIME_MS + number)
            answer = talk.ask(*produce(TOPIC, first, batch(b"1-%d" % number), batch(b"2-%d" % number)))
            assert [found.error_code for found in answer.responses[0].partition_responses] == [0, 0, 0]
        yield broker


async def read(broker: Broker, expected: int) -> tuple[list[bytes | None], list[str]]:
    """All values of the topic, and the unreadable batches."""
    values: list[bytes | None] = []
    problems: list[str] = []
    async with Cluster(parse_bootstrap(broker.bootstrap)) as cluster, asyncio.timeout(60):
        consumer = Consumer(cluster)
        consumer.assign({TopicPartition(TOPIC, index): 0 for index in range(3)})
        while len(values) < expected:
            try:
                values += [each.value for each in await consumer.poll(1000)]
            except DamagedBatch as error:
                problems.append(error.message)
                consumer.assign({error.where: error.next_offset})
        await consumer.close()
    return values, problems


def test_our_client_names_the_batch_and_loses_nothing_else(poisoned: Broker) -> None:
    values, problems = asyncio.run(read(poisoned, 13))
    others = [b"%d-%d" % (partition, number) for partition in (1, 2) for number in range(5)]
    assert sorted(value or b"" for value in values) == sorted([b"a", b"b", b"c", *others])
    assert [text.partition(":")[0] for text in problems] == [FIRST, SECOND]


@pytest.mark.parametrize("start", [["--partition", "0", "--offset", "0"], ["--from-beginning"]])
def test_the_console_consumer_stops_and_names_the_batch(
    poisoned: Broker, run_tool: RunTool, start: list[str]
) -> None:
    base = ("kafka-console-consumer", "--bootstrap-server", poisoned.bootstrap, "--topic", TOPIC)
    ran = run_tool(*base, *start, "--timeout-ms", "60000")
    assert ran.status == 1
    assert FIRST in ran.errors
    assert "a" in ran.lines and "b" not in ran.lines


@pytest.mark.parametrize("start", [["--partition", "0", "--offset", "0"], ["--from-beginning"]])
def test_the_console_consumer_skips_unreadable_batches_if_asked(
    poisoned: Broker, run_tool: RunTool, start: list[str]
) -> None:
    base = ("kafka-console-consumer", "--bootstrap-server", poisoned.bootstrap, "--topic", TOPIC)
    count = "3" if "--partition" in start else "13"
    ran = run_tool(*base, *start, "--skip-message-on-error", "--max-messages", count, "--timeout-ms", "60000")
    assert ran.status == 0
    assert [line for line in ran.lines if len(line) == 1] == ["a", "b", "c"]
    assert FIRST in ran.errors and SECOND in ran.errors


def test_a_dump_of_the_log_shows_what_can_be_read(poisoned: Broker, run_tool: RunTool) -> None:
    path = poisoned.data / f"{TOPIC}-0" / "00000000000000000000.log"
    ran = run_tool("kafka-dump-log", "--files", str(path), "--print-data-log")
    assert ran.status == 0
    broken = [n for n, line in enumerate(ran.lines) if "the records of this batch cannot be read" in line]
    assert [ran.lines[n - 1].split()[1] for n in broken] == ["1", "3"]
    assert [line.rpartition(" ")[2] for line in ran.lines if "payload:" in line] == ["a", "b", "c"]


def test_offsets_are_found_by_time(poisoned: Broker, run_tool: RunTool) -> None:
    """A lookup by time finds an unreadable batch whose header has the time."""
    with Conversation(poisoned) as talk:
        assert list_offset(talk, TOPIC, TIME_MS + 1) == 2
        assert list_offset(talk, TOPIC, TIME_MS) == 0
        assert list_offset(talk, TOPIC, TIME_MS + 4) == 6
    base = ("kafka-get-offsets", "--bootstrap-server", poisoned.bootstrap, "--topic", TOPIC)
    assert run_tool(*base).lines[0] == f"{TOPIC}:0:7"
    assert run_tool(*base, "--time", str(TIME_MS + 2)).lines[0] == f"{TOPIC}:0:2"


def test_a_killed_broker_restarts_with_unreadable_batches(tmp_path_factory: pytest.TempPathFactory) -> None:
    data = tmp_path_factory.mktemp("killed")
    with Broker(data, in_process=False) as broker:
        broker.create_topic(TOPIC, configs={"barnabas.produce.validation": "none", "retention.ms": -1})
        with Conversation(broker) as talk:
            for each in (batch(b"a"), POISON, UNPACKABLE, batch(b"b")):
                talk.ask(*produce(TOPIC, each))
        broker.kill()
        broker.start()
        with Conversation(broker) as talk:
            answer = talk.ask(*produce(TOPIC, batch(b"c")))
            assert answer.responses[0].partition_responses[0].base_offset == 6


def test_the_configs_tool_sets_the_validation_level(run_tool: RunTool) -> None:
    """The level can change for a topic and for all brokers while they run."""
    name = "barnabas.produce.validation"
    inside = bytearray(good(300))
    inside[1000] ^= 0xFF
    hidden = batch_around(bytes(inside), 300)  # well-formed at both ends
    with Broker() as broker, Conversation(broker) as talk:
        broker.create_topic("own")
        broker.create_topic("inheriting")
        server = ("kafka-configs", "--bootstrap-server", broker.bootstrap)

        def is_taken(topic: str) -> bool:
            return not talk.ask(*produce(topic, hidden)).responses[0].partition_responses[0].error_code

        def described(*entity: str) -> str:
            lines = run_tool(*server, "--describe", *entity, "--all").lines
            return next(line.strip() for line in lines if line.strip().startswith(name))

        assert described("--topic", "own").startswith(
            f"{name}=relaxed sensitive=false synonyms={{DEFAULT_CONFIG"
        )
        assert is_taken("own") and is_taken("inheriting")
        assert run_tool(*server, "--alter", "--topic", "own", "--add-config", f"{name}=strict").status == 0
        wait_until(lambda: not is_taken("own"))
        assert described("--topic", "own").startswith(
            f"{name}=strict sensitive=false synonyms={{DYNAMIC_TOPIC"
        )
        assert is_taken("inheriting")
        default = ("--entity-type", "brokers", "--entity-default")
        assert run_tool(*server, "--alter", *default, "--add-config", f"{name}=strict").status == 0
        wait_until(lambda: not is_taken("inheriting"))
        assert run_tool(*server, "--alter", "--topic", "own", "--add-config", f"{name}=none").status == 0
        wait_until(lambda: is_taken("own"))
        wrong = run_tool(*server, "--alter", "--topic", "own", "--add-config", f"{name}=all")
        assert wrong.status == 1 and "none, relaxed, strict" in wrong.errors + wrong.output
