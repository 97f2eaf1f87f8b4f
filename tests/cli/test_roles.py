"""Roles bound with the tool, and decisions explained."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.testing import Broker

from .conftest import RunTool

SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


@pytest.fixture(scope="module")
def node() -> Iterator[str]:
    with Broker(overrides=SETTINGS) as broker:
        yield broker.bootstrap


def test_roles_are_bound_listed_and_unbound(node: str, run_tool: RunTool) -> None:
    roles = ("barnabas", "roles", "--bootstrap-server", node)
    binding = ("--principal", "User:ann", "--role", "DeveloperRead", "--topic", "orders-", "--prefix")
    assert run_tool(*roles, "list").lines == ["PRINCIPAL\tROLE\tRESOURCE\tNAME\tPATTERN"]
    bound = run_tool(*roles, "bind", *binding)
    assert (bound.status, bound.lines) == (0, ["User:ann has role DeveloperRead on topics orders-*."])
    assert bound.errors == "note: roles are off: set barnabas.roles.enable=true on every node\n"
    assert run_tool(*roles, "bind", "--principal", "User:carla", "--role", "Operator").status == 0
    assert run_tool(*roles, "list").lines[1:] == [
        "User:ann  \tDeveloperRead\tTopic   \torders-      \tPREFIXED",
        "User:carla\tOperator     \tCluster \tkafka-cluster\tLITERAL",
    ]
    assert len(run_tool(*roles, "list", "--principal", "User:carla").lines) == 2
    taken = run_tool(*roles, "unbind", *binding)
    assert taken.lines == ["User:ann has no longer role DeveloperRead on topics orders-*."]
    again = run_tool(*roles, "unbind", *binding)
    assert again.status == 1 and "User:ann does not have role DeveloperRead" in again.errors
    assert run_tool(*roles, "unbind", "--principal", "User:carla", "--role", "Operator").status == 0
    assert len(run_tool(*roles, "list").lines) == 1


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--principal", "ann", "--role", "Operator"), "of the form User:name"),
        (("--principal", "User:ann", "--role", "Boss"), "there is no role Boss"),
        (("--principal", "User:ann", "--role", "DeveloperRead"), "is a role on resources"),
        (("--principal", "User:ann", "--role", "Operator", "--topic", "t"), "is a role on the cluster"),
        (("--principal", "User:ann", "--role", "DeveloperWrite", "--group", "g"), "no rights on group g"),
        (("--principal", "User:ann", "--role", "DeveloperRead", "--topic", ""), "1 to 249 characters"),
        (("--role", "Operator"), "--principal"),
    ],
)
def test_bindings_that_cannot_be_are_refused(
    options: tuple[str, ...], problem: str, run_tool: RunTool
) -> None:
    ran = run_tool("barnabas", "roles", "bind", *options)
    assert ran.status == 1 and problem in ran.errors


def test_roles_are_described(run_tool: RunTool) -> None:
    assert len(run_tool("barnabas", "roles", "describe").lines) == 10
    shown = run_tool("barnabas", "roles", "describe", "DeveloperRead").output
    assert "Topic          \tRead, Describe" in shown and "TransactionalId\tDescribe" in shown
    assert run_tool("barnabas", "roles", "describe", "Boss").status == 1


def test_decisions_are_explained(node: str, run_tool: RunTool, tmp_path: Path) -> None:
    acls = ("barnabas", "acls", "--bootstrap-server", node)
    ask = ("--explain", "--principal", "User:ann", "--operation")
    denied = run_tool(*acls, *ask, "Read", "--topic", "explained")
    assert denied.status == 2
    assert denied.lines == [
        "denied: User:ann from any address, Read on Topic explained",
        "  because: no rule covers the resource",
    ]
    run_tool(*acls, "--add", "--allow-principal", "User:ann", "--operation", "Read", "--topic", "explained")
    allowed = run_tool(*acls, *ask, "Describe", "--topic", "explained")
    assert allowed.status == 0
    assert allowed.lines[1] == ("  because: ALLOW READ on TOPIC LITERAL 'explained' for User:ann from *")
    deny = ("--deny-principal", "User:*", "--deny-host", "10.0.0.1", "--topic", "explained")
    run_tool(*acls, "--add", *deny)
    assert run_tool(*acls, *ask, "Read", "--topic", "explained").status == 0
    refused = run_tool(*acls, *ask, "Read", "--topic", "explained", "--host", "10.0.0.1")
    assert refused.status == 2 and "DENY ALL" in refused.output
    bind = ("--principal", "User:ann", "--role", "DeveloperManage", "--topic", "expl", "--prefix")
    run_tool("barnabas", "roles", "--bootstrap-server", node, "bind", *bind)
    by_role = run_tool(*acls, *ask, "Delete", "--topic", "explained")
    assert by_role.lines[1] == "  because: role DeveloperManage on topics expl*"
    properties = tmp_path / "server.properties"
    properties.write_text("super.users=User:ann\n")
    everything = run_tool(*acls, *ask, "Alter", "--cluster", "--server-properties", str(properties))
    assert everything.status == 0 and "super user" in everything.output


@pytest.mark.parametrize(
    "options",
    [
        ("--operation", "Read", "--topic", "t"),
        ("--principal", "User:ann", "--topic", "t"),
        ("--principal", "User:ann", "--operation", "Read"),
        ("--principal", "User:ann", "--operation", "Read", "--topic", "t", "--group", "g"),
        ("--principal", "User:ann", "--operation", "All", "--topic", "t"),
        ("--principal", "User:ann", "--operation", "Write", "--group", "g"),
        ("--principal", "User:ann", "--operation", "Read", "--topic", "t", "--resource-pattern-type", "any"),
    ],
)
def test_incomplete_questions_are_refused(options: tuple[str, ...], run_tool: RunTool) -> None:
    assert run_tool("barnabas", "acls", "--explain", *options).status == 1
