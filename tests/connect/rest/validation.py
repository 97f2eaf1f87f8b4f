"""Requests that validate configurations: everything that is wrong with one, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from connect.rest.talk import Talk
from connect.rest.worded import SINK, SOURCE, TRANSFORMS
from connect.worker_processes import FILE_SINK, FILE_SOURCE, JSON, SIMPLE_HEADERS


def validations(talk: Talk) -> None:
    def check(plugin: str, config: dict[str, Any], keeps: Callable[[Any], Any] | None = None) -> None:
        talk.ask("PUT", f"/connector-plugins/{plugin}/config/validate", config, keeps=keeps)

    check("FileStreamSource", {"name": "v", **SOURCE})
    check("FileStreamSinkConnector", {"name": "v", **SINK})
    check(FILE_SOURCE, {"name": "v", **SOURCE}, errors_only)
    check(
        "StreamSource", {"name": "v", **SOURCE, "connector.class": "FileStreamSourceConnector"}, errors_only
    )
    check("FileStreamSource", {"name": "v", **SOURCE, "connector.class": FILE_SINK})
    check("FileStreamSource", {"name": "v", "topic": "t"})
    check("Nothing", {"connector.class": "Nothing"})
    check(
        "FileStreamSource", {"connector.class": FILE_SOURCE, "batch.size": "x", "tasks.max": "x"}, errors_only
    )
    everything = {
        "transforms": "hoist,cast", "transforms.hoist.type": f"{TRANSFORMS}HoistField$Value",
        "transforms.hoist.field": "line", "transforms.cast.type": f"{TRANSFORMS}Cast$Value",
        "transforms.cast.spec": "line:string", "transforms.cast.predicate": "p",
        "predicates": "p", "predicates.p.type": f"{TRANSFORMS}predicates.TopicNameMatches",
        "predicates.p.pattern": "a.*",
    }  # fmt: skip
    check("FileStreamSource", {"name": "v", **SOURCE, **everything})
    check("FileStreamSource", {"name": "v", **SOURCE, "value.converter": JSON,
                               "value.converter.schemas.enable": "false"},
          by_name("value.converter"))  # fmt: skip
    check("FileStreamSource", {"name": "v", **SOURCE, "value.converter": JSON,
                               "value.converter.schemas.enable": "perhaps"}, errors_only)  # fmt: skip
    check("FileStreamSource", {"name": "v", **SOURCE, "header.converter": JSON,
                               "header.converter.schemas.enable": "false"},
          by_name("header.converter"))  # fmt: skip
    check("FileStreamSource", {"name": "v", **SOURCE, "producer.override.linger.ms": "5",
                               "consumer.override.x": "y"}, named("override"))  # fmt: skip
    check("FileStreamSource", {"name": "v", **SOURCE, "topic.creation.default.partitions": "1",
                               "topic.creation.default.replication.factor": "1"})  # fmt: skip
    check("FileStreamSource", {"name": "v", **SOURCE, "topic": None}, errors_only)
    check("FileStreamSource", {"name": "v", **SOURCE, "errors.log.enable": "maybe"}, errors_only)


def messages(talk: Talk) -> None:
    """Errors of transforms, predicates, converters, lists and clients, one request for each."""

    def check(kind: str, config: dict[str, Any], keeps: Callable[[Any], Any] = errors_only) -> None:
        base = SOURCE if kind == "Source" else SINK
        path = f"/connector-plugins/FileStream{kind}/config/validate"
        talk.ask("PUT", path, {"name": "v", **base, **config}, keeps=keeps)

    def transform(name: str, keeps: Callable[[Any], Any] = errors_only, **settings: str) -> None:
        own = {f"transforms.t.{key.replace('_', '.')}": text for key, text in settings.items()}
        check("Source", {"transforms": "t", "transforms.t.type": name, **own}, keeps)

    for name in ("JsonConverter", FILE_SOURCE, "Nothing"):
        check("Source", {"header.converter" if name != FILE_SOURCE else "key.converter": name}, errors_only)
    transform(f"{TRANSFORMS}Cast", named("transforms.t"))
    transform(f"{TRANSFORMS}predicates.RecordIsTombstone", named("transforms.t"))
    transform("Nothing", named("transforms.t"))
    check("Source", {"transforms": "t"}, named("transforms.t"))
    check(
        "Source", {"predicates": "p", "predicates.p.type": f"{TRANSFORMS}InsertHeader"}, named("predicates.p")
    )
    transform(f"{TRANSFORMS}InsertField$Value", topic_field="t", negate="true")
    transform(f"{TRANSFORMS}InsertField$Value", topic_field="t", negate="perhaps")
    transform(f"{TRANSFORMS}ReplaceField$Value", exclude="a,a", include="a,,b")
    transform(f"{TRANSFORMS}ReplaceField$Value", renames="a:b,c")
    for name, setting in (
        ("DropHeaders", "headers"),
        ("MaskField$Value", "fields"),
        ("ValueToKey", "fields"),
    ):
        transform(f"{TRANSFORMS}{name}")
        transform(f"{TRANSFORMS}{name}", **{setting: ""})
        transform(f"{TRANSFORMS}{name}", **{setting: "a,a"})
    transform(f"{TRANSFORMS}HeaderFrom$Value", fields="a,a", headers="g,h", operation="copy")
    check("Source", {"transaction.boundary.interval.ms": "-1"})
    check("Sink", {"topics": "a,b,a"})
    check("Sink", {"topics": "a,,b"})
    clients = {
        "consumer.override.max.poll.records": " 5 ",
        "consumer.override.bootstrap.servers": " a:1 , b:1 ",
    }
    check("Sink", clients, named("override"))
    talk.ask("POST", "/connectors", {"name": 17, "config": {}})


def plugin_versions(talk: Talk) -> None:
    """Versions that a configuration demands of its plugins (KIP-891): right and wrong ones, ranges."""
    hoist, tombstones = f"{TRANSFORMS}HoistField$Value", f"{TRANSFORMS}predicates.RecordIsTombstone"
    plugins = {
        "header.converter": {"header.converter": SIMPLE_HEADERS},
        "transforms.t": {"transforms": "t", "transforms.t.type": hoist, "transforms.t.field": "f"},
        "predicates.p": {"predicates": "p", "predicates.p.type": tombstones},
    }
    path = "/connector-plugins/FileStreamSource/config/validate"
    for demand in ("4.3.1", " 4.3.1 ", "4.3.1.0", "latest", "[4.3.1]", "[4.0,5.0)", "(,4.3.1]", "[1,2),[4,5)",
                   "4.3", "4.3.0", "4.3.1-SNAPSHOT", "[4.4,)", "(,4.3.1)", "wrong", "", "(1)", "[1,1)",
                   "[2,1]", "[1,2),3"):  # fmt: skip
        for name, named_by in plugins.items():
            wanted = {**SOURCE, "name": "v", **named_by, f"{name}.plugin.version": demand}
            talk.ask("PUT", path, wanted, keeps=sorted_errors)
    talk.ask("PUT", path, {**SOURCE, "name": "v", "connector.plugin.version": "[4,5)"}, keeps=errors_only)
    for name in ("FileStreamSource", hoist):
        for demand in ("4.3.1", "[4.0,5.0)", "4.3.0", "latest", "", "[5"):
            talk.ask("GET", f"/connector-plugins/{name}/config?version={quote(demand)}", keeps=len)


def sorted_errors(body: dict[str, Any]) -> Any:
    """The settings with errors of plugins that do not load come in no order."""
    return sorted(errors_only(body)["wrong"], key=lambda each: str(each["name"]))


def errors_only(body: dict[str, Any]) -> Any:
    wrong = [each["value"] for each in body["configs"] if each["value"]["errors"]]
    return {"name": body["name"], "error_count": body["error_count"], "wrong": wrong}


def named(word: str) -> Callable[[dict[str, Any]], Any]:
    return lambda body: [each for each in body["configs"] if word in each["value"]["name"]]


def by_name(word: str) -> Callable[[dict[str, Any]], Any]:
    """Settings of converters come in no order: a hash map had them."""
    chosen = named(word)
    return lambda body: sorted(chosen(body), key=lambda each: str(each["value"]["name"]))
