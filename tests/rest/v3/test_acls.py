"""ACLs through v3."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from rest.serving import HTTP, Served

RULE = {
    "resource_type": "TOPIC",
    "resource_name": "t",
    "pattern_type": "LITERAL",
    "principal": "User:alice",
    "host": "*",
    "operation": "READ",
    "permission": "ALLOW",
}
NEEDED = {"resource_type": "ANY", "pattern_type": "ANY", "operation": "ANY", "permission": "ANY"}


def refused(response: httpx.Response, status: int, code: int) -> None:
    assert (response.status_code, response.json()["error_code"]) == (status, code), response.text


def listed(proxy: Served, **filters: str) -> list[dict[str, Any]]:
    response = HTTP.get(f"{proxy.cluster}/acls", params=filters)
    assert response.status_code == 200, response.text
    found: list[dict[str, Any]] = response.json()["data"]
    return found


@pytest.fixture(autouse=True)
def no_acls(proxy: Served) -> None:
    assert HTTP.delete(f"{proxy.cluster}/acls", params=NEEDED).status_code == 200


def test_an_acl_is_created_found_and_deleted(proxy: Served) -> None:
    created = HTTP.post(f"{proxy.cluster}/acls", json=RULE)
    assert (created.status_code, created.content) == (201, b"")
    [found] = listed(proxy)
    assert {name: found[name] for name in RULE} == RULE
    assert (found["kind"], found["cluster_id"]) == ("KafkaAcl", proxy.cluster_id)
    assert HTTP.get(found["metadata"]["self"]).json()["data"] == [found]
    deleted = HTTP.delete(f"{proxy.cluster}/acls", params={**NEEDED, "principal": "User:alice"})
    assert (deleted.status_code, deleted.json()) == (200, {"data": [found]})
    assert listed(proxy) == []


def test_filters_that_are_not_given_let_all_through(proxy: Served) -> None:
    others = [
        {**RULE, "resource_name": "u", "operation": "WRITE"},
        {**RULE, "resource_type": "GROUP", "resource_name": "g", "principal": "User:bob"},
        {**RULE, "resource_name": "pre", "pattern_type": "PREFIXED", "permission": "DENY"},
    ]
    batch = HTTP.post(f"{proxy.cluster}/acls:batch", json={"data": [RULE, *others]})
    assert (batch.status_code, batch.content) == (204, b"")
    assert len(listed(proxy)) == 4
    assert len(listed(proxy, resource_type="TOPIC")) == 3
    assert len(listed(proxy, principal="User:bob")) == 1
    assert len(listed(proxy, operation="WRITE", resource_type="TOPIC")) == 1
    assert len(listed(proxy, permission="DENY")) == 1
    assert len(listed(proxy, pattern_type="MATCH", resource_type="TOPIC", resource_name="prefixed")) == 1
    gone = HTTP.delete(f"{proxy.cluster}/acls", params={**NEEDED, "resource_type": "TOPIC"})
    assert len(gone.json()["data"]) == 3
    assert len(listed(proxy)) == 1


@pytest.mark.parametrize("missing", list(NEEDED))
def test_deleting_needs_four_filters(proxy: Served, missing: str) -> None:
    params = {name: word for name, word in NEEDED.items() if name != missing}
    refused(HTTP.delete(f"{proxy.cluster}/acls", params=params), 400, 400)


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"resource_type": "CUPBOARD"}, 400, 400),
        ({"resource_type": None}, 422, 42206),
        ({"operation": "ANY"}, 400, 40002),
        ({"pattern_type": "MATCH"}, 400, 40002),
        ({"colour": "red"}, 422, 422),
        ({"principal": 5}, 400, 400),
        ({"principal": "alice"}, 400, 40002),
    ],
)
def test_acls_that_are_refused(proxy: Served, change: dict[str, Any], status: int, code: int) -> None:
    refused(HTTP.post(f"{proxy.cluster}/acls", json={**RULE, **change}), status, code)
    refused(HTTP.post(f"{proxy.cluster}/acls:batch", json={"data": [{**RULE, **change}]}), status, code)
    assert listed(proxy) == []


def test_other_words_in_filters_are_refused(proxy: Served) -> None:
    refused(HTTP.get(f"{proxy.cluster}/acls", params={"operation": "DANCE"}), 400, 400)
    refused(HTTP.delete(f"{proxy.cluster}/acls", params={**NEEDED, "operation": "DANCE"}), 400, 400)


def test_a_broker_without_an_authorizer_refuses_acls() -> None:
    from barnabas.testing import Broker
    from rest.serving import serving

    with Broker() as broker, serving(broker.bootstrap) as proxy:
        refused(HTTP.get(f"{proxy.cluster}/acls"), 400, 40002)
        refused(HTTP.post(f"{proxy.cluster}/acls", json=RULE), 400, 40002)
        refused(HTTP.delete(f"{proxy.cluster}/acls", params=NEEDED), 400, 40002)
