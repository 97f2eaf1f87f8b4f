"""Settings of topics and brokers through v3."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from barnabas.testing.waiting import wait_until
from rest.serving import HTTP, Served


def refused(response: httpx.Response, status: int, code: int) -> None:
    assert (response.status_code, response.json()["error_code"]) == (status, code), response.text


def values(url: str) -> dict[str, Any]:
    response = HTTP.get(url)
    assert response.status_code == 200, response.text
    return {each["name"]: each for each in response.json()["data"]}


def broker_id(proxy: Served) -> int:
    return int(HTTP.get(f"{proxy.cluster}/brokers").json()["data"][0]["broker_id"])


def test_a_setting_of_a_topic_is_set_and_reset(proxy: Served, topic: str) -> None:
    configs = f"{proxy.cluster}/topics/{topic}/configs"
    one = f"{configs}/retention.ms"
    before = HTTP.get(one).json()
    assert before["kind"] == "KafkaTopicConfig"
    assert before["topic_name"] == topic
    assert (before["is_default"], before["source"]) == (True, "DEFAULT_CONFIG")
    assert before["metadata"]["resource_name"].endswith(f"/topic={topic}/config=retention.ms")
    assert HTTP.put(one, json={"value": "12345"}).status_code == 204
    after = HTTP.get(one).json()
    assert (after["value"], after["is_default"]) == ("12345", False)
    assert after["source"] == "DYNAMIC_TOPIC_CONFIG"
    assert after["synonyms"][0] == {
        "name": "retention.ms",
        "value": "12345",
        "source": "DYNAMIC_TOPIC_CONFIG",
    }
    assert values(configs)["retention.ms"] == after
    assert HTTP.delete(one).status_code == 204
    assert HTTP.get(one).json() == before


def test_settings_of_a_topic_are_altered_all_or_none(proxy: Served, topic: str) -> None:
    configs = f"{proxy.cluster}/topics/{topic}/configs"
    alter = f"{configs}:alter"
    data = [{"name": "retention.ms", "value": "777"}, {"name": "cleanup.policy", "value": "compact"}]
    assert HTTP.post(alter, json={"data": data, "validate_only": True}).status_code == 204
    assert values(configs)["retention.ms"]["value"] != "777"
    assert HTTP.post(alter, json={"data": data}).status_code == 204
    assert (values(configs)["retention.ms"]["value"], values(configs)["cleanup.policy"]["value"]) == (
        "777",
        "compact",
    )
    half = [{"name": "retention.ms", "value": "888"}, {"name": "cleanup.policy", "value": "nonsense"}]
    refused(HTTP.post(alter, json={"data": half}), 400, 40002)
    refused(HTTP.post(alter, json={"data": [*data, {"name": "no.such", "value": "1"}]}), 404, 404)
    assert values(configs)["retention.ms"]["value"] == "777"
    back = [{"name": name, "operation": "DELETE"} for name in ("retention.ms", "cleanup.policy")]
    assert HTTP.post(alter, json={"data": back}).status_code == 204
    assert values(configs)["retention.ms"]["is_default"] is True


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 422, 42206),
        ({"data": [{"value": "1"}]}, 422, 42206),
        ({"data": [{"name": "retention.ms"}]}, 400, 40002),
        ({"data": [{"name": "retention.ms", "value": "1", "operation": "APPEND"}]}, 400, 400),
        ({"data": [{"name": "retention.ms", "value": 1}]}, 400, 400),
        ({"data": [{"name": "retention.ms", "value": "1"}] * 2}, 400, 40002),
        ({"data": 5}, 400, 400),
        ({"data": [], "x": 1}, 422, 422),
        ({"data": [], "validate_only": "yes"}, 400, 400),
    ],
)
def test_changes_that_are_refused(
    proxy: Served, topic: str, body: dict[str, Any], status: int, code: int
) -> None:
    refused(HTTP.post(f"{proxy.cluster}/topics/{topic}/configs:alter", json=body), status, code)


def test_settings_that_do_not_exist(proxy: Served, topic: str) -> None:
    configs = f"{proxy.cluster}/topics/{topic}/configs"
    refused(HTTP.get(f"{configs}/no.such"), 404, 404)
    refused(HTTP.put(f"{configs}/no.such", json={"value": "1"}), 404, 404)
    refused(HTTP.put(f"{configs}/retention.ms", json={"value": None}), 400, 40002)
    refused(HTTP.put(f"{configs}/retention.ms", json={"value": "soon"}), 400, 40002)
    refused(HTTP.get(f"{proxy.cluster}/topics/none/configs"), 404, 40403)
    refused(HTTP.put(f"{proxy.cluster}/topics/none/configs/retention.ms", json={"value": "1"}), 404, 40403)
    refused(HTTP.get(f"{proxy.cluster}/brokers/999/configs"), 404, 404)
    refused(HTTP.get(f"{proxy.cluster}/broker-configs/no.such"), 404, 404)


def test_a_dash_stands_for_all(proxy: Served, topic: str, fresh_name: Callable[[], str]) -> None:
    found = HTTP.get(f"{proxy.cluster}/topics/-/configs").json()
    assert found["kind"] == "KafkaTopicConfigList"
    of_topic = [each for each in found["data"] if each["topic_name"] == topic]
    assert {each["name"]: each for each in of_topic} == values(f"{proxy.cluster}/topics/{topic}/configs")
    brokers = HTTP.get(f"{proxy.cluster}/brokers/-/configs").json()
    assert {each["broker_id"] for each in brokers["data"]} == {broker_id(proxy)}


def until(url: str, **expected: Any) -> Any:
    """The resource, when it has these fields: a change reaches the broker a moment after its response."""
    found: Any = {}

    def is_there() -> bool:
        nonlocal found
        found = HTTP.get(url).json()
        return all(found.get(name) == value for name, value in expected.items())

    wait_until(is_there)
    return found


def test_settings_of_a_broker(proxy: Served) -> None:
    configs = f"{proxy.cluster}/brokers/{broker_id(proxy)}/configs"
    one = f"{configs}/log.cleaner.threads"
    before = HTTP.get(one).json()
    assert before["kind"] == "KafkaBrokerConfig"
    assert HTTP.put(one, json={"value": "2"}).status_code == 204
    until(one, source="DYNAMIC_BROKER_CONFIG", value="2")
    assert HTTP.delete(one).status_code == 204
    until(one, **before)
    data = [{"name": "log.cleaner.threads", "value": "2"}]
    assert HTTP.post(f"{configs}:alter", json={"data": data}).status_code == 204
    until(one, source="DYNAMIC_BROKER_CONFIG")
    data = [{"name": "log.cleaner.threads", "operation": "DELETE"}]
    assert HTTP.post(f"{configs}:alter", json={"data": data}).status_code == 204
    until(one, **before)
    listed = values(configs)
    assert listed["log.cleaner.threads"]["is_read_only"] is False
    assert all(each["value"] is None for each in listed.values() if each["is_sensitive"])


def test_settings_of_all_brokers(proxy: Served) -> None:
    configs = f"{proxy.cluster}/broker-configs"
    one = f"{configs}/log.cleaner.threads"
    refused(HTTP.get(one), 404, 404)
    assert HTTP.put(one, json={"value": "2"}).status_code == 204
    found = until(one, kind="KafkaClusterConfig", config_type="BROKER", value="2")
    assert found["metadata"]["resource_name"].endswith("/broker-config=log.cleaner.threads")
    assert values(configs)["log.cleaner.threads"] == found
    assert HTTP.delete(one).status_code == 204
    until(one, error_code=404)
    data = [{"name": "log.cleaner.threads", "value": "2"}]
    assert HTTP.post(f"{configs}:alter", json={"data": data}).status_code == 204
    until(one, value="2")
    assert HTTP.delete(one).status_code == 204
    refused(HTTP.put(one, json={"value": "many"}), 400, 40002)
