"""Roles divide what callers may do: readers, writers, administrators."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.testing import Broker
from rest.running import running
from rest.serving import HTTP

RECORD = {"value": {"type": "STRING", "data": "x"}}
RULE = {
    "resource_type": "TOPIC",
    "resource_name": "t",
    "pattern_type": "LITERAL",
    "principal": "User:alice",
    "host": "*",
    "operation": "READ",
    "permission": "ALLOW",
}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    users: Path = tmp_path_factory.mktemp("users") / "users.txt"
    users.write_text("rita: one,reader\nwill: two,writer\nada: three,boss\n")
    given = {
        "authentication.method": "BASIC",
        "barnabas.authentication.users.file": str(users),
        "barnabas.authentication.roles.read": "reader",
        "barnabas.authentication.roles.write": "writer",
        "barnabas.authentication.roles.admin": "boss",
    }
    with Broker() as broker, running({"bootstrap.servers": broker.bootstrap, **given}) as address:
        found = HTTP.get(f"{address}/v3/clusters", auth=("ada", "three")).json()["data"][0]
        root = found["metadata"]["self"]
        created = HTTP.post(f"{root}/topics", json={"topic_name": "t"}, auth=("ada", "three"))
        assert created.status_code == 201
        yield root


@pytest.mark.parametrize(
    ("caller", "reads", "produces", "changes"),
    [
        (("rita", "one"), True, False, False),
        (("will", "two"), True, True, False),
        (("ada", "three"), True, True, True),
        (("ada", "wrong"), False, False, False),
    ],
)
def test_what_each_role_may_do(
    url: str, caller: tuple[str, str], reads: bool, produces: bool, changes: bool
) -> None:
    refusal = 401 if not reads else 403
    topic = f"{url}/topics/t"
    proxy = url.partition("/v3/")[0]
    for path in (topic, f"{proxy}/topics/t/tail?limit=0", f"{proxy}/openapi.json", f"{proxy}/topics"):
        assert HTTP.get(path, auth=caller).status_code == (200 if reads else refusal)
    batch = {"entries": [{"id": "1", **RECORD}]}
    assert HTTP.post(f"{topic}/records", json=RECORD, auth=caller).status_code == (
        200 if produces else refusal
    )
    assert HTTP.post(f"{topic}/records:batch", json=batch, auth=caller).status_code == (
        207 if produces else refusal
    )
    value = {"value": "1000"}
    assert HTTP.put(f"{topic}/configs/retention.ms", json=value, auth=caller).status_code == (
        204 if changes else refusal
    )
    acl = HTTP.post(f"{url}/acls", json=RULE, auth=caller)
    assert acl.status_code == (400 if changes else refusal)  # this broker has no authorizer
