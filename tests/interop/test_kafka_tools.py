"""Apache Kafka's own command-line tools work with our broker and read our files."""

from __future__ import annotations

import re
import time
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.protocol import ApiKey
from barnabas.testing import apache

from .conftest import Node
from .requests import fetch, produce
from .talk import Talk
from .transacting import READ_COMMITTED, Transacting

pytestmark = [pytest.mark.java, pytest.mark.usefixtures("java")]

TOOLS = "org.apache.kafka.tools."


def tool(name: str, *args: str, input: str = "") -> str:
    """What a tool prints; it has to succeed."""
    done = apache.tool(name if name.startswith("kafka.") else TOOLS + name, *args, input=input)
    assert done.returncode == 0, f"{name} {' '.join(args)}: {done.stdout}{done.stderr}"
    return done.stdout


def topics(node: Node, *args: str) -> str:
    return tool("TopicCommand", "--bootstrap-server", node.bootstrap, *args)


def make_topic(node: Node, name: str, partitions: int = 1, **configs: str) -> str:
    settings = {key.replace("_", "."): value for key, value in configs.items()}
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    admin.create_topics([NewTopic(name, partitions, 1, config=settings)])[name].result(30)
    return name


def test_topics_are_created_described_altered_and_deleted(node: Node) -> None:
    name = "tools.first_topic"
    flags = ("--topic", name)

    assert f"Created topic {name}." in topics(
        node, "--create", *flags, "--partitions", "2", "--config", "retention.ms=5000"
    )
    assert name in topics(node, "--list").split()
    topics(node, "--alter", *flags, "--partitions", "3")

    described = topics(node, "--describe", *flags)
    assert re.search(
        rf"Topic: {name}\s+TopicId: \S{{22}}\s+PartitionCount: 3\s+ReplicationFactor: 1", described
    )
    assert "retention.ms=5000" in described
    assert len(re.findall(r"Partition: \d\s+Leader: 1\s+Replicas: 1\s+Isr: 1", described)) == 3

    topics(node, "--delete", *flags)
    assert name not in topics(node, "--list").split()


def test_the_console_tools_write_and_read(node: Node) -> None:
    name = make_topic(node, "tools.console", 2)
    lines = "".join(f"k{n}:v{n}\n" for n in range(20))

    tool(
        "ConsoleProducer",
        *("--bootstrap-server", node.bootstrap, "--topic", name),
        *("--reader-property", "parse.key=true", "--reader-property", "key.separator=:"),
        input=lines,
    )
    read = []
    for partition in ("0", "1"):
        offsets = tool(
            "GetOffsetShell",
            "--bootstrap-server",
            node.bootstrap,
            "--topic-partitions",
            f"{name}:{partition}",
        )
        count = offsets.strip().rpartition(":")[2]
        if count != "0":
            read += tool(
                "consumer.ConsoleConsumer",
                *("--bootstrap-server", node.bootstrap, "--topic", name, "--partition", partition),
                *("--offset", "earliest", "--max-messages", count, "--timeout-ms", "20000"),
                *("--formatter-property", "print.key=true", "--formatter-property", "key.separator=:"),
            ).splitlines()

    assert sorted(read) == sorted(lines.splitlines())


def test_the_console_consumer_starts_at_an_offset(node: Node) -> None:
    name = make_topic(node, "tools.offset")
    fill(node, name, 10)

    out = tool(
        "consumer.ConsoleConsumer",
        *("--bootstrap-server", node.bootstrap, "--topic", name, "--partition", "0", "--offset", "7"),
        *("--max-messages", "3", "--timeout-ms", "20000"),
    )

    assert out.splitlines() == ["7", "8", "9"]


def test_offsets_are_listed_by_time(node: Node) -> None:
    name = make_topic(node, "tools.offsets", 2)
    fill(node, name, 5)

    def listed(time: str) -> list[str]:
        flags = ("--bootstrap-server", node.bootstrap, "--topic", name, "--time", time)
        return tool("GetOffsetShell", *flags).split()

    assert listed("-1") == [f"{name}:0:5", f"{name}:1:0"]
    assert listed("-2") == [f"{name}:0:0", f"{name}:1:0"]


