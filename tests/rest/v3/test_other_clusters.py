"""Clusters that tests rarely have: replicas that move, many brokers, brokers that cannot be reached."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import httpx
import pytest

from barnabas.client.admin.cluster import ClusterDescription
from barnabas.client.admin.topics import PartitionDescription, Reassignment, TopicDescription, TopicPage
from barnabas.client.core.address import Address
from barnabas.client.core.errors import AuthenticationError, ConnectError
from barnabas.client.core.topology import Node, TopicPartition
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.rest.application.service import rest_service
from barnabas.rest.kafka import Kafka, KafkaSettings
from barnabas.rest.proxy import Proxy, ProxySettings
from barnabas.services.app import ServiceApp

MOVING = TopicPartition("moving", 1)
REPLICAS = (1, 2, 3)


class ThreeBrokers:
    """An administrator of three brokers, and of two topics. Partition 1 of one of them moves to broker 3."""

    def __init__(self) -> None:
        self.refusal: Exception | None = None

    async def describe_cluster(self) -> ClusterDescription:
        if self.refusal is not None:
            raise self.refusal
        nodes = tuple(Node(number, f"broker-{number}", 9092, "rack") for number in REPLICAS)
        return ClusterDescription("three", 2, nodes)

    async def describe_topics(self, names: Iterable[str]) -> list[TopicDescription]:
        return [topic(name) for name in names]

    async def describe_all_topics(self, cursor: object, limit: int) -> TopicPage:
        return TopicPage((topic("moving"), topic("still")), None)

    async def list_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, Reassignment]:
        moving = {MOVING: Reassignment(REPLICAS, (3,), (1,))}
        return moving if partitions is None or MOVING in partitions else {}


def topic(name: str) -> TopicDescription:
    partitions = (
        PartitionDescription(0, None, (1, 2), ()),
        PartitionDescription(1, 2, REPLICAS, (1, 2)),
    )
    return TopicDescription(name, b"", False, partitions)


def asked(path: str, admin: Any = None, settings: ProxySettings | None = None) -> httpx.Response:
    async def run() -> httpx.Response:
        kafka = Kafka(KafkaSettings([Address("127.0.0.1", 1)]))
        if admin is not None:
            kafka.admin = admin
        app = ServiceApp(rest_service(Proxy(kafka, settings)))
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://proxy") as client:
            return await client.get(path)

    return asyncio.run(run())


def test_reassignments_of_all_of_a_topic_and_of_a_partition() -> None:
    root = "/v3/clusters/three/topics"
    everything = asked(f"{root}/-/partitions/-/reassignment", ThreeBrokers()).json()
    assert everything["kind"] == "KafkaReassignmentList"
    [found] = everything["data"]
    url = f"http://proxy{root}/moving/partitions/1"
    assert found == {
        "kind": "KafkaReassignment",
        "metadata": {
            "self": f"{url}/reassignment",
            "resource_name": "crn:///kafka=three/topic=moving/partition=1/reassignment",
        },
        "cluster_id": "three",
        "topic_name": "moving",
        "partition_id": 1,
        "adding_replicas": [3],
        "removing_replicas": [1],
        "replicas": {"related": f"{url}/replicas"},
    }
    of_topic = asked(f"{root}/moving/partitions/-/reassignment", ThreeBrokers()).json()
    assert of_topic["data"] == [found]
    assert asked(f"{root}/moving/partitions/1/reassignment", ThreeBrokers()).json() == found
    assert asked(f"{root}/moving/partitions/0/reassignment", ThreeBrokers()).status_code == 404
    assert asked(f"{root}/still/partitions/-/reassignment", ThreeBrokers()).json()["data"] == []


def test_replicas_that_lead_follow_and_lag() -> None:
    found = asked("/v3/clusters/three/topics/moving/partitions/1/replicas", ThreeBrokers()).json()["data"]
    assert [(each["broker_id"], each["is_leader"], each["is_in_sync"]) for each in found] == [
        (1, False, True),
        (2, True, True),
        (3, False, False),
    ]
    on_third = asked("/v3/clusters/three/brokers/3/partition-replicas", ThreeBrokers()).json()["data"]
    assert [(each["topic_name"], each["partition_id"]) for each in on_third] == [("moving", 1), ("still", 1)]


def test_a_partition_without_a_leader_has_no_link_to_one() -> None:
    first, second = asked("/v3/clusters/three/topics/moving/partitions", ThreeBrokers()).json()["data"]
    assert "leader" not in first
    assert second["leader"]["related"].endswith("/partitions/1/replicas/2")


def test_the_controller_and_an_advertised_address() -> None:
    settings = ProxySettings(advertised_url="https://proxy.example", crn_authority="shop")
    [found] = asked("/v3/clusters", ThreeBrokers(), settings).json()["data"]
    assert found["controller"]["related"] == "https://proxy.example/v3/clusters/three/brokers/2"
    assert found["metadata"]["resource_name"] == "crn://shop/kafka=three"


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (ConnectError(Address("broker", 9092), "refused"), 503, 50302),
        (AuthenticationError(Address("broker", 9092), "wrong password"), 401, 40101),
        (KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED), 403, 40301),
        (KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED), 429, 42901),
        (KafkaError(ErrorCode.NOT_CONTROLLER), 500, 50003),
        (KafkaError(ErrorCode.INVALID_TIMESTAMP), 500, 50002),
    ],
)
def test_errors_of_the_cluster_have_their_status(error: Exception, status: int, code: int) -> None:
    admin = ThreeBrokers()
    admin.refusal = error
    response = asked("/v3/clusters", admin)
    assert (response.status_code, response.json()["error_code"]) == (status, code)


def test_brokers_that_cannot_be_reached() -> None:
    response = asked("/v3/clusters")
    assert (response.status_code, response.json()["error_code"]) == (503, 50302)
    assert response.json()["message"].startswith("Service Unavailable: cannot connect to 127.0.0.1:1")
