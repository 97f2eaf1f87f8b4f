"""Configured resources besides topics and brokers: groups, client metrics, loggers; and listing them."""

from __future__ import annotations

import time
from typing import Any

from barnabas.protocol import ApiKey

from ..requests import versions
from ..talk import Talk, scenario

DESCRIBE, ALTER, REPLACE = ApiKey.DESCRIBE_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS, ApiKey.ALTER_CONFIGS
LIST = ApiKey.LIST_CONFIG_RESOURCES
TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, REMOVE, APPEND, SUBTRACT = range(4)
Change = tuple[str, int, str | None]


def alter(
    talk: Talk, label: str, kind: int, name: str, *changes: Change, validate_only: bool = False
) -> None:
    configs = [{"name": key, "config_operation": how, "value": value} for key, how, value in changes]
    one = {"resource_type": kind, "resource_name": name, "configs": configs}
    answer = talk.silently(ALTER, 1, resources=[one], validate_only=validate_only)
    found = answer["responses"][0]
    talk.note(label, {"error_code": found["error_code"], "said": found["error_message"]})


def described(talk: Talk, kind: int, name: str, keys: list[str] | None = None) -> dict[str, Any]:
    asked = {"resource_type": kind, "resource_name": name, "configuration_keys": keys}
    answer = talk.silently(DESCRIBE, 4, resources=[asked], include_synonyms=True)
    return answer["results"][0]


def shows(talk: Talk, kind: int, name: str, wanted: dict[str, str | None]) -> None:
    deadline = time.monotonic() + 20
    while True:
        answer = described(talk, kind, name, list(wanted))
        found = {each["name"]: each["value"] for each in answer["configs"]}
        if {key: found.get(key) for key in wanted} == wanted:
            break
        assert time.monotonic() < deadline, answer
    talk.note(f"then {name}", answer)


def wait_until_listed(talk: Talk, name: str, *, present: bool) -> None:
    deadline = time.monotonic() + 20
    while True:
        answer = talk.silently(LIST, 0)
        if (name in [each["resource_name"] for each in answer["config_resources"]]) == present:
            return
        assert time.monotonic() < deadline, answer


@scenario
def client_metrics(talk: Talk) -> None:
    name = talk.name("subscription")

    def change(label: str, *changes: Change, validate_only: bool = False) -> None:
        alter(talk, label, METRICS, name, *changes, validate_only=validate_only)

    talk.note("before", described(talk, METRICS, name))
    for key, values in {
        "interval.ms": ("99", "100", "1000", "3600000", "3600001", "0", "-1", "x", ""),
        "metrics": ("org.apache.kafka.", "*", "", "a,b", "org.apache.kafka.producer.,"),
        "match": (
            "client_id=a", "client_id=.*,client_software_name=lib.*", "client_id", "no_such=a", "client_id=[",
            "", "client_instance_id=x", "client_source_address=127.*,client_source_port=9",
            "client_software_version=1", "client_id=a=b",
        ),
        "no.such": ("5",),
    }.items():  # fmt: skip
        for value in values:
            change(f"{key}={value!r}", (key, SET, value), validate_only=True)
    change("append", ("metrics", APPEND, "a"))
    change("append to a number", ("interval.ms", APPEND, "5"))
    change("set", ("interval.ms", SET, "5000"), ("metrics", SET, "org.apache.kafka."))
    shows(talk, METRICS, name, {"interval.ms": "5000", "metrics": "org.apache.kafka."})
    talk.note("all of it", described(talk, METRICS, name))
    alter(talk, "without a name", METRICS, "", ("interval.ms", SET, "5000"))
    talk.note("nobody", described(talk, METRICS, ""))
    wait_until_listed(talk, name, present=True)
    talk.ask("listed in version 0", LIST, 0)
    talk.ask("listed in version 1", LIST, 1, resource_types=[METRICS])
    change("removed", ("interval.ms", REMOVE, None), ("metrics", REMOVE, None))
    shows(talk, METRICS, name, {"interval.ms": "300000", "metrics": ""})
    wait_until_listed(talk, name, present=False)
    talk.ask("listed no more", LIST, 0)


