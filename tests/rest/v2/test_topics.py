"""Topics, partitions, offsets and brokers of API v2."""

from __future__ import annotations

import pytest

from rest.v2.calling import V2, Api, refusal


def test_topics_are_listed_and_described(api: Api, topic: str) -> None:
    response = api.get("/topics")
    assert response.headers["content-type"] == V2
    assert topic in response.json()
    found = api.get(f"/topics/{topic}").json()
    assert found["name"] == topic
    assert found["configs"]["cleanup.policy"] == "delete"
    (broker,) = api.get("/brokers").json()["brokers"]
    replicas = [{"broker": broker, "leader": True, "in_sync": True}]
    partitions = [{"partition": index, "leader": broker, "replicas": replicas} for index in range(2)]
    assert found["partitions"] == partitions
    assert api.get(f"/topics/{topic}/partitions").json() == partitions
    assert api.get(f"/topics/{topic}/partitions/1").json() == partitions[1]


def test_offsets_are_those_of_the_partition(api: Api, topic: str) -> None:
    api.produce(topic, {"value": 1, "partition": 1}, {"value": 2, "partition": 1})
    found = api.get(f"/topics/{topic}/partitions/1/offsets").json()
    assert found == {"beginning_offset": 0, "end_offset": 2}


def test_the_root_is_empty(api: Api) -> None:
    assert api.get("/").json() == {}
    assert api.get("/", accept=None).headers["content-type"] == V2


@pytest.mark.parametrize("path", ["", "/partitions", "/partitions/0", "/partitions/0/offsets"])
def test_a_topic_that_is_not_there_is_not_made(api: Api, path: str) -> None:
    assert refusal(api.get(f"/topics/nobody{path}")) == (404, 40403)
    assert "nobody" not in api.get("/topics").json()


@pytest.mark.parametrize("partition", ["7", "-1", "x", "99999999999"])
def test_partitions_that_are_not_there(api: Api, topic: str, partition: str) -> None:
    for path in ("", "/offsets"):
        assert refusal(api.get(f"/topics/{topic}/partitions/{partition}{path}")) == (404, 40402)


def test_media_types_of_other_apis_are_refused(api: Api, topic: str) -> None:
    assert refusal(api.get("/topics", accept="application/json")) == (406, 406)
    assert refusal(api.post("/consumers/g", {}, content="application/json")) == (415, 415)
    assert refusal(api.post(f"/topics/{topic}", {"records": []}, content="application/json")) == (415, 415)
    assert refusal(api.post(f"/topics/{topic}", {"records": []}, content=None)) == (415, 415)
    assert api.get("/topics", accept=f"text/html, {V2};q=0.1").status_code == 200
