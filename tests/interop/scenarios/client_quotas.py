"""AlterClientQuotas and DescribeClientQuotas: entities, keys, filters; and throttling of one client."""

from __future__ import annotations

import time
from typing import Any

from barnabas.protocol import ApiKey

from ..frames import CLIENT_ID
from ..requests import batch, produce, versions
from ..talk import Talk, scenario

PRODUCE = ApiKey.PRODUCE
ALTER, DESCRIBE = ApiKey.ALTER_CLIENT_QUOTAS, ApiKey.DESCRIBE_CLIENT_QUOTAS
EXACT, DEFAULT, ANY = range(3)
RATE = "producer_byte_rate"
Entity = dict[str, str | None]


def entry(entity: Entity | list[tuple[str, str | None]], ops: dict[str, float | None]) -> dict[str, Any]:
    parts = entity.items() if isinstance(entity, dict) else entity
    return {
        "entity": [{"entity_type": kind, "entity_name": name} for kind, name in parts],
        "ops": [{"key": key, "value": value or 0.0, "remove": value is None} for key, value in ops.items()],
    }


def alter(talk: Talk, label: str, *entries: dict[str, Any], validate_only: bool = False) -> None:
    answer = talk.silently(ALTER, 1, entries=list(entries), validate_only=validate_only)
    for each in answer["entries"]:
        each["said"] = each.pop("error_message")
    talk.note(label, answer)


def components(*parts: tuple[str, int, str | None]) -> list[dict[str, Any]]:
    return [{"entity_type": kind, "match_type": how, "match": name} for kind, how, name in parts]


def described(talk: Talk, *parts: tuple[str, int, str | None], strict: bool = False) -> dict[str, Any]:
    return talk.silently(DESCRIBE, 1, components=components(*parts), strict=strict)


def shows(talk: Talk, entity: Entity, wanted: dict[str, float]) -> None:
    parts = [(kind, DEFAULT if name is None else EXACT, name) for kind, name in entity.items()]
    deadline = time.monotonic() + 20
    while True:
        answer = described(talk, *parts, strict=True)
        found = {v["key"]: v["value"] for each in answer["entries"] for v in each["values"]}
        if found == wanted:
            break
        assert time.monotonic() < deadline, answer
    talk.note(f"then {entity}", answer)


@scenario
def every_version(talk: Talk) -> None:
    for version in versions(ALTER):
        user = talk.name(f"user{version}")
        talk.ask("set", ALTER, version, entries=[entry({"user": user}, {RATE: 5e8})])
        shows(talk, {"user": user}, {RATE: 5e8})
        asked = components(("user", EXACT, user))
        talk.ask("found", DESCRIBE, version, components=asked, strict=True)
        talk.ask(
            "validate only", ALTER, version, entries=[entry({"user": user}, {RATE: 6e8})], validate_only=True
        )
        talk.ask("removed", ALTER, version, entries=[entry({"user": user}, {RATE: None})])
        shows(talk, {"user": user}, {})
        talk.ask("removed again", ALTER, version, entries=[entry({"user": user}, {RATE: None})])
        talk.ask("nothing", ALTER, version, entries=[])
        talk.ask("no operations", ALTER, version, entries=[entry({"user": user}, {})])


@scenario
def entities(talk: Talk) -> None:
    for label, parts in {
        "user": [("user", "u")],
        "default user": [("user", None)],
        "client": [("client-id", "c")],
        "default client": [("client-id", None)],
        "user and client": [("user", "u"), ("client-id", "c")],
        "user and default client": [("user", "u"), ("client-id", None)],
        "default user and client": [("user", None), ("client-id", "c")],
        "both defaults": [("user", None), ("client-id", None)],
        "address": [("ip", "127.0.0.9")],
        "default address": [("ip", None)],
        "a host name": [("ip", "localhost")],
        "no host": [("ip", "no such host")],
        "an IPv6 address": [("ip", "::1")],
        "user and address": [("user", "u"), ("ip", "127.0.0.9")],
        "client and address": [("client-id", "c"), ("ip", "127.0.0.9")],
        "nothing": [],
        "unknown kind": [("group", "g")],
        "empty user": [("user", "")],
        "empty client": [("client-id", "")],
        "empty address": [("ip", "")],
        "twice user": [("user", "u"), ("user", "v")],
        "capitals": [("User", "u")],
        "odd names": [("user", "CN=a, O=b*/é"), ("client-id", "a b/c*")],
    }.items():
        key = "connection_creation_rate" if any(kind == "ip" for kind, _ in parts) else RATE
        alter(talk, label, entry(parts, {key: 1e9}), validate_only=True)