@scenario
def groups(talk: Talk) -> None:
    name = talk.name("group")

    def change(label: str, *changes: Change, validate_only: bool = False) -> None:
        alter(talk, label, GROUP, name, *changes, validate_only=validate_only)

    for key, values in {
        "consumer.session.timeout.ms": ("45000", "50000", "60001", "44999", "x"),
        "consumer.heartbeat.interval.ms": ("5000", "15000", "15001", "4999"),
        "consumer.assignment.interval.ms": ("0", "15001", "-1"),
        "share.auto.offset.reset": ("earliest", "by_duration:PT1H", "never", "by_duration:x"),
        "share.isolation.level": ("read_committed", "READ_COMMITTED"),
        "share.record.lock.duration.ms": ("15000", "60001", "1"),
        "share.delivery.count.limit": ("2", "11", "1"),
        "streams.num.standby.replicas": ("2", "3", "-1"),
        "streams.session.timeout.ms": ("50000", "1"),
        "no.such": ("5",),
    }.items():
        for value in values:
            change(f"{key}={value!r}", (key, SET, value), validate_only=True)
    change("append", ("consumer.session.timeout.ms", APPEND, "5"))
    change("set", ("consumer.session.timeout.ms", SET, "50000"))
    shows(talk, GROUP, name, {"consumer.session.timeout.ms": "50000"})
    talk.note("all of it", described(talk, GROUP, name))
    alter(talk, "without a name", GROUP, "", ("consumer.session.timeout.ms", SET, "50000"))
    talk.note("nobody", described(talk, GROUP, ""))
    listed = talk.silently(LIST, 1, resource_types=[GROUP])
    listed["config_resources"] = [
        each for each in listed["config_resources"] if each["resource_name"] == name
    ]
    talk.note("listed", listed)
    change("removed", ("consumer.session.timeout.ms", REMOVE, None))
    shows(talk, GROUP, name, {"consumer.session.timeout.ms": "45000"})


@scenario
def listing(talk: Talk) -> None:
    topic = talk.topic()

    def listed(label: str, kinds: list[int]) -> None:
        answer = talk.silently(LIST, 1, resource_types=kinds)
        mine = ("", "1", topic)
        answer["config_resources"] = [
            each for each in answer.get("config_resources", []) if each["resource_name"] in mine
        ]
        talk.note(label, answer)

    for version in versions(LIST):
        if version == 0:
            talk.ask("of client metrics", LIST, 0)
    listed("everything", [])
    for kind in (TOPIC, BROKER, LOGGER, METRICS, GROUP):
        listed(f"of kind {kind}", [kind])
    listed("two kinds", [TOPIC, BROKER])
    listed("twice the same", [TOPIC, TOPIC])
    for kind in (0, 1, 3, 64, -1):
        listed(f"of kind {kind}", [kind])


@scenario
def loggers(talk: Talk) -> None:
    """Names of loggers are each broker's own; what is said about wrong ones is not."""
    for name in ("", "2", "x"):
        found = described(talk, LOGGER, name, ["root"])
        talk.note(
            f"described for {name!r}", {"error_code": found["error_code"], "said": found["error_message"]}
        )
    found = described(talk, LOGGER, "1", ["root"])
    talk.note("root", [{**each, "value": "<level>"} for each in found["configs"]])
    for name in ("", "2", "x"):
        alter(talk, f"changed for {name!r}", LOGGER, name, ("root", SET, "INFO"), validate_only=True)

    def change(label: str, *changes: Change) -> None:
        alter(talk, label, LOGGER, "1", *changes, validate_only=True)

    for level in ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL", "OFF", "info", "LOUD", ""):
        change(f"level {level}", ("root", SET, level))
    change("unknown logger", ("no.such.logger", SET, "INFO"))
    change("root removed", ("root", REMOVE, None))
    change("unknown removed", ("no.such.logger", REMOVE, None))
    change("append", ("root", APPEND, "INFO"))
    change("subtract", ("root", SUBTRACT, "INFO"))
    change("null", ("root", SET, None))
    change("twice", ("root", SET, "INFO"), ("root", SET, "WARN"))
    change("nothing")
    for version in versions(REPLACE):
        one = {"resource_type": LOGGER, "resource_name": "1", "configs": [{"name": "root", "value": "INFO"}]}
        talk.ask("replaced", REPLACE, version, resources=[one], validate_only=True)


@scenario
def scram_credentials(talk: Talk) -> None:
    """Nobody has any; ConfigCommand asks for them wherever it describes a user."""
    for label, names in {
        "everybody": None,
        "nobody": [],
        "a user": ["u"],
        "two users": ["u", "v"],
        "a user twice": ["u", "u"],
        "no name": [""],
    }.items():
        users = None if names is None else [{"name": name} for name in names]
        answer = talk.silently(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, users=users)
        answer["said"] = answer.pop("error_message")
        for each in answer["results"]:
            each["said"] = each.pop("error_message")
        talk.note(label, answer)