def test_api_versions_are_understood(node: Node) -> None:
    out = tool("BrokerApiVersionsCommand", "--bootstrap-server", node.bootstrap)

    assert "Produce(0): 0 to 13 [usable: 13]" in out
    assert "Fetch(1): 4 to 18 [usable: 18]" in out
    assert "Metadata(3): 0 to 13 [usable: 13]" in out


def test_the_producer_performance_tool_runs(node: Node) -> None:
    name = make_topic(node, "tools.performance")
    flags = ("--topic", name, "--num-records", "20000", "--record-size", "100", "--throughput", "-1")

    out = tool("ProducerPerformance", *flags, "--bootstrap-server", node.bootstrap)

    assert "20000 records sent" in out


def test_settings_are_altered_and_described(node: Node) -> None:
    name = make_topic(node, "tools.settings")
    place = ("--bootstrap-server", node.bootstrap, "--entity-type", "topics", "--entity-name", name)

    tool(
        "kafka.admin.ConfigCommand",
        *place,
        "--alter",
        "--add-config",
        "retention.ms=7777,cleanup.policy=compact",
    )
    assert "retention.ms=7777" in tool("kafka.admin.ConfigCommand", *place, "--describe")
    tool("kafka.admin.ConfigCommand", *place, "--alter", "--delete-config", "retention.ms")
    assert "retention.ms" not in tool("kafka.admin.ConfigCommand", *place, "--describe")


def test_quorum_log_dirs_and_cluster_id_are_shown(node: Node) -> None:
    name = make_topic(node, "tools.log_dirs")

    status = tool("MetadataQuorumCommand", "--bootstrap-server", node.bootstrap, "describe", "--status")
    assert re.search(r"LeaderId:\s+1\n", status)
    assert re.search(r"ClusterId:\s+\S{22}\n", status)

    dirs = tool("LogDirsCommand", "--bootstrap-server", node.bootstrap, "--describe", "--topic-list", name)
    assert f'"{name}-0"' in dirs

    assert "Cluster ID: " in tool("ClusterTool", "cluster-id", "--bootstrap-server", node.bootstrap)


def fill(node: Node, topic: str, count: int, size: int = 0, **settings: object) -> None:
    producer = Producer(
        {"bootstrap.servers": node.bootstrap, **{k.replace("_", "."): v for k, v in settings.items()}}
    )
    for n in range(count):
        producer.produce(topic, b"%d" % n + b"x" * size, partition=0)
        producer.poll(0)
    assert producer.flush(30) == 0


def test_dump_log_segments_reads_our_logs_indexes_and_snapshots(node: Node) -> None:
    name = make_topic(node, "tools.dump", segment_bytes="1048576", index_interval_bytes="1000")
    for compression in ("gzip", "snappy", "lz4", "zstd", "none"):
        settings = {"compression_type": compression, "enable_idempotence": True, "batch_num_messages": 20}
        fill(node, name, 1_000 if compression != "none" else 3_000, size=1_000, **settings)
    folder = node.data / f"{name}-0"
    logs = sorted(folder.glob("*.log"))
    closed = logs[:-1]  # the indexes of the open segment may be longer than what is in them
    assert len(closed) >= 2

    deep = dump("--deep-iteration", "--print-data-log", files=logs)
    assert deep.count("isvalid: true") >= 7_000 / 20
    assert "isvalid: false" not in deep
    indexes = [log.with_suffix(suffix) for log in closed for suffix in (".index", ".timeindex")]
    assert dump("--index-sanity-check", files=indexes).count("passed sanity check") == len(indexes)
    verified = dump("--verify-index-only", files=indexes)
    assert "Mismatches in" not in verified and "not found" not in verified, verified
    assert "producerId: " in dump(files=sorted(folder.glob("*.snapshot")))


