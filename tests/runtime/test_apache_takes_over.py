"""One folder, two products: Apache Kafka continues where we stopped, and we where it was killed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from barnabas.metadata.image import MetadataImage
from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from barnabas.testing import apache
from runtime.nodes import Node, run, settings_for

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.usefixtures("java")]
METADATA = "__cluster_metadata-0"


@pytest.fixture(params=["static", pytest.param("standalone", marks=pytest.mark.long)])
def kafka(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[apache.ApacheKafka]:
    """Not started. With static voters, or with a dynamic quorum of one."""
    overrides = {"metadata.log.max.record.bytes.between.snapshots": "3000"}
    if request.param == "standalone":
        overrides |= {
            "controller.quorum.voters": "",
            "controller.quorum.bootstrap.servers": "127.0.0.1:1",
        }
    found = apache.ApacheKafka(tmp_path / "data", overrides, heap="512m")
    yield found
    found.close()


def node_on(kafka: apache.ApacheKafka) -> Node:
    """Our node with the folder and the addresses of Apache Kafka's."""
    settings = {
        "listeners": f"PLAINTEXT://127.0.0.1:{kafka.port},CONTROLLER://127.0.0.1:{kafka.controller_port}",
        "controller_quorum_voters": f"1@127.0.0.1:{kafka.controller_port}",
    }
    if is_dynamic(kafka):
        settings["controller_quorum_bootstrap_servers"] = "127.0.0.1:1"
    return Node(settings_for(kafka.data, **settings))


def is_dynamic(kafka: apache.ApacheKafka) -> bool:
    return kafka._settings["controller.quorum.voters"] == ""


def use(node: Node, topic: str, producer_ids: int) -> MetadataImage:
    """Start our node on the folder, check what it finds, create a topic, allocate producer ids, stop."""

    async def main() -> MetadataImage:
        await node.start()
        assert node.controller.image.next_producer_id == producer_ids
        created = await node.create(topic, 2, retention_ms="5000")
        assert created.error_code == ErrorCode.NONE
        request = AllocateProducerIdsRequest(broker_id=1, broker_epoch=node.lifecycle.epoch)
        assert (await node.controller.handle(request)).producer_id_start == producer_ids
        await node.log.snapshot()
        await node.stop()
        return node.log.image

    return run(main)


def topics_of(kafka: apache.ApacheKafka) -> dict[str, set[int]]:
    """The topics that Apache Kafka serves, with the leaders of their partitions."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    found = admin.list_topics(timeout=20).topics
    return {
        name: {partition.leader for partition in topic.partitions.values()}
        for name, topic in found.items()
        if not name.startswith("__")
    }


def retention_of(kafka: apache.ApacheKafka, topic: str) -> str:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    [described] = admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]).values()
    return str(described.result()["retention.ms"].value)


def produce(kafka: apache.ApacheKafka, topic: str) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "enable.idempotence": True})
    producer.produce(topic, b"x")
    assert producer.flush(30) == 0


def test_a_folder_goes_from_ours_to_apache_kafka_and_back(kafka: apache.ApacheKafka) -> None:
    node_on(kafka).format(standalone=is_dynamic(kafka))
    use(node_on(kafka), "ours", producer_ids=0)

    kafka.start()
    assert topics_of(kafka) == {"ours": {1}}
    assert retention_of(kafka, "ours") == "5000"
    produce(kafka, "ours")
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.create_topics([NewTopic("theirs", 3, 1)])["theirs"].result()
    kafka.kill()

    image = use(node_on(kafka), "ours-again", producer_ids=2000)
    assert sorted(image.topics.by_name) == ["ours", "ours-again", "theirs"]
    assert image.configs.topic("ours") == {"retention.ms": "5000"}

    kafka.start()
    assert topics_of(kafka) == {"ours": {1}, "theirs": {1}, "ours-again": {1}}
    kafka.stop()


def test_kafkas_own_tool_reads_our_log_and_our_snapshots(kafka: apache.ApacheKafka) -> None:
    node = node_on(kafka)
    node.format(standalone=is_dynamic(kafka))
    use(node, "ours", producer_ids=0)
    folder = kafka.data / METADATA
    files = [kafka.data / "bootstrap.checkpoint", *folder.glob("*.checkpoint"), *folder.glob("*.log")]
    assert len(files) >= 3
    for file in files:
        dumped = apache.tool(
            "org.apache.kafka.tools.DumpLogSegments", "--cluster-metadata-decoder", "--files", str(file)
        )
        assert dumped.returncode == 0, dumped.stderr
        assert "isvalid: false" not in dumped.stdout
        assert "ERROR" not in dumped.stdout
        if file.suffix == ".log" or not file.name.startswith(("bootstrap", "0" * 20)):
            assert '"type":"TOPIC_RECORD","version":0,"data":{"name":"ours"' in dumped.stdout
            assert '"type":"PARTITION_RECORD","version":2' in dumped.stdout
