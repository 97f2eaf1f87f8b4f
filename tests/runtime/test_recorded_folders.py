"""Folders that Apache Kafka left behind, recorded once: they open without Java."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from barnabas.protocol import ErrorCode, uuid
from barnabas.storage.files import meta_properties
from barnabas.storage.files.meta_properties import MetaProperties
from runtime.nodes import CLUSTER_ID, Node, run, settings_for

METADATA = "__cluster_metadata-0"
RECORDED = Path(__file__).parents[1] / "metadata" / "data"


@pytest.mark.parametrize("name", ["static", "dynamic"])
def test_a_folder_of_apache_kafka_opens(tmp_path: Path, name: str) -> None:
    async def main() -> None:
        overrides = {}
        if name == "dynamic":
            overrides["controller_quorum_bootstrap_servers"] = "127.0.0.1:9093"
        node = Node(settings_for(tmp_path / "data", **overrides))
        node.format(no_initial_controllers=name == "dynamic")
        shutil.copytree(RECORDED / name, Path(node.settings.metadata_log_dir) / METADATA, dirs_exist_ok=True)
        adopt_directory_id(node, name)
        await node.start()
        image = node.controller.image
        assert list(image.topics.by_name) == ["orders"]
        assert image.next_producer_id == 1000
        for partition in image.topics.by_name["orders"].partitions.values():
            assert (partition.leader, partition.isr) == (1, (1,))
        assert node.controller.kraft_version == (1 if name == "dynamic" else 0)
        assert (await node.create("ours")).error_code == ErrorCode.NONE
        epoch = await node.stop()
        second = await Node(node.settings).start(previous_epoch=epoch)
        assert sorted(second.controller.image.topics.by_name) == ["orders", "ours"]
        await second.stop()

    run(main)


def adopt_directory_id(node: Node, name: str) -> None:
    """Use the recorded node's directory id: the records of brokers and voters hold it."""
    recorded = {"static": "awGJB_yMThnbKDp2XR30XA", "dynamic": "heB-Xdh5SFGURl6i7U5eIA"}[name]
    properties = MetaProperties(CLUSTER_ID, 1, uuid.from_text(recorded))
    meta_properties.store(node.context.disk, node.settings.metadata_log_dir, properties)