def test_dump_log_segments_reads_our_transactions(node: Node) -> None:
    name = make_topic(node, "tools.transactions", segment_bytes="1048576")
    producer = Producer({"bootstrap.servers": node.bootstrap, "transactional.id": "tools.transactions"})
    producer.init_transactions(30)
    for number in range(6):
        producer.begin_transaction()
        producer.produce(name, b"%d" % number + b"x" * 300_000, partition=0)
        producer.flush(30)
        if number % 2:
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)
    folder = node.data / f"{name}-0"
    logs = sorted(folder.glob("*.log"))
    assert len(logs) == 2

    deep = dump("--deep-iteration", files=logs)
    assert deep.count("endTxnMarker: COMMIT coordinatorEpoch: 0") == 3
    assert deep.count("endTxnMarker: ABORT coordinatorEpoch: 0") == 3
    assert deep.count("isTransactional: true isControl: false") == 6
    assert "isvalid: false" not in deep
    aborted = dump(files=sorted(folder.glob("*.txnindex")))
    assert re.findall(r"firstOffset: (\d+) lastOffset: (\d+) lastStableOffset: (\d+)", aborted) == [
        ("2", "3", "4"),
        ("6", "7", "8"),
        ("10", "11", "12"),
    ]
    snapshots = dump(files=sorted(folder.glob("*.snapshot")))
    assert "coordinatorEpoch: 0 currentTxnFirstOffset: OptionalLong.empty" in snapshots


def test_a_transaction_that_nobody_ends_is_found_and_aborted(node: Node) -> None:
    name = make_topic(node, "tools.hanging")
    place = ("--topic", name, "--partition", "0")
    with closing(Talk(node.port, "tools")) as talk:
        producer = Transacting(talk, is_new=False)
        verify(talk, "false")
        hanging = produce(talk, name, producer.batch(name, b"x"), transactional_id=producer.id)
        answer = talk.silently(ApiKey.PRODUCE, 11, **hanging)
        assert answer["responses"][0]["partition_responses"][0]["error_code"] == "NONE", answer
        verify(talk, "true")

        described = transactions(node, "describe-producers", *place)
        assert re.search(rf"^{producer.producer_id}\s+{producer.epoch}\s+.*\s0\s*$", described, re.M), (
            described
        )
        transactions(node, "abort", *place, "--start-offset", "0")
        assert re.search(r"None\s*$", transactions(node, "describe-producers", *place))
        body = fetch(talk, {name: [{}]}, isolation_level=READ_COMMITTED)
        [found] = talk.silently(ApiKey.FETCH, 12, **body)["responses"][0]["partitions"]
        assert (found["last_stable_offset"], found["high_watermark"]) == (2, 2)


def transactions(node: Node, *args: str) -> str:
    return tool("TransactionsCommand", "--bootstrap-server", node.bootstrap, *args)


def verify(talk: Talk, value: str) -> None:
    """Switch the verification of partitions on or off, on a running broker."""
    change = {"name": "transaction.partition.verification.enable", "config_operation": 0, "value": value}
    wanted = [{"resource_type": 4, "resource_name": "", "configs": [change]}]
    answer = talk.silently(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=wanted)
    assert answer["responses"][0]["error_code"] == "NONE", answer
    resource = [{"resource_type": 4, "resource_name": "1", "configuration_keys": [change["name"]]}]
    deadline = time.monotonic() + 20
    while True:
        [found] = talk.silently(ApiKey.DESCRIBE_CONFIGS, 4, resources=resource)["results"]
        if [each["value"] for each in found["configs"]] == [value]:
            return
        assert time.monotonic() < deadline, found


def dump(*flags: str, files: list[Path]) -> str:
    return tool("DumpLogSegments", *flags, "--files", ",".join(map(str, files)))


def test_dump_log_segments_reads_our_metadata_log(node: Node) -> None:
    name = make_topic(node, "tools.metadata")
    log = sorted((node.data / "__cluster_metadata-0").glob("*.log"))[-1]

    out = tool("DumpLogSegments", "--cluster-metadata-decoder", "--files", str(log))

    assert f'"type":"TOPIC_RECORD","version":0,"data":{{"name":"{name}"' in out
    assert "isvalid: false" not in out and "Error" not in out
