"""CreateAcls, DescribeAcls and DeleteAcls on a node with an authorizer."""

from __future__ import annotations

from typing import Any

from barnabas.protocol import ApiKey
from barnabas.security.acls.vocabulary import Operation

from ..requests import versions
from ..rights import CLUSTER, EVERYTHING, TOPIC, acl, as_filter, grant
from ..talk import Talk, scenario
from .security_off import said

CREATE, DESCRIBE, DELETE = ApiKey.CREATE_ACLS, ApiKey.DESCRIBE_ACLS, ApiKey.DELETE_ACLS


@scenario
def entries_are_created_once_or_refused(talk: Talk) -> None:
    talk.become("admin")
    entry = acl("u", Operation.READ, TOPIC, talk.name("t"))
    for version in versions(CREATE):
        said(talk, "new or not", CREATE, version, creations=[entry, entry])
        said(talk, "none", CREATE, version, creations=[])
    cases: dict[str, dict[str, Any]] = {
        "no name": {"resource_name": ""},
        "another cluster": {"resource_type": 4, "resource_name": "other"},
        "no colon": {"principal": "u"},
        "no principal": {"principal": ""},
        "no type of principal": {"principal": ":u"},
        "no name of principal": {"principal": "User:"},
        "no host": {"host": ""},
        "a network": {"host": "10.0.0.0/8"},
        "an operation of another type": {"operation": 12},
        "a type that nobody knows": {"resource_type": 9},
        "an operation that nobody knows": {"operation": 99},
    }
    for label, change in cases.items():
        said(talk, label, CREATE, 3, creations=[entry | change, entry])
    for field, code in (
        ("resource_type", 0),
        ("operation", 0),
        ("permission_type", 0),
        ("resource_pattern_type", 0),
    ):
        talk.ask(f"{field} {code}", CREATE, 3, creations=[entry | {field: code}])
    for field, code in (
        ("resource_type", 1),
        ("operation", 1),
        ("permission_type", 1),
        ("resource_pattern_type", 1),
        ("resource_pattern_type", 2),
    ):
        talk.ask(f"{field} {code}", CREATE, 3, creations=[entry, entry | {field: code}])
    talk.ask("shows", DESCRIBE, 3, **EVERYTHING | {"resource_name_filter": talk.name("t")})
    talk.silently(DELETE, 3, filters=[EVERYTHING | {"resource_name_filter": talk.name("t")}])


@scenario
def filters_find_what_they_say(talk: Talk) -> None:
    name = talk.name("orders")
    grant(
        talk,
        acl("u", Operation.READ, TOPIC, name),
        acl("u", Operation.WRITE, TOPIC, name),
        acl("v", Operation.READ, TOPIC, name, deny=True),
        acl("u", Operation.READ, TOPIC, name[:-2], prefixed=True),
    )
    cases: dict[str, dict[str, Any]] = {
        "by name": {},
        "literal": {"pattern_type_filter": 3},
        "prefixed": {"pattern_type_filter": 4},
        "match": {"pattern_type_filter": 2},
        "match of more": {"pattern_type_filter": 2, "resource_name_filter": name + "-2"},
        "prefixed by its name": {"pattern_type_filter": 4, "resource_name_filter": name[:-2]},
        "of u": {"principal_filter": "User:u"},
        "of nobody": {"principal_filter": "u"},
        "denied": {"permission_type": 2},
        "to write": {"operation": 4},
        "to do all": {"operation": 2},
        "of groups": {"resource_type_filter": 3},
        "of a host": {"host_filter": "*"},
        "of another host": {"host_filter": "10.0.0.1"},
        "a type that nobody knows": {"resource_type_filter": 9},
        "no type": {"resource_type_filter": 0},
    }
    for label, change in cases.items():
        wanted = EVERYTHING | {"resource_name_filter": name} | change
        for version in versions(DESCRIBE):
            talk.ask(label, DESCRIBE, version, **wanted)
    for version in versions(DELETE):
        talk.ask("nothing", DELETE, version, filters=[EVERYTHING | {"resource_name_filter": "no such"}])
    talk.ask("no type", DELETE, 3, filters=[EVERYTHING | {"resource_type_filter": 0}])
    twice = EVERYTHING | {"resource_name_filter": name, "principal_filter": "User:v"}
    talk.ask("one entry twice", DELETE, 3, filters=[twice, twice])
    by_match = EVERYTHING | {"resource_name_filter": name, "pattern_type_filter": 2}
    talk.ask("all that match", DELETE, 3, filters=[by_match | {"principal_filter": "User:u"}])
    talk.ask("no filter", DELETE, 3, filters=[])


@scenario
def only_some_may_change_them(talk: Talk) -> None:
    entry = acl("alice", Operation.DESCRIBE, CLUSTER)
    grant(talk, entry)
    one = acl("u", Operation.READ, TOPIC, talk.name("t"))
    for user in ("alice", "bob"):
        talk.become(user)
        for version in versions(CREATE):
            talk.ask(user, CREATE, version, creations=[one, one | {"resource_name": ""}])
            talk.ask(user, DESCRIBE, version, **EVERYTHING | {"resource_name_filter": talk.name("t")})
            talk.ask(user, DELETE, version, filters=[EVERYTHING, EVERYTHING])
    talk.become("admin")
    talk.silently(DELETE, 3, filters=[as_filter(entry)])
