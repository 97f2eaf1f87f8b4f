"""DescribeConfigs and IncrementalAlterConfigs for topics."""

from __future__ import annotations

import time
from typing import Any

from barnabas.protocol import ApiKey

from ..requests import versions
from ..talk import Talk, scenario

DESCRIBE, ALTER = ApiKey.DESCRIBE_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS
TOPIC, BROKER = 2, 4
SET, REMOVE, APPEND, SUBTRACT = range(4)


def resource(name: str, keys: list[str] | None = None, kind: int = TOPIC) -> dict[str, Any]:
    return {"resource_type": kind, "resource_name": name, "configuration_keys": keys}


@scenario
def every_version_describes(talk: Talk) -> None:
    name = talk.topic(cleanup_policy="compact", segment_bytes="2000000")
    for version in versions(DESCRIBE):
        for synonyms in (False, True):
            for documentation in (False, True):
                label = f"everything, synonyms {synonyms}, documentation {documentation}"
                flags = {"include_synonyms": synonyms, "include_documentation": documentation}
                talk.ask(label, DESCRIBE, version, resources=[resource(name)], **flags)
        some = resource(name, ["retention.ms", "cleanup.policy", "no.such.name"])
        talk.ask("some names", DESCRIBE, version, resources=[some], include_synonyms=True)
        talk.ask("no names", DESCRIBE, version, resources=[resource(name, [])])
        talk.ask("unknown topic", DESCRIBE, version, resources=[resource(talk.name("missing"))])
        talk.ask("bad name", DESCRIBE, version, resources=[resource("not a name")])
        talk.ask("empty name", DESCRIBE, version, resources=[resource("")])
        talk.ask("nothing", DESCRIBE, version, resources=[])
        talk.ask("twice", DESCRIBE, version, resources=[resource(name, ["retention.ms"])] * 2)
        for kind in (0, 1, 3, 99, -1):
            talk.ask(f"resource type {kind}", DESCRIBE, version, resources=[resource(name, [], kind)])


def alter(
    talk: Talk, label: str, version: int, name: str, *changes: tuple[str, int, str | None], **more: Any
) -> None:
    configs = [{"name": key, "config_operation": kind, "value": value} for key, kind, value in changes]
    body = {"resource_type": TOPIC, "resource_name": name, "configs": configs, **more.pop("resource", {})}
    talk.ask(label, ALTER, version, resources=[body], **more)


def shows(talk: Talk, name: str, wanted: dict[str, str]) -> None:
    """Waits until the changes are visible, then notes what is described."""
    deadline = time.monotonic() + 20
    while True:
        answer = talk.silently(DESCRIBE, 4, resources=[resource(name, sorted(wanted))])
        if {each["name"]: each["value"] for each in answer["results"][0]["configs"]} == wanted:
            break
        assert time.monotonic() < deadline, answer
    talk.note("then", answer)


@scenario
def every_version_alters(talk: Talk) -> None:
    for version in versions(ALTER):
        name = talk.topic(f"v{version}", retention_ms="1000000", segment_ms="2000000")
        alter(talk, "validate only", version, name, ("retention.ms", SET, "5"), validate_only=True)
        alter(
            talk,
            "set and remove",
            version,
            name,
            ("retention.ms", SET, "3000000"),
            ("segment.ms", REMOVE, None),
        )
        shows(talk, name, {"retention.ms": "3000000", "segment.ms": "604800000"})
        alter(talk, "append", version, name, ("cleanup.policy", APPEND, "compact"))
        shows(talk, name, {"cleanup.policy": "delete,compact"})
        alter(talk, "append what is there", version, name, ("cleanup.policy", APPEND, "compact"))
        alter(talk, "subtract", version, name, ("cleanup.policy", SUBTRACT, "delete"))
        shows(talk, name, {"cleanup.policy": "compact"})
        alter(talk, "subtract what is not there", version, name, ("cleanup.policy", SUBTRACT, "delete"))
        alter(talk, "remove what is not set", version, name, ("segment.ms", REMOVE, None))
        alter(talk, "nothing", version, name)


@scenario
def wrong_changes(talk: Talk) -> None:
    name = talk.topic()
    for version in versions(ALTER):
        alter(talk, "not a number", version, name, ("retention.ms", SET, "soon"))
        alter(talk, "unknown name", version, name, ("no.such", SET, "1"))
        alter(talk, "remove an unknown name", version, name, ("no.such", REMOVE, None))
        alter(talk, "null value", version, name, ("retention.ms", SET, None))
        alter(talk, "append to a number", version, name, ("retention.ms", APPEND, "5"))
        alter(talk, "subtract from a number", version, name, ("retention.ms", SUBTRACT, "5"))
        alter(talk, "append a wrong policy", version, name, ("cleanup.policy", APPEND, "keep"))
        alter(talk, "operation 9", version, name, ("retention.ms", 9, "5"))
        alter(talk, "operation -1", version, name, ("retention.ms", -1, "5"))
        twice = (("retention.ms", SET, "5"), ("retention.ms", SET, "6"))
        alter(talk, "the same name twice", version, name, *twice)
        good_and_bad = (("retention.ms", SET, "77777"), ("segment.bytes", SET, "x"))
        alter(talk, "one good, one bad", version, name, *good_and_bad)
        alter(talk, "an empty name", version, name, ("", SET, "5"))
        alter(talk, "unknown topic", version, talk.name("missing"), ("retention.ms", SET, "5"))
        alter(talk, "bad topic name", version, "not a name", ("retention.ms", SET, "5"))
        for kind in (0, 1, 3, 99):
            other = {"resource_type": kind}
            alter(talk, f"resource type {kind}", version, name, ("retention.ms", SET, "5"), resource=other)
        good = {"resource_type": TOPIC, "resource_name": name, "configs": []}
        talk.ask("the same resource twice", ALTER, version, resources=[good, good])
        talk.ask("no resources", ALTER, version, resources=[])
    talk.ask("unchanged", DESCRIBE, 4, resources=[resource(name, ["retention.ms", "segment.bytes"])])
