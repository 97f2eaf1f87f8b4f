"""Requests to the controller of a running node, and its timers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from barnabas.protocol import ErrorCode, Message
from barnabas.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from barnabas.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from barnabas.protocol.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from barnabas.protocol.messages.create_partitions import CreatePartitionsRequest
from barnabas.protocol.messages.create_topics import CreateTopicsRequest
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest
from barnabas.protocol.messages.describe_quorum import DescribeQuorumRequest
from barnabas.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from barnabas.protocol.messages.unregister_broker import UnregisterBrokerRequest
from barnabas.protocol.messages.vote import VoteRequest
from barnabas.quorum.broker_lifecycle import BrokerLifecycle
from barnabas.testing.waiting import until
from runtime.nodes import Node, run, settings_for


async def started(tmp_path: Path, **overrides: str) -> Node:
    node = Node(settings_for(tmp_path / "data", **overrides))
    node.format()
    return await node.start()


def registration(node: Node, broker: int, incarnation: bytes) -> BrokerRegistrationRequest:
    own = node.lifecycle._registration()
    own.broker_id = broker
    own.incarnation_id = incarnation
    own.log_dirs = [bytes([broker]) * 16]
    return own


def test_every_request_of_a_stopped_controller_is_refused_in_its_own_shape(tmp_path: Path) -> None:
    topic = CreateTopicsRequest.CreatableTopic(name="t")
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(resource_type=2, resource_name="t")
    requests: list[tuple[Message, str]] = [
        (CreateTopicsRequest(topics=[topic]), "topics"),
        (DeleteTopicsRequest(topic_names=["t"]), "responses"),
        (
            CreatePartitionsRequest(topics=[CreatePartitionsRequest.CreatePartitionsTopic(name="t")]),
            "results",
        ),
        (IncrementalAlterConfigsRequest(resources=[resource]), "responses"),
        (AllocateProducerIdsRequest(broker_id=1), ""),
        (BrokerHeartbeatRequest(broker_id=1), ""),
        (UnregisterBrokerRequest(broker_id=1), ""),
    ]

    async def main() -> None:
        node = await started(tmp_path)
        await node.stop()
        for request, part in requests:
            response: Any = await node.controller.handle(request)
            refused = getattr(response, part)[0] if part else response
            assert refused.error_code == ErrorCode.NOT_CONTROLLER, request

    run(main)


def test_a_request_that_the_controller_does_not_know_is_refused(tmp_path: Path) -> None:
    async def main() -> None:
        node = await started(tmp_path)
        response = await node.controller.handle(VoteRequest())
        assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
        await node.stop()

    run(main)


def test_a_topic_can_be_created_grown_configured_and_deleted(tmp_path: Path) -> None:
    async def main() -> None:
        node = await started(tmp_path)
        handle = node.controller.handle
        created = await node.create("t", 2)
        assert (created.error_code, created.num_partitions) == (ErrorCode.NONE, 2)
        assert created.topic_id == node.controller.image.topics.by_name["t"].id
        grow = CreatePartitionsRequest.CreatePartitionsTopic(name="t", count=3, assignments=None)
        assert (await handle(CreatePartitionsRequest(topics=[grow]))).results[0].error_code == ErrorCode.NONE
        assert len(node.controller.image.topics.by_name["t"].partitions) == 3
        resource = IncrementalAlterConfigsRequest.AlterConfigsResource
        change = resource.AlterableConfig(name="retention.ms", value="7")
        wanted = resource(resource_type=2, resource_name="t", configs=[change])
        altered = await handle(IncrementalAlterConfigsRequest(resources=[wanted]))
        assert altered.responses[0].error_code == ErrorCode.NONE
        assert node.controller.image.configs.topic("t") == {"retention.ms": "7"}
        deleted = await handle(DeleteTopicsRequest(topic_names=["t"]))
        assert deleted.responses[0].error_code == ErrorCode.NONE
        assert not node.controller.image.topics.by_name
        assert not node.controller.image.configs.topic("t")
        await node.stop()

    run(main)


def test_of_two_that_create_the_same_topic_at_once_one_wins(tmp_path: Path) -> None:
    async def main() -> None:
        node = await started(tmp_path)
        node.sync_in_threads()
        results = await asyncio.gather(*(node.create("t") for _ in range(2)))
        codes = sorted(result.error_code for result in results)
        assert codes == [ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS]
        await node.stop()

    run(main)


def test_producer_ids_are_never_given_twice(tmp_path: Path) -> None:
    async def main() -> None:
        node = await started(tmp_path)
        node.sync_in_threads()
        request = AllocateProducerIdsRequest(broker_id=1, broker_epoch=node.lifecycle.epoch)
        blocks = await asyncio.gather(*(node.controller.handle(request) for _ in range(5)))
        starts = sorted(block.producer_id_start for block in blocks)
        assert starts == [0, 1000, 2000, 3000, 4000]
        await node.kill()
        second = await Node(node.settings).start()
        request = AllocateProducerIdsRequest(broker_id=1, broker_epoch=second.lifecycle.epoch)
        assert (await second.controller.handle(request)).producer_id_start == 5000
        await second.stop()

    run(main)


def test_deleting_can_be_disabled_and_old_clients_get_a_code_they_know(tmp_path: Path) -> None:
    async def main() -> None:
        node = await started(tmp_path, delete_topic_enable="false")
        request = DeleteTopicsRequest(topic_names=["t"])
        new = await node.controller.handle(request, 5)
        old = await node.controller.handle(request, 1)
        assert new.responses[0].error_code == ErrorCode.TOPIC_DELETION_DISABLED
        assert old.responses[0].error_code == ErrorCode.INVALID_REQUEST
        await node.stop()

    run(main)


def test_the_quorum_describes_itself(tmp_path: Path) -> None:
    async def main() -> None:
        node = await started(tmp_path)
        topic = DescribeQuorumRequest.TopicData
        wanted = topic(topic_name="__cluster_metadata", partitions=[topic.PartitionData(partition_index=0)])
        response = await node.controller.handle(DescribeQuorumRequest(topics=[wanted]), 2)
        [partition] = response.topics[0].partitions
        assert partition.high_watermark == node.log.high_watermark
        assert [voter.replica_id for voter in partition.current_voters] == [1]
        await node.stop()

    run(main)


def test_another_broker_that_falls_silent_is_fenced(tmp_path: Path) -> None:
    async def main() -> None:
        node = await started(tmp_path, broker_session_timeout_ms="300", broker_heartbeat_interval_ms="50")
        handle = node.controller.handle
        joined = await handle(registration(node, 2, b"i" * 16))
        beat = BrokerHeartbeatRequest(
            broker_id=2,
            broker_epoch=joined.broker_epoch,
            current_metadata_offset=node.log.high_watermark,
            want_fence=False,
        )
        assert not (await handle(beat)).is_fenced
        await until(lambda: node.controller.image.cluster.brokers[2].fenced)
        await node.kill()

    run(main)


def test_an_id_in_use_cannot_be_registered_by_another(tmp_path: Path) -> None:
    async def main() -> None:
        node = await started(tmp_path)
        response = await node.controller.handle(registration(node, 1, b"x" * 16))
        assert response.error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
        await node.stop()

    run(main)


def test_our_own_broker_need_not_wait_for_its_old_session_after_a_crash(tmp_path: Path) -> None:
    async def main() -> None:
        node = await started(tmp_path)
        first_epoch = node.lifecycle.epoch
        await node.kill()
        second = await Node(node.settings).start()
        assert second.lifecycle.epoch > first_epoch
        assert not second.controller.image.cluster.brokers[1].fenced
        await second.stop()

    run(main)


def test_a_refused_registration_raises_its_error(tmp_path: Path) -> None:
    async def main() -> None:
        node = await started(tmp_path)
        node.lifecycle._identity = type(node.lifecycle._identity)(
            1, "another-cluster", b"x" * 16, (), [b"d" * 16]
        )
        with pytest.raises(Exception, match="INCONSISTENT_CLUSTER_ID"):
            await node.lifecycle.register()
        await node.kill()

    run(main)


def test_a_broker_retries_when_the_controllers_disk_fails(tmp_path: Path) -> None:
    """Another controller takes over."""

    async def main() -> None:
        node = await started(tmp_path)
        answers = [ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_CONTROLLER, ErrorCode.NONE]

        async def send(request: Message) -> BrokerRegistrationResponse:
            return BrokerRegistrationResponse(error_code=answers.pop(0), broker_epoch=7)

        lifecycle = BrokerLifecycle(node.lifecycle._identity, send, lambda: 0, 100)
        assert await lifecycle.register(timeout_ms=60_000) == 7
        assert not answers
        await node.stop()

    run(main)


def test_a_controlled_shutdown_fences_and_leaves_partitions_to_return_to(tmp_path: Path) -> None:
    async def main() -> None:
        node = await started(tmp_path)
        await node.create("t", 2)
        await node.stop()
        image = node.log.image
        assert image.cluster.brokers[1].fenced
        for partition in image.topics.by_name["t"].partitions.values():
            assert (partition.leader, partition.isr, partition.elr) == (-1, (), (1,))

    run(main)


def test_settings_changed_while_running_show_in_new_topics(tmp_path: Path) -> None:
    async def main() -> None:
        node = await started(tmp_path)
        resource = IncrementalAlterConfigsRequest.AlterConfigsResource
        change = resource.AlterableConfig(name="log.retention.ms", value="1234")
        wanted = resource(resource_type=4, resource_name="", configs=[change])
        altered = await node.controller.handle(IncrementalAlterConfigsRequest(resources=[wanted]))
        assert altered.responses[0].error_code == ErrorCode.NONE
        created = await node.create("t")
        assert {config.name: config.value for config in created.configs}["retention.ms"] == "1234"
        await node.stop()

    run(main)
