"""Requests to a worker of Connect, in an order in which one worker alone responds the same each time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from barnabas.testing.waiting import wait_until
from connect.rest.talk import Talk
from connect.rest.validation import messages, named, plugin_versions, validations
from connect.rest.worded import BROKEN, SINK, SOURCE, TRANSFORMS
from connect.worker_processes import FILE_SINK, FILE_SOURCE

NOBODY = "/connectors/nobody"


def create(talk: Talk, name: str, config: dict[str, Any], tasks: int = 1, state: str = "RUNNING") -> None:
    talk.ask("POST", "/connectors", {"name": name, "config": config})
    talk.worker.wait_for(name, "RUNNING", tasks, state)


def remove(talk: Talk, *names: str) -> None:
    for name in names:
        talk.worker.call("DELETE", f"/connectors/{name}")
        wait_until(lambda name=name: talk.worker.get(f"/connectors/{name}/status") is None, 30)  # type: ignore[misc]


def the_worker(talk: Talk) -> None:
    talk.ask("GET", "/")
    talk.ask("GET", "/health")
    talk.ask("GET", "/connectors")
    talk.ask("GET", "/connectors/")
    talk.ask("GET", "/connectors?expand=status&expand=info")


def frames_of_http(talk: Talk) -> None:
    talk.ask("GET", "/nothing")
    talk.ask("GET", "/connectors/a/nothing")
    talk.ask("DELETE", "/connectors")
    talk.ask("POST", "/connectors/a/config", {})
    talk.ask("OPTIONS", "/connectors")
    talk.ask("OPTIONS", "/connectors/a")
    talk.ask("HEAD", "/connectors")
    talk.ask("GET", "/connectors", headers={"accept": "text/html"})
    talk.ask("GET", "/connectors", headers={"accept": "text/html, */*;q=0.1"})
    talk.ask("POST", "/connectors", b"{}", {"content-type": "text/plain"})
    talk.ask("POST", "/connectors", b"{}", {"content-type": "application/json; charset=utf-8"})
    talk.ask("PUT", "/connectors/a/config", b"{", {"content-type": ""})
    talk.ask("GET", f"{NOBODY}/tasks/abc/status")
    talk.ask("GET", f"{NOBODY}/tasks/-1/status")
    talk.ask("GET", f"{NOBODY}/tasks/99999999999/status")


def nobody_is_there(talk: Talk) -> None:
    for path in ("", "/config", "/status", "/tasks", "/tasks/0/status", "/topics", "/offsets"):
        talk.ask("GET", NOBODY + path)
    for path in ("/pause", "/resume", "/stop", "/topics/reset"):
        talk.ask("PUT", NOBODY + path)
    talk.ask("POST", f"{NOBODY}/restart")
    talk.ask("POST", f"{NOBODY}/restart?includeTasks=true")
    talk.ask("POST", f"{NOBODY}/tasks/0/restart")
    talk.ask("DELETE", NOBODY)
    talk.ask("DELETE", f"{NOBODY}/offsets")
    talk.ask("PATCH", f"{NOBODY}/config", {"a": "b"})
    pairs = [{"partition": {"filename": "x"}, "offset": {"position": 1}}]
    talk.ask("PATCH", f"{NOBODY}/offsets", {"offsets": pairs})


def a_life(talk: Talk) -> None:
    (talk.folder / "in.txt").write_text("one\ntwo\n")
    create(talk, "a", SOURCE)
    for path in ("", "/config", "/status", "/tasks", "/tasks/0/status", "/tasks/1/status"):
        talk.ask("GET", f"/connectors/a{path}")
    talk.ask("GET", "/connectors")
    talk.ask("GET", "/connectors?expand=status")
    talk.ask("GET", "/connectors?expand=info")
    talk.ask("GET", "/connectors?expand=info&expand=status&expand=info")
    talk.ask("GET", "/connectors?expand=everything")
    talk.ask("POST", "/connectors", {"name": "a", "config": SOURCE})
    wait_until(lambda: talk.worker.get("/connectors/a/topics")["a"]["topics"], 30)
    talk.ask("GET", "/connectors/a/topics")
    talk.ask("PUT", "/connectors/a/topics/reset")
    wait_until(lambda: not talk.worker.get("/connectors/a/topics")["a"]["topics"], 30)
    talk.ask("GET", "/connectors/a/topics")
    talk.ask("DELETE", "/connectors/a")
    wait_until(lambda: talk.worker.get("/connectors/a/status") is None, 30)
    talk.ask("GET", "/connectors/a")
    talk.ask("GET", "/connectors/a/status")
    talk.ask("DELETE", "/connectors/a")


def configurations(talk: Talk) -> None:
    talk.ask("PUT", "/connectors/b/config", SOURCE)
    talk.worker.wait_for("b", "RUNNING", 1)
    talk.ask("PUT", "/connectors/b/config", SOURCE)
    talk.ask("PUT", "/connectors/b/config", {**SOURCE, "batch.size": 77, "name": "b"})
    talk.ask("GET", "/connectors/b/config")
    talk.ask("PUT", "/connectors/b/config", {**SOURCE, "name": "c"})
    talk.ask("PUT", "/connectors/b/config", {**SOURCE, "batch.size": "many"})
    talk.ask("PUT", "/connectors/b/config", {"topic": "x"})
    talk.ask("PATCH", "/connectors/b/config", {"batch.size": "78", "extra": True, "more": 1.5})
    talk.ask("PATCH", "/connectors/b/config", {"extra": None, "batch.size": None})
    talk.ask("PATCH", "/connectors/b/config", {"topic": None})
    talk.ask("PATCH", "/connectors/b/config", {})
    wait_until(lambda: "extra" not in talk.worker.get("/connectors/b/tasks")[0]["config"], 30)
    talk.ask("GET", "/connectors/b/tasks")
    talk.ask("PATCH", "/connectors/b/config", {"name": "c"})
    talk.ask("PUT", "/connectors/b/config", {**SOURCE, "topic": None})
    remove(talk, "b")


def creations_that_are_refused(talk: Talk) -> None:
    def post(name: str | None, config: dict[str, Any]) -> None:
        talk.ask(
            "POST", "/connectors", {"config": config} if name is None else {"name": name, "config": config}
        )

    post("x", {})
    post("x", {"name": "y", **SOURCE})
    post("x", {**SOURCE, "connector.class": "org.example.Nothing"})
    post("x", {"connector.class": FILE_SOURCE})
    post("x", {**SOURCE, "tasks.max": "0"})
    post("x", {**SOURCE, "tasks.max": "word"})
    post("x", {**SOURCE, "errors.tolerance": "some", "errors.retry.timeout": "soon"})
    post("x", {**SOURCE, "exactly.once.support": "required"})
    post("x", {**SOURCE, "exactly.once.support": "never"})
    post("x", {**SOURCE, "key.converter": "Nothing"})
    post("x", {**SOURCE, "transforms": "a"})
    post("x", {**SOURCE, "transforms": "a,a", "transforms.a.type": f"{TRANSFORMS}Filter"})
    post("x", {**SOURCE, "transforms": "a", "transforms.a.type": "Nothing"})
    post("x", {**SOURCE, "transforms": "a", "transforms.a.type": f"{TRANSFORMS}InsertField$Value",
               "transforms.a.negate": "true"})  # fmt: skip
    post("x", {**SOURCE, "transforms": "a", "transforms.a.type": f"{TRANSFORMS}Cast$Value"})
    post("x", {**SOURCE, "transforms": "a", "transforms.a.type": f"{TRANSFORMS}Cast$Value",
               "transforms.a.spec": "a:word"})  # fmt: skip
    post("x", {"connector.class": FILE_SINK})
    post("x", {**SINK, "topics.regex": ".*"})
    post("x", {**SINK, "topics": ""})
    post("x", {**SINK, "topics": "", "topics.regex": "["})
    post("x", {**SINK, "errors.deadletterqueue.topic.name": "rest-lines"})
    post("x", {**SINK, "topics": "", "topics.regex": "rest.*",
               "errors.deadletterqueue.topic.name": "rest-lines"})  # fmt: skip
    post("  ", SOURCE)
    post("", SOURCE)
    post("a\tb", SOURCE)
    post(None, {**SOURCE, "name": ""})
    talk.ask("GET", "/connectors")


def exactly_once_settings(talk: Talk) -> None:
    without_file = {name: text for name, text in SOURCE.items() if name != "file"}
    for config in (
        {**SOURCE, "transaction.boundary": "connector"},
        {**SOURCE, "transaction.boundary": "CONNECTOR", "exactly.once.support": "required"},
        {**SOURCE, "transaction.boundary": "interval", "exactly.once.support": "REQUIRED"},
        {**without_file, "exactly.once.support": "required"},
        {**SOURCE, "transaction.boundary": "never"},
    ):
        talk.ask("POST", "/connectors", {"name": "x", "config": config})
    talk.ask("GET", "/connectors")


def states(talk: Talk) -> None:
    create(talk, "s", SOURCE)
    talk.ask("PUT", "/connectors/s/pause")
    talk.worker.wait_for("s", "PAUSED", 1)
    talk.ask("GET", "/connectors/s/status")
    talk.ask("PUT", "/connectors/s/pause")
    talk.ask("PUT", "/connectors/s/resume")
    talk.worker.wait_for("s", "RUNNING", 1)
    talk.ask("PUT", "/connectors/s/stop")
    talk.worker.wait_for("s", "STOPPED", 0)
    talk.ask("GET", "/connectors/s/status")
    talk.ask("GET", "/connectors/s/tasks")
    talk.ask("GET", "/connectors/s")
    talk.ask("PUT", "/connectors/s/stop")
    talk.ask("PUT", "/connectors/s/pause")
    talk.worker.wait_for("s", "PAUSED", 0)
    talk.ask("GET", "/connectors/s/status")
    talk.ask("PUT", "/connectors/s/resume")
    talk.worker.wait_for("s", "RUNNING", 1)
    talk.ask("GET", "/connectors/s/status")
    remove(talk, "s")


def initial_states(talk: Talk) -> None:
    for state, shown in (("STOPPED", "STOPPED"), ("PAUSED", "PAUSED"), ("RUNNING", "RUNNING")):
        name = f"i-{state.lower()}"
        talk.ask("POST", "/connectors", {"name": name, "config": SOURCE, "initial_state": state})
        talk.worker.wait_for(name, shown, None if state == "PAUSED" else int(state == "RUNNING"))
        talk.ask("GET", f"/connectors/{name}/status", keeps=lambda body: body["connector"])
    talk.ask("POST", "/connectors", {"name": "i", "config": SOURCE, "initial_state": "paused"})
    remove(talk, "i-stopped", "i-paused", "i-running", "i")


def restarts(talk: Talk) -> None:
    create(talk, "r", SOURCE)
    talk.ask("POST", "/connectors/r/restart")
    talk.worker.wait_for("r", "RUNNING", 1)
    talk.ask("POST", "/connectors/r/restart?includeTasks=true")
    talk.worker.wait_for("r", "RUNNING", 1)
    talk.ask("POST", "/connectors/r/restart?onlyFailed=true")
    talk.ask("POST", "/connectors/r/restart?includeTasks=false&onlyFailed=false")
    talk.worker.wait_for("r", "RUNNING", 1)
    talk.ask("POST", "/connectors/r/tasks/0/restart")
    talk.worker.wait_for("r", "RUNNING", 1)
    talk.ask("POST", "/connectors/r/tasks/1/restart")
    talk.ask("POST", "/connectors/r/tasks/x/restart")
    remove(talk, "r")


def a_task_that_fails(talk: Talk) -> None:
    create(talk, "f", BROKEN, state="FAILED")
    talk.ask("GET", "/connectors/f/status")
    talk.ask("GET", "/connectors/f/tasks/0/status")
    talk.ask("POST", "/connectors/f/restart?includeTasks=true&onlyFailed=true")
    talk.worker.wait_for("f", "RUNNING", 1, "FAILED")
    remove(talk, "f")


def offsets_of_a_source(talk: Talk) -> None:
    (talk.folder / "in.txt").write_text("one\ntwo\n")
    talk.ask("POST", "/connectors", {"name": "o", "config": {**SOURCE, "topic": "rest-offsets"}})
    talk.worker.wait_for("o", "RUNNING", 1)
    wait_until(lambda: talk.worker.get("/connectors/o/offsets")["offsets"], 60)
    talk.ask("GET", "/connectors/o/offsets")
    place = {"filename": "<folder>/in.txt"}

    def alter(*pairs: tuple[object, object]) -> None:
        entries = [{"partition": partition, "offset": offset} for partition, offset in pairs]
        talk.ask("PATCH", "/connectors/o/offsets", {"offsets": entries})

    alter((place, {"position": 4}))
    talk.ask("DELETE", "/connectors/o/offsets")
    talk.ask("PUT", "/connectors/o/stop")
    talk.worker.wait_for("o", "STOPPED", 0)
    talk.ask("GET", "/connectors/o/offsets")
    alter((place, {"position": 4}))
    talk.ask("GET", "/connectors/o/offsets")
    alter((place, {"position": -1}))
    alter((place, {"position": "4"}))
    alter((place, {"place": 4}))
    alter(({"file": "x"}, {"position": 4}))
    alter(({}, {"position": 4}))
    alter((None, {"position": 4}))
    alter()
    talk.ask("PATCH", "/connectors/o/offsets", {})
    alter(({"filename": "/other"}, {"position": 9}))
    alter((place, None))
    talk.ask("GET", "/connectors/o/offsets")
    talk.ask("DELETE", "/connectors/o/offsets")
    talk.ask("GET", "/connectors/o/offsets")
    talk.ask("DELETE", "/connectors/o/offsets")
    remove(talk, "o")


def offsets_of_a_sink(talk: Talk) -> None:
    (talk.folder / "in.txt").write_text("one\ntwo\n")
    create(talk, "o1", {**SOURCE, "topic": "rest-sunk"})
    wait_until(lambda: talk.worker.get("/connectors/o1/offsets")["offsets"], 60)
    create(talk, "o2", {**SINK, "topics": "rest-sunk"})
    wait_until(lambda: talk.worker.get("/connectors/o2/offsets")["offsets"], 60)
    talk.ask("GET", "/connectors/o2/offsets")
    talk.ask("GET", "/connectors/o2/topics")
    place = {"kafka_topic": "rest-sunk", "kafka_partition": 0}

    def alter(partition: object, offset: object) -> None:
        body = {"offsets": [{"partition": partition, "offset": offset}]}
        talk.ask("PATCH", "/connectors/o2/offsets", body)

    alter(place, {"kafka_offset": 1})
    talk.ask("PUT", "/connectors/o2/stop")
    talk.worker.wait_for("o2", "STOPPED", 0)
    alter(place, {"kafka_offset": 1})
    talk.ask("GET", "/connectors/o2/offsets")
    alter({"kafka_topic": "rest-sunk", "kafka_partition": "0"}, {"kafka_offset": "2"})
    talk.ask("GET", "/connectors/o2/offsets")
    alter({"kafka_topic": "rest-sunk"}, {"kafka_offset": 1})
    alter({"kafka_partition": 0}, {"kafka_offset": 1})
    alter({"kafka_topic": "rest-sunk", "kafka_partition": "x"}, {"kafka_offset": 1})
    alter(place, {"kafka_offset": "x"})
    alter(place, {"offset": 1})
    alter(place, None)
    talk.ask("GET", "/connectors/o2/offsets")
    talk.ask("DELETE", "/connectors/o2/offsets")
    talk.ask("GET", "/connectors/o2/offsets")
    remove(talk, "o1", "o2")


def plugins(talk: Talk) -> None:
    def of_apache(body: list[dict[str, Any]]) -> list[dict[str, Any]]:
        kept = ("org.apache.kafka.connect.file", "org.apache.kafka.connect.transforms.",
                "org.apache.kafka.connect.storage.", "org.apache.kafka.connect.json.",
                "org.apache.kafka.connect.converters.B")  # fmt: skip
        return sorted((each for each in body if each["class"].startswith(kept)),
                      key=lambda each: (each["type"], each["class"]))  # fmt: skip

    talk.ask("GET", "/connector-plugins", keeps=of_apache)
    talk.ask("GET", "/connector-plugins?connectorsOnly=false", keeps=of_apache)
    for name in ("FileStreamSource", "FileStreamSinkConnector", FILE_SOURCE, "Nothing", "HoistField$Value",
                 "JsonConverter", "SimpleHeaderConverter", "TopicNameMatches", f"{TRANSFORMS}Cast$Key",
                 f"{TRANSFORMS}TimestampConverter$Value", "StringConverter"):  # fmt: skip
        talk.ask("GET", f"/connector-plugins/{name}/config")


def loggers(talk: Talk) -> None:
    talk.ask("PUT", "/admin/loggers/root", {})
    talk.ask("PUT", "/admin/loggers/root?scope=cluster", {})
    for name, level in (("rest.y", "debug"), ("rest.y", "DEBUG"), ("rest.y.z", "TRACE"), ("rest.q", "WARN")):
        talk.ask("PUT", f"/admin/loggers/{name}", {"level": level})
    talk.ask("GET", "/admin/loggers/rest")
    talk.ask("PUT", "/admin/loggers/rest", {"level": "ERROR"})
    for name in ("rest.y.z", "rest.q", "rest", "rest.new"):
        talk.ask("GET", f"/admin/loggers/{name}")
    talk.ask("PUT", "/admin/loggers/rest.y", {"level": "OFF"})
    talk.ask("GET", "/admin/loggers", keeps=lambda body: sorted(name for name in body if "rest" in name[:5]))
    for level in ("nope", None, 5):
        talk.ask("PUT", "/admin/loggers/rest.y", {"level": level})
    for scope in ("cluster", "worker", "nobody", "CLUSTER"):
        level = "FATAL" if scope == "worker" else "INFO"
        talk.ask("PUT", f"/admin/loggers/rest?scope={scope}", {"level": level})
        wait_until(lambda level=level: talk.worker.get("/admin/loggers/rest.q")["level"] == level, 20)  # type: ignore[misc]
    talk.ask("PUT", "/admin/loggers/rest?scope=cluster", {"level": "nope"})


def secrets(talk: Talk) -> None:
    """Values that are hidden here and shown by Apache, and references, which neither resolves."""
    secret = {**SOURCE, "producer.override.sasl.jaas.config": "plain password='s'", "my.password": "s"}
    create(talk, "k", {**SOURCE, "topic": "${none:x:y}-rest"})
    talk.ask("GET", "/connectors/k/config")
    talk.ask("GET", "/connectors/k/tasks")
    remove(talk, "k")
    talk.ask("POST", "/connectors", {"name": "k", "config": secret})
    talk.ask("GET", "/connectors/k/config")
    remove(talk, "k")
    path = "/connector-plugins/FileStreamSource/config/validate"
    talk.ask("PUT", path, {"name": "v", **secret}, keeps=named("override"))


def restarts_of_what_failed(talk: Talk) -> None:
    create(talk, "q", BROKEN, state="FAILED")
    for options in ("", "?onlyFailed=true", "?includeTasks=true", "?includeTasks=yes&onlyFailed=maybe",
                    "?includeTasks=TRUE&onlyFailed=TRUE"):  # fmt: skip
        talk.ask("POST", f"/connectors/q/restart{options}")
        talk.worker.wait_for("q", "RUNNING", 1, "FAILED")
    talk.ask("POST", "/connectors/q/tasks/0/restart")
    talk.worker.wait_for("q", "RUNNING", 1, "FAILED")
    talk.ask("PUT", "/connectors/q/pause")
    talk.worker.wait_for("q", "PAUSED", 1, "FAILED")
    talk.ask("GET", "/connectors/q/status")
    talk.ask("PUT", "/connectors/q/stop")
    talk.worker.wait_for("q", "STOPPED", 0)
    remove(talk, "q")


def through_a_follower(talk: Talk) -> None:
    """Requests to a worker that does not lead, or does not own what they are about."""
    (talk.folder / "in.txt").write_text("one\ntwo\n")
    create(talk, "t", {**SOURCE, "topic": "rest-through"})
    talk.ask("POST", "/connectors", {"name": "t", "config": SOURCE})
    talk.ask("POST", "/connectors", {"name": "t2", "config": {"connector.class": FILE_SOURCE}})
    talk.ask("POST", "/connectors?forward=false", {"name": "t3", "config": SOURCE})
    talk.ask("POST", "/connectors?forward=perhaps", {"name": "t3", "config": {}})
    talk.ask("PUT", "/connectors/t/config", {**SOURCE, "topic": "rest-through", "batch.size": "9"})
    talk.ask("PATCH", "/connectors/t/config", {"batch.size": None})
    talk.worker.wait_for("t", "RUNNING", 1)
    talk.ask("GET", "/connectors/t/config")
    for path in ("/connectors/t/restart", "/connectors/t/restart?includeTasks=true",
                 "/connectors/t/tasks/0/restart", "/connectors/t/tasks/7/restart",
                 f"{NOBODY}/restart"):  # fmt: skip
        talk.ask("POST", path)
        talk.worker.wait_for("t", "RUNNING", 1)
    talk.ask("PUT", "/connectors/t/stop")
    talk.worker.wait_for("t", "STOPPED", 0)
    pairs = [{"partition": {"filename": "<folder>/in.txt"}, "offset": {"position": 4}}]
    talk.ask("PATCH", "/connectors/t/offsets", {"offsets": pairs})
    talk.ask("DELETE", "/connectors/t/offsets")
    talk.ask("DELETE", "/connectors/t")
    wait_until(lambda: talk.worker.get("/connectors/t/status") is None, 30)
    talk.ask("DELETE", "/connectors/t")
    talk.ask("PUT", f"{NOBODY}/fence")
    talk.ask("POST", f"{NOBODY}/tasks", [])
    signed = {"X-Connect-Authorization": "AAAA", "X-Connect-Request-Signature-Algorithm": "HmacSHA256"}
    talk.ask("POST", f"{NOBODY}/tasks", [], signed)
    talk.ask("POST", f"{NOBODY}/tasks", [], {**signed, "X-Connect-Request-Signature-Algorithm": "MD5"})


SCENARIOS: tuple[Callable[[Talk], None], ...] = (
    the_worker,
    frames_of_http,
    nobody_is_there,
    a_life,
    configurations,
    creations_that_are_refused,
    exactly_once_settings,
    states,
    initial_states,
    restarts,
    a_task_that_fails,
    offsets_of_a_source,
    offsets_of_a_sink,
    plugins,
    validations,
    messages,
    plugin_versions,
    loggers,
    secrets,
    restarts_of_what_failed,
)
OF_TWO_WORKERS: tuple[Callable[[Talk], None], ...] = (through_a_follower,)
