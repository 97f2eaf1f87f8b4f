"""ACLs for scenarios: created by the super user, and awaited until the broker decides by them."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from barnabas.protocol import ApiKey
from barnabas.security.acls.vocabulary import Operation, PatternType, Permission, ResourceType

from .talk import Talk

SHOWN_TIMEOUT_S = 20.0
EVERYTHING = {
    "resource_type_filter": 1, "resource_name_filter": None, "pattern_type_filter": 1,
    "principal_filter": None, "host_filter": None, "operation": 1, "permission_type": 1,
}  # fmt: skip
TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
TRANSACTION = ResourceType.TRANSACTIONAL_ID


def acl(
    user: str,
    operation: Operation,
    resource: ResourceType,
    name: str = "kafka-cluster",
    *,
    deny: bool = False,
    prefixed: bool = False,
) -> dict[str, Any]:
    return {
        "resource_type": int(resource),
        "resource_name": name,
        "resource_pattern_type": int(PatternType.PREFIXED if prefixed else PatternType.LITERAL),
        "principal": f"User:{user}",
        "host": "*",
        "operation": int(operation),
        "permission_type": int(Permission.DENY if deny else Permission.ALLOW),
    }


def as_filter(entry: dict[str, Any]) -> dict[str, Any]:
    return {
        "resource_type_filter": entry["resource_type"],
        "resource_name_filter": entry["resource_name"],
        "pattern_type_filter": entry["resource_pattern_type"],
        "principal_filter": entry["principal"],
        "host_filter": entry["host"],
        "operation": entry["operation"],
        "permission_type": entry["permission_type"],
    }


def grant(talk: Talk, *entries: dict[str, Any]) -> None:
    """Creates ACLs, as admin; the talk goes on as admin."""
    talk.become("admin")
    answer = talk.silently(ApiKey.CREATE_ACLS, 3, creations=list(entries))
    assert all(each["error_code"] == "NONE" for each in answer["results"]), answer
    wait(talk, entries, shown=True)


def revoke(talk: Talk, *entries: dict[str, Any]) -> None:
    talk.become("admin")
    answer = talk.silently(ApiKey.DELETE_ACLS, 3, filters=[as_filter(each) for each in entries])
    assert all(each["matching_acls"] for each in answer["filter_results"]), answer
    wait(talk, entries, shown=False)


def wait(talk: Talk, entries: Iterable[dict[str, Any]], *, shown: bool) -> None:
    deadline = time.monotonic() + SHOWN_TIMEOUT_S
    for entry in entries:
        while True:
            answer = talk.silently(ApiKey.DESCRIBE_ACLS, 3, **as_filter(entry))
            if bool(answer["resources"]) is shown:
                break
            assert time.monotonic() < deadline, answer
