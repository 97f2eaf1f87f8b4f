"""The cluster, its brokers, topics and partitions as resources of v3."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from rest.serving import HTTP, Served


def get(url: str, **given: Any) -> Any:
    response = HTTP.get(url, **given)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/json"
    return response.json()


def refused(response: httpx.Response, status: int, code: int) -> str:
    assert (response.status_code, response.json()["error_code"]) == (status, code), response.text
    message: str = response.json()["message"]
    assert ": " in message
    return message


def test_there_is_one_cluster_with_links_to_everything(proxy: Served) -> None:
    found = get(f"{proxy.url}/v3/clusters")
    assert found["kind"] == "KafkaClusterList"
    assert found["metadata"] == {"self": f"{proxy.url}/v3/clusters", "next": None}
    [cluster] = found["data"]
    assert cluster == get(proxy.cluster)
    assert cluster["kind"] == "KafkaCluster"
    assert cluster["metadata"] == {
        "self": proxy.cluster,
        "resource_name": f"crn:///kafka={proxy.cluster_id}",
    }
    assert cluster["topics"] == {"related": f"{proxy.cluster}/topics"}
    links = ("controller", "acls", "brokers", "broker_configs", "consumer_groups", "partition_reassignments")
    for link in links:
        assert get(cluster[link]["related"])["kind"].startswith("Kafka")


@pytest.mark.parametrize("path", ["", "/topics", "/brokers", "/consumer-groups", "/acls", "/broker-configs"])
def test_another_cluster_id_is_not_found(proxy: Served, path: str) -> None:
    message = refused(HTTP.get(f"{proxy.url}/v3/clusters/other{path}"), 404, 404)
    assert message == "Not Found: Cluster other cannot be found."


def test_brokers_have_host_port_and_links(proxy: Served) -> None:
    [broker] = get(f"{proxy.cluster}/brokers")["data"]
    assert broker["kind"] == "KafkaBroker"
    number = broker["broker_id"]
    assert broker["metadata"]["resource_name"] == f"crn:///kafka={proxy.cluster_id}/broker={number}"
    assert isinstance(broker["host"], str)
    assert isinstance(broker["port"], int)
    assert get(f"{proxy.cluster}/brokers/{number}") == broker
    assert broker["configs"]["related"] == f"{proxy.cluster}/brokers/{number}/configs"
    refused(HTTP.get(f"{proxy.cluster}/brokers/999"), 404, 404)
    refused(HTTP.get(f"{proxy.cluster}/brokers/one"), 404, 404)
    refused(HTTP.get(f"{proxy.cluster}/brokers/-5"), 404, 404)


def test_urls_name_the_host_of_the_request(proxy: Served) -> None:
    found = get(f"{proxy.url}/v3/clusters", headers={"host": "kafka.example:1234"})
    assert found["metadata"]["self"] == "http://kafka.example:1234/v3/clusters"
    hostile = get(f"{proxy.url}/v3/clusters", headers={"host": "x/<script>"})
    assert hostile["metadata"]["self"].startswith("http://127.0.0.1")


def test_a_topic_is_created_described_grown_and_deleted(proxy: Served, fresh_name: Callable[[], str]) -> None:
    name = fresh_name()
    body = {
        "topic_name": name,
        "partitions_count": 2,
        "replication_factor": 1,
        "configs": [{"name": "cleanup.policy", "value": "compact"}],
    }
    created = HTTP.post(f"{proxy.cluster}/topics", json=body)
    assert created.status_code == 201, created.text
    url = f"{proxy.cluster}/topics/{name}"
    assert created.headers["location"] == url
    assert created.json() == {
        "kind": "KafkaTopic",
        "metadata": {"self": url, "resource_name": f"crn:///kafka={proxy.cluster_id}/topic={name}"},
        "cluster_id": proxy.cluster_id,
        "topic_name": name,
        "is_internal": False,
        "replication_factor": 1,
        "partitions_count": 2,
        "partitions": {"related": f"{url}/partitions"},
        "configs": {"related": f"{url}/configs"},
        "partition_reassignments": {"related": f"{url}/partitions/-/reassignment"},
    }
    assert get(url) == created.json()
    assert name in [each["topic_name"] for each in get(f"{proxy.cluster}/topics")["data"]]
    assert get(f"{url}/configs/cleanup.policy")["value"] == "compact"
    message = refused(HTTP.post(f"{proxy.cluster}/topics", json=body), 400, 40002)
    assert "exists" in message
    grown = HTTP.patch(url, json={"partitions_count": 4})
    assert (grown.status_code, grown.json()["partitions_count"]) == (200, 4)
    assert [each["partition_id"] for each in get(f"{url}/partitions")["data"]] == [0, 1, 2, 3]
    refused(HTTP.patch(url, json={"partitions_count": 2}), 400, 40002)
    assert HTTP.delete(url).status_code == 204
    refused(HTTP.get(url), 404, 40403)
    refused(HTTP.delete(url), 404, 40403)
    refused(HTTP.patch(url, json={"partitions_count": 9}), 404, 40403)


def test_defaults_assignments_and_validation_of_new_topics(
    proxy: Served, fresh_name: Callable[[], str]
) -> None:
    topics = f"{proxy.cluster}/topics"
    by_default = HTTP.post(topics, json={"topic_name": fresh_name()})
    assert by_default.status_code == 201
    assert by_default.json()["partitions_count"] >= 1
    [broker] = get(f"{proxy.cluster}/brokers")["data"]
    number = broker["broker_id"]
    assigned = HTTP.post(
        topics, json={"topic_name": fresh_name(), "replicas_assignments": {"0": [number], "1": [number]}}
    )
    assert (assigned.status_code, assigned.json()["partitions_count"]) == (201, 2)
    assert assigned.json()["replication_factor"] == 1
    name = fresh_name()
    checked = HTTP.post(topics, json={"topic_name": name, "partitions_count": 3, "validate_only": True})
    assert (checked.status_code, checked.json()["partitions_count"]) == (200, 3)
    refused(HTTP.get(f"{topics}/{name}"), 404, 40403)


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 422, 42206),
        (b"{", 400, 400),
        (b"[]", 400, 400),
        (b"{}", 422, 42206),
        (b'{"topic_name":""}', 422, 42206),
        (b'{"topic_name":"a/b"}', 422, 42206),
        (b'{"topic_name":"x","colour":1}', 422, 422),
        (b'{"topic_name":5}', 400, 400),
        (b'{"topic_name":"x","partitions_count":"2"}', 400, 400),
        (b'{"topic_name":"x","partitions_count":0}', 400, 40002),
        (b'{"topic_name":"x","partitions_count":99999999999}', 400, 400),
        (b'{"topic_name":"x","replication_factor":50}', 400, 40002),
        (b'{"topic_name":"x","replication_factor":70000}', 400, 40002),
        (b'{"topic_name":"x","replicas_assignments":{"1":[1]}}', 400, 40002),
        (b'{"topic_name":"x","replicas_assignments":{"0":1}}', 400, 400),
        (b'{"topic_name":"x","configs":[{"name":"no.such","value":"1"}]}', 400, 40002),
        (b'{"topic_name":"x","configs":[{"value":"1"}]}', 422, 42206),
        (b'{"topic_name":"x","configs":{}}', 400, 400),
    ],
)
def test_new_topics_that_are_refused(proxy: Served, body: bytes, status: int, code: int) -> None:
    response = HTTP.post(
        f"{proxy.cluster}/topics", content=body, headers={"content-type": "application/json"}
    )
    assert (response.status_code, response.json()["error_code"]) == (status, code), response.text


def test_other_media_types_are_refused(proxy: Served) -> None:
    form = HTTP.post(f"{proxy.cluster}/topics", data={"topic_name": "x"})
    assert (form.status_code, form.json()["error_code"]) == (415, 415)
    xml = HTTP.get(f"{proxy.cluster}/topics", headers={"accept": "text/xml"})
    assert (xml.status_code, xml.json()["error_code"]) == (406, 406)


def test_partitions_and_replicas(proxy: Served, topic: str) -> None:
    url = f"{proxy.cluster}/topics/{topic}/partitions"
    first, _ = get(url)["data"]
    assert get(f"{url}/0") == first
    assert first["kind"] == "KafkaPartition"
    assert first["metadata"]["resource_name"].endswith(f"/topic={topic}/partition=0")
    [replica] = get(f"{url}/0/replicas")["data"]
    assert replica["is_leader"] is True
    assert replica["is_in_sync"] is True
    number = replica["broker_id"]
    assert first["leader"]["related"] == replica["metadata"]["self"] == f"{url}/0/replicas/{number}"
    assert get(f"{url}/0/replicas/{number}") == replica
    here = get(f"{proxy.cluster}/brokers/{number}/partition-replicas")["data"]
    assert replica in here
    refused(HTTP.get(f"{url}/9"), 404, 40403)
    refused(HTTP.get(f"{url}/x"), 404, 404)
    refused(HTTP.get(f"{url}/0/replicas/999"), 404, 404)
    refused(HTTP.get(f"{proxy.cluster}/topics/none/partitions"), 404, 40403)
    refused(HTTP.get(f"{proxy.cluster}/brokers/999/partition-replicas"), 404, 404)


def test_offsets_of_a_partition(proxy: Served, topic: str) -> None:
    url = f"{proxy.cluster}/topics/{topic}"
    for _ in range(3):
        record = {"partition_id": 1, "value": {"type": "STRING", "data": "x"}}
        assert HTTP.post(f"{url}/records", json=record).json()["error_code"] == 200
    both = get(f"{url}/partitions/1/offset")
    assert (both["earliest_offset"], both["latest_offset"]) == (0, 3)
    assert "earliest_offset" not in get(f"{url}/partitions/1/offset?offset_type=latest")
    assert get(f"{url}/partitions/1/offset?offset_type=earliest")["earliest_offset"] == 0
    refused(HTTP.get(f"{url}/partitions/1/offset?offset_type=middle"), 400, 400)
    refused(HTTP.get(f"{url}/partitions/7/offset"), 404, 40403)


def test_nothing_is_being_reassigned_on_one_broker(proxy: Served, topic: str) -> None:
    assert get(f"{proxy.cluster}/topics/-/partitions/-/reassignment")["data"] == []
    assert get(f"{proxy.cluster}/topics/{topic}/partitions/-/reassignment")["data"] == []
    refused(HTTP.get(f"{proxy.cluster}/topics/{topic}/partitions/0/reassignment"), 404, 404)
    refused(HTTP.get(f"{proxy.cluster}/topics/none/partitions/-/reassignment"), 404, 40403)


def test_authorized_operations_are_told_when_asked(proxy: Served, topic: str) -> None:
    assert "authorized_operations" not in get(f"{proxy.cluster}/topics/{topic}")
    found = get(f"{proxy.cluster}/topics/{topic}?include_authorized_operations=true")
    assert {"READ", "WRITE", "DELETE"} <= set(found["authorized_operations"])
    refused(HTTP.get(f"{proxy.cluster}/topics/{topic}?include_authorized_operations=maybe"), 400, 400)
