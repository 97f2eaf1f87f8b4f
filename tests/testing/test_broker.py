"""Brokers for users' tests: in process, as a child, by fixture."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from barnabas.protocol import KafkaError
from barnabas.testing import Broker

pytest_plugins = ["pytester"]


def topics_of(broker: Broker) -> dict[str, int]:
    found = AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(timeout=10).topics
    return {name: len(topic.partitions) for name, topic in found.items()}


@pytest.mark.parametrize("in_process", [True, False])
def test_a_broker_is_a_with_statement(in_process: bool) -> None:
    with Broker(in_process=in_process) as broker:
        broker.create_topic("orders", partitions=3, configs={"retention.ms": 1000})
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        producer.produce("orders", key="shop-1", value="one espresso")
        assert producer.flush(10) == 0
        assert topics_of(broker) == {"orders": 3}
        assert (broker.pid == os.getpid()) is in_process
        data = broker.data
    assert not data.exists()


def test_a_given_folder_is_kept(tmp_path: Path) -> None:
    with Broker(tmp_path / "data") as broker:
        broker.create_topic("kept")
    with Broker(tmp_path / "data") as broker:
        assert topics_of(broker) == {"kept": 1}


def test_a_killed_broker_starts_again_on_its_port(tmp_path: Path) -> None:
    with Broker(tmp_path / "data", in_process=False) as broker:
        broker.create_topic("survivor")
        broker.kill()
        broker.start()
        assert topics_of(broker) == {"survivor": 1}


def test_a_broker_can_be_used_inside_a_running_loop() -> None:
    async def test() -> dict[str, int]:
        with Broker() as broker:
            broker.create_topic("inside", partitions=2)
            return topics_of(broker)

    assert asyncio.run(test()) == {"inside": 2}


def test_a_broker_that_cannot_start_says_why(tmp_path: Path) -> None:
    with (
        pytest.raises(Exception, match=r"num\.partitions"),
        Broker(tmp_path / "data", overrides={"num.partitions": 0}),
    ):
        pass


def test_topics_are_made_also_inside_of_a_running_loop(tmp_path: Path) -> None:
    async def main() -> None:
        with Broker(tmp_path / "data") as broker:
            broker.create_topic("t")
            with pytest.raises(KafkaError, match="TOPIC_ALREADY_EXISTS"):
                broker.create_topic("t")

    asyncio.run(main())


def test_the_pytest_plugin_brings_a_broker_and_a_topic(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        from confluent_kafka.admin import AdminClient

        def test_uses_both(barnabas_broker, barnabas_topic):
            admin = AdminClient({"bootstrap.servers": barnabas_broker.bootstrap})
            assert barnabas_topic == "test_uses_both"
            assert barnabas_topic in admin.list_topics(timeout=10).topics

        def test_the_topic_of_another_test_is_gone(barnabas_broker):
            admin = AdminClient({"bootstrap.servers": barnabas_broker.bootstrap})
            assert "test_uses_both" not in admin.list_topics(timeout=10).topics
        """
    )
    # Otherwise pytest rewrites the asserts of all our modules.
    pytester.runpytest_subprocess("-q", "--assert=plain").assert_outcomes(passed=2)