@scenario
def keys(talk: Talk) -> None:
    for key in (RATE, "consumer_byte_rate", "request_percentage", "controller_mutation_rate",
                "connection_creation_rate", "no_such", ""):  # fmt: skip
        for entity in ({"user": "u"}, {"client-id": "c"}, {"ip": "127.0.0.9"}):
            for value in (1.0, 1.5, 0.0, -1.0, 1e9, 2.0**31, 2.0**63, float("inf"), float("nan"), None):
                alter(
                    talk,
                    f"{key} of {entity} = {value}",
                    entry(dict(entity), {key: value}),
                    validate_only=True,
                )


@scenario
def several_at_once(talk: Talk) -> None:
    one, two = talk.name("one"), talk.name("two")
    good = entry({"user": one}, {RATE: 7e8, "request_percentage": 500.0})
    alter(talk, "one good, one bad", good, entry({"user": two}, {"no_such": 1.0}))
    alter(talk, "good and bad keys", entry({"user": two}, {RATE: 7e8, "no_such": 1.0}))
    alter(talk, "the same entity twice", entry({"user": two}, {RATE: 7e8}), entry({"user": two}, {RATE: 8e8}))
    shows(talk, {"user": one}, {RATE: 7e8, "request_percentage": 500.0})
    alter(talk, "changed and removed", entry({"user": one}, {RATE: 8e8, "request_percentage": None}))
    shows(talk, {"user": one}, {RATE: 8e8})
    for user in (one, two):
        talk.silently(ALTER, 1, entries=[entry({"user": user}, {RATE: None, "request_percentage": None})])
    shows(talk, {"user": one}, {})


@scenario
def filters(talk: Talk) -> None:
    user, client = talk.name("user"), talk.name("client")
    made: list[Entity] = [
        {"user": user},
        {"user": user, "client-id": client},
        {"user": user, "client-id": None},
        {"client-id": client},
        {"ip": "127.0.0.77"},
    ]
    for entity in made:
        key = "connection_creation_rate" if "ip" in entity else RATE
        talk.silently(ALTER, 1, entries=[entry(entity, {key: 9e8})])
    shows(talk, made[-1], {"connection_creation_rate": 9e8})

    def ask(label: str, *parts: tuple[str, int, str | None]) -> None:
        for strict in (False, True):
            answer = described(talk, *parts, strict=strict)
            answer["entries"] = [
                each
                for each in answer["entries"] or []
                if any(part["entity_name"] in (user, client, "127.0.0.77") for part in each["entity"])
            ]
            talk.note(f"{label}, strict {strict}", answer)

    ask("everything")
    ask("the user", ("user", EXACT, user))
    ask("any user", ("user", ANY, None))
    ask("the default user", ("user", DEFAULT, None))
    ask("the client", ("client-id", EXACT, client))
    ask("any client", ("client-id", ANY, None))
    ask("the default client", ("client-id", DEFAULT, None))
    ask("the user, any client", ("user", EXACT, user), ("client-id", ANY, None))
    ask("the user, the default client", ("user", EXACT, user), ("client-id", DEFAULT, None))
    ask("both", ("user", EXACT, user), ("client-id", EXACT, client))
    ask("an address", ("ip", EXACT, "127.0.0.77"))
    ask("any address", ("ip", ANY, None))
    ask("nobody", ("user", EXACT, "nobody"))
    for label, parts in {
        "user and address": (("user", EXACT, user), ("ip", EXACT, "127.0.0.77")),
        "user twice": (("user", EXACT, user), ("user", ANY, None)),
        "unknown kind": (("group", EXACT, "g"),),
        "no kind": (("", EXACT, "g"),),
        "exactly nothing": (("user", EXACT, None),),
        "default with a name": (("user", DEFAULT, "x"),),
        "any with a name": (("user", ANY, "x"),),
        "match 3": (("user", 3, user),),
        "match -1": (("user", -1, user),),
    }.items():
        answer = described(talk, *parts)
        answer["said"] = answer.pop("error_message")
        answer["entries"] = answer["entries"] if answer["error_code"] != "NONE" else "<some>"
        talk.note(label, answer)
    for entity in made:
        talk.silently(
            ALTER, 1,
            entries=[entry(entity, {"connection_creation_rate" if "ip" in entity else RATE: None})],
        )  # fmt: skip
    shows(talk, made[-1], {})


