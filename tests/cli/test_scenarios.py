"""Command sequences of courses on Kafka."""

from collections import defaultdict
from collections.abc import Callable

from barnabas.client.partitioner import partition_for_key

from .conftest import Ran, RunTool

KEYED = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=:")


def consume(run_tool: RunTool, broker: str, topic: str, count: int, *show: str) -> Ran:
    properties = [part for name in show for part in ("--formatter-property", f"print.{name}=true")]
    base = ("--bootstrap-server", broker, "--topic", topic, "--from-beginning", "--max-messages", str(count))
    return run_tool("kafka-console-consumer", *base, "--timeout-ms", "20000", *properties)


def test_a_first_topic(broker: str, run_tool: RunTool, fresh_name: Callable[[], str]) -> None:
    """Create, list, describe; produce with keys; consume with keys, timestamps and partitions; delete."""
    topic = fresh_name()
    server = ("--bootstrap-server", broker)
    assert run_tool("kafka-topics", *server, "--create", "--topic", topic, "--partitions", "3").status == 0
    assert topic in run_tool("kafka-topics", *server, "--list").lines
    described = run_tool("kafka-topics", *server, "--describe", "--topic", topic)
    assert [line.split("\t")[2] for line in described.lines[1:]] == [
        f"Partition: {index}" for index in range(3)
    ]
    produced = run_tool(
        "kafka-console-producer", *server, "--topic", topic, *KEYED, input="user:ann\nuser:bob\ncity:rome\n"
    )
    assert (produced.status, produced.errors) == (0, "")
    seen = consume(run_tool, broker, topic, 3, "key", "timestamp", "partition")
    rows = [line.split("\t") for line in seen.lines]
    assert all(row[0].startswith("CreateTime:") for row in rows)
    assert {(row[1], row[2], row[3]) for row in rows} == {
        (f"Partition:{partition_for_key(key.encode(), 3)}", key, value)
        for key, value in (("user", "ann"), ("user", "bob"), ("city", "rome"))
    }
    assert seen.errors == "Processed a total of 3 messages\n"
    assert run_tool("kafka-topics", *server, "--delete", "--topic", topic).status == 0
    assert topic not in run_tool("kafka-topics", *server, "--list").lines


def test_numbers_keep_their_order_within_a_partition_only(
    broker: str, run_tool: RunTool, fresh_name: Callable[[], str]
) -> None:
    numbers = [str(number) for number in range(1, 11)]
    server = ("--bootstrap-server", broker)
    one, ten = fresh_name(), fresh_name()
    run_tool("kafka-topics", *server, "--create", "--topic", one, "--partitions", "1")
    run_tool("kafka-topics", *server, "--create", "--topic", ten, "--partitions", "10")
    keyed = "".join(f"{number}:{number}\n" for number in numbers)
    for topic in (one, ten):
        run_tool("kafka-console-producer", *server, "--topic", topic, *KEYED, input=keyed)
    assert consume(run_tool, broker, one, 10).lines == numbers
    spread = [line.split("\t") for line in consume(run_tool, broker, ten, 10, "partition").lines]
    assert sorted(int(value) for _, value in spread) == list(range(1, 11))
    assert len({partition for partition, _ in spread}) > 1
    by_partition: dict[str, list[int]] = defaultdict(list)
    for partition, value in spread:
        by_partition[partition].append(int(value))
    assert all(values == sorted(values) for values in by_partition.values())


def test_orders_stay_in_order_per_shop_until_partitions_are_added(
    broker: str, run_tool: RunTool, fresh_name: Callable[[], str]
) -> None:
    topic = fresh_name()
    server = ("--bootstrap-server", broker)
    shops = ["north", "south", "east", "west"]
    run_tool("kafka-topics", *server, "--create", "--topic", topic, "--partitions", "3")

    def orders(first: int) -> str:
        return "".join(f"{shop}:{number}\n" for number in range(first, first + 5) for shop in shops)

    run_tool("kafka-console-producer", *server, "--topic", topic, *KEYED, input=orders(0))
    rows = [line.split("\t") for line in consume(run_tool, broker, topic, 20, "partition", "key").lines]
    for shop in shops:
        assert [number for _, key, number in rows if key == shop] == ["0", "1", "2", "3", "4"]

    altered = run_tool("kafka-topics", *server, "--alter", "--topic", topic, "--partitions", "8")
    assert altered.status == 0
    assert (
        f"WARNING: {topic} holds records with keys. From now on a key may go to another partition"
        in altered.errors
    )

    run_tool("kafka-console-producer", *server, "--topic", topic, *KEYED, input=orders(5))
    rows = [line.split("\t") for line in consume(run_tool, broker, topic, 40, "partition", "key").lines]
    homes = {shop: {partition for partition, key, _ in rows if key == shop} for shop in shops}
    assert any(len(partitions) == 2 for partitions in homes.values())


def test_there_is_no_warning_if_no_record_has_a_key(
    broker: str, run_tool: RunTool, fresh_name: Callable[[], str]
) -> None:
    topic = fresh_name()
    server = ("--bootstrap-server", broker)
    run_tool("kafka-topics", *server, "--create", "--topic", topic)
    run_tool("kafka-console-producer", *server, "--topic", topic, input="no key\n")
    assert run_tool("kafka-topics", *server, "--alter", "--topic", topic, "--partitions", "2").errors == ""