@scenario
def a_producer_over_its_quota(talk: Talk) -> None:
    """The client of these conversations, held back: how long, and until when its quota is gone."""
    topic = talk.topic()
    client: Entity = {"client-id": CLIENT_ID.decode()}
    talk.silently(ALTER, 1, entries=[entry(client, {RATE: 1000.0})])
    shows(talk, client, {RATE: 1000.0})
    for size in (2_000, 3_000, 20_000):
        talk.reconnect()  # the connection that was held back is not waited for
        answer = talk.silently(PRODUCE, 12, **produce(talk, topic, batch(b"x" * size)))
        waits = answer["throttle_time_ms"]
        error = answer["responses"][0]["partition_responses"][0]["error_code"]
        talk.note(f"{size} bytes", {"waits": waits > 0, "error_code": error})
    talk.silently(ALTER, 1, entries=[entry(client, {RATE: None})])
    shows(talk, client, {})
    answer = talk.silently(PRODUCE, 12, **produce(talk, topic, batch(b"x" * 20_000)))
    talk.note("without a quota", {"throttle_time_ms": answer["throttle_time_ms"]})


@scenario
def a_client_that_changes_too_much(talk: Talk) -> None:
    client: Entity = {"client-id": CLIENT_ID.decode()}
    key = "controller_mutation_rate"
    talk.silently(ALTER, 1, entries=[entry(client, {key: 1.0})])
    shows(talk, client, {key: 1.0})

    def ask(label: str, api: ApiKey, version: int, field: str, **values: Any) -> None:
        talk.reconnect()
        answer = talk.silently(api, version, timeout_ms=30_000, **values)
        found = [each["error_code"] for each in answer[field]]
        talk.note(label, {"errors": found, "waits": answer["throttle_time_ms"] > 0})

    def topic(name: str, partitions: int) -> dict[str, Any]:
        return {"name": talk.name(name), "num_partitions": partitions, "replication_factor": 1}

    ask("below", ApiKey.CREATE_TOPICS, 7, "topics", topics=[topic("a", 5)])
    ask("two, the second too many", ApiKey.CREATE_TOPICS, 7, "topics", topics=[topic("b", 10), topic("c", 1)])
    ask("not now", ApiKey.CREATE_TOPICS, 7, "topics", topics=[topic("d", 1)])
    ask("not now, validated", ApiKey.CREATE_TOPICS, 7, "topics", topics=[topic("d", 1)], validate_only=True)
    ask("as an older client", ApiKey.CREATE_TOPICS, 5, "topics", topics=[topic("e", 1)])
    grown = {"name": talk.name("a"), "count": 6, "assignments": None}
    ask("more partitions", ApiKey.CREATE_PARTITIONS, 3, "results", topics=[grown])
    ask("more partitions, older", ApiKey.CREATE_PARTITIONS, 2, "results", topics=[grown])
    gone = [{"name": talk.name("a"), "topic_id": bytes(16)}]
    ask("deleting", ApiKey.DELETE_TOPICS, 6, "responses", topics=gone)
    ask("deleting, older", ApiKey.DELETE_TOPICS, 4, "responses", topic_names=[talk.name("a")])
    talk.silently(ALTER, 1, entries=[entry(client, {key: None})])
    shows(talk, client, {})
