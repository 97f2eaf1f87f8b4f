"""The REST API of a standalone worker responds as Connect does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from barnabas.client.cluster import Cluster
from barnabas.connect.api.endpoints import Endpoints
from barnabas.connect.api.response_headers import response_headers
from barnabas.connect.api.service import service
from barnabas.connect.api.sink_offsets import SinkGroups
from barnabas.connect.config import ConfigError
from barnabas.connect.config.offset_file import change_offset_file, read_offset_file
from barnabas.connect.herder.herder import Herder
from barnabas.connect.herder.states import State
from barnabas.connect.plugins import Plugins
from barnabas.connect.tasks.offsets import FileOffsets
from barnabas.services.app import ServiceApp
from connect.fakes import QuietConnector, QuietPlugins, Recorder

CONFIG = {"connector.class": "Quiet", "topic": "t", "tasks.max": "2", "pass": "s3cret"}
Story = Callable[[httpx.AsyncClient, Herder, Recorder], Awaitable[None]]


def run(story: Story, worker: dict[str, str] | None = None) -> None:
    async def main() -> None:
        runner = Recorder()
        herder = Herder(worker or {}, "127.0.0.1:8083", QuietPlugins(), runner)
        endpoints = Endpoints(herder, lambda: "cluster", SinkGroups(Cluster([])))
        app = ServiceApp(service(endpoints, herder.start, herder.stop))
        await herder.start()
        transport = httpx.ASGITransport(app)
        try:
            async with httpx.AsyncClient(transport=transport, base_url="http://w") as client:
                await story(client, herder, runner)
        finally:
            await herder.stop()
        assert runner.running == {}

    asyncio.run(main())


async def created(client: httpx.AsyncClient, herder: Herder, **more: Any) -> httpx.Response:
    response = await client.post("/connectors", json={"name": "a", "config": CONFIG, **more})
    await herder.settled()
    await asyncio.sleep(0)
    return response


def test_a_connector_is_made_read_changed_and_removed() -> None:
    async def story(client: httpx.AsyncClient, herder: Herder, runner: Recorder) -> None:
        response = await created(client, herder)
        assert response.status_code == 201
        assert response.headers["location"] == "http://w/connectors/a"
        assert response.json()["config"]["name"] == "a"
        assert "s3cret" not in response.text
        assert runner.running["a", 1]["pass"] == "s3cret"
        status = (await client.get("/connectors/a/status")).json()
        assert status["connector"] == {"state": "RUNNING", "worker_id": "127.0.0.1:8083", "version": "1.0"}
        assert [each["state"] for each in status["tasks"]] == ["RUNNING", "RUNNING"]
        assert (await created(client, herder)).json() == {
            "error_code": 409,
            "message": "Connector a already exists",
        }
        changed = await client.patch("/connectors/a/config", json={"tasks.max": 1, "pass": None})
        assert changed.status_code == 200
        assert "pass" not in changed.json()["config"]
        await herder.settled()
        assert list(runner.running) == [("a", 0)]
        listed = (await client.get("/connectors?expand=info&expand=status&expand=x")).json()
        assert listed["a"]["info"]["tasks"] == [{"connector": "a", "task": 0}]
        assert (await client.delete("/connectors/a/")).status_code == 204
        await herder.settled()
        assert (await client.get("/connectors")).json() == []
        for path, message in [
            ("", "Connector a not found"),
            ("/status", "No status found for connector a"),
            ("/tasks/0/status", "No status found for task a-0"),
        ]:
            assert (await client.get(f"/connectors/a{path}")).json() == {
                "error_code": 404,
                "message": message,
            }

    run(story)


def test_a_hidden_secret_that_is_sent_back_keeps_its_value() -> None:
    async def story(client: httpx.AsyncClient, herder: Herder, runner: Recorder) -> None:
        await created(client, herder)
        shown = (await client.get("/connectors/a/config")).json()
        assert shown["pass"] == "[hidden]"
        changed = await client.put("/connectors/a/config", json={**shown, "tasks.max": "1"})
        assert changed.status_code == 200
        await herder.settled()
        assert runner.running["a", 0]["pass"] == "s3cret"
        refused = await client.put("/connectors/b/config", json={**CONFIG, "pass": "[hidden]"})
        assert refused.json() == {
            "error_code": 400,
            "message": "pass: [hidden] stands for a stored value, and none is stored",
        }

    run(story)


def test_parts_of_values_that_are_secret_are_hidden_and_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str | None, str | None]] = []

    def check(_: Any, given: dict[str, str]) -> dict[str, list[str]]:
        seen.append((given.get("url"), given.get("pass")))
        return {}

    monkeypatch.setattr(QuietConnector, "check", check)

    async def story(client: httpx.AsyncClient, herder: Herder, runner: Recorder) -> None:
        url = "jdbc:mysql://h/db?user=me&password=s3cret"
        response = await client.put("/connectors/a/config", json={**CONFIG, "url": url})
        assert response.status_code == 201
        await herder.settled()
        for path in ("", "/config", "/tasks", "?expand=info"):
            shown = await client.get(f"/connectors/a{path}")
            assert "s3cret" not in shown.text
        config = (await client.get("/connectors/a/config")).json()
        assert config["url"] == "jdbc:mysql://h/db?user=me&password=[hidden]"
        assert (await client.put("/connectors/a/config", json=config)).status_code == 200
        await herder.settled()
        assert runner.running["a", 0]["url"] == url
        path = "/connector-plugins/QuietConnector/config/validate"
        validated = await client.put(path, json=config)
        assert seen[-1] == (url, "s3cret"), "a form validates what it was shown"
        assert "s3cret" not in validated.text
        moved = {**config, "url": config["url"].replace("//h/", "//other/")}
        refused = await client.put("/connectors/a/config", json=moved)
        assert refused.status_code == 400
        assert "only while the rest is unchanged" in refused.json()["message"]

    run(story)


def test_what_references_stand_for_is_never_shown(tmp_path: Path) -> None:
    secrets = tmp_path / "secrets"
    secrets.write_text("db=hunter2\ncount=many\nclass=None.Such\n")
    worker = {
        "config.providers": "file",
        "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
    }
    reference, count = f"${{file:{secrets}:db}}", f"${{file:{secrets}:count}}"

    async def story(client: httpx.AsyncClient, herder: Herder, runner: Recorder) -> None:
        path = "/connector-plugins/QuietConnector/config/validate"
        config = {**CONFIG, "name": "a", "topic": reference, "tasks.max": count, "transforms": reference}
        response = await client.put(path, json=config)
        values = {each["value"]["name"]: each["value"] for each in response.json()["configs"]}
        assert values["topic"]["value"] == reference
        assert values["tasks.max"]["value"] is None
        assert values["tasks.max"]["errors"][0].startswith(
            f"Invalid value {count} for configuration tasks.max"
        )
        assert f"transforms.{reference}.type" in values
        assert "hunter2" not in response.text
        assert "many" not in response.text
        refused = await client.put("/connectors/a/config", json=config)
        assert refused.status_code == 400
        assert count in refused.json()["message"]
        for other in ({"topic": reference}, {"connector.class": f"${{file:{secrets}:class}}"}):
            refused = await client.put("/connectors/a/config", json=other)
            assert refused.status_code == 400
            assert "hunter2" not in refused.text
            assert "None.Such" not in refused.text
        await client.put("/connectors/a/config", json={**CONFIG, "topic": reference, "tasks.max": "1"})
        await herder.settled()
        assert runner.running["a", 0]["topic"] == "hunter2"
        runner.tell["a", 0](State.FAILED, "Traceback: no topic hunter2, and no s3cret")
        await asyncio.sleep(0.01)
        trace = (await client.get("/connectors/a/tasks/0/status")).json()["trace"]
        assert trace == f"Traceback: no topic {reference}, and no [hidden]"

    run(story, worker)


def test_settings_without_effect_are_told_at_the_start(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    definition = QuietConnector.CONFIG.copy().without_effect({"queue": ("8", "there is no queue")})
    monkeypatch.setattr(QuietConnector, "CONFIG", definition)

    async def story(client: httpx.AsyncClient, herder: Herder, runner: Recorder) -> None:
        await client.put("/connectors/a/config", json={**CONFIG, "queue": "9"})
        await client.put("/connectors/b/config", json={**CONFIG, "queue": "8", "task.max": "2"})
        await herder.settled()

    run(story)
    told = [each.getMessage() for each in caplog.records if "setting" in each.getMessage()]
    assert told == [
        "connector a: the setting queue has no effect: there is no queue",
        "connector b: no setting is called task.max; is tasks.max meant?",
    ]


def test_targets_and_restarts() -> None:
    async def story(client: httpx.AsyncClient, herder: Herder, runner: Recorder) -> None:
        await created(client, herder, initial_state="STOPPED")
        assert runner.starts == 0
        assert (await client.get("/connectors/a/status")).json()["connector"]["state"] == "STOPPED"
        assert (await client.put("/connectors/a/resume")).status_code == 202
        await herder.settled()
        assert runner.starts == 2
        assert (await client.put("/connectors/a/pause")).status_code == 202
        await herder.settled()
        await asyncio.sleep(0)
        assert (await client.get("/connectors/a/tasks/0/status")).json()["state"] == "PAUSED"
        await client.put("/connectors/a/resume")
        await herder.settled()
        runner.tell["a", 1](State.FAILED, "Traceback: broken")
        await asyncio.sleep(0.01)
        assert (await client.get("/connectors/a/tasks/1/status")).json()["trace"] == "Traceback: broken"
        response = await client.post("/connectors/a/restart?includeTasks=true&onlyFailed=true")
        assert response.status_code == 202
        assert [each["state"] for each in response.json()["tasks"]] == ["RUNNING", "RESTARTING"]
        await herder.settled()
        assert runner.starts == 3
        assert (await client.post("/connectors/a/tasks/0/restart")).status_code == 204
        assert runner.starts == 4
        assert (await client.post("/connectors/a/tasks/7/restart")).json()["message"] == "Unknown task: a-7"
        assert (await client.post("/connectors/b/restart")).json()["message"] == "Unknown connector: b"
        assert (await client.put("/connectors/b/stop")).json()["message"] == "Unknown connector b"
        assert (await client.put("/connectors/a/stop")).status_code == 204
        await herder.settled()
        assert runner.running == {}
        assert (await client.get("/connectors/a/tasks")).json() == []

    run(story)


def test_offsets_of_a_stopped_source_are_altered_and_reset() -> None:
    async def story(client: httpx.AsyncClient, herder: Herder, runner: Recorder) -> None:
        await created(client, herder)
        body = {"offsets": [{"partition": {"filename": "/x"}, "offset": {"position": 12}}]}
        refused = await client.patch("/connectors/a/offsets", json=body)
        assert refused.status_code == 400
        assert refused.json()["message"].startswith("Connectors must be in the STOPPED state")
        await client.put("/connectors/a/stop")
        await herder.settled()
        pair = body["offsets"][0]
        for wrong, where in (({**body, "more": 1}, ""), ({"offsets": [{**pair, "more": 1}]}, "offsets[0]: ")):
            refused = await client.patch("/connectors/a/offsets", json=wrong)
            assert refused.status_code == 400
            assert refused.json()["message"].startswith(f"{where}unknown field 'more'")
        changed = await client.patch("/connectors/a/offsets", json=body)
        assert changed.json()["message"].startswith("The Connect framework-managed offsets")
        assert (await client.get("/connectors/a/offsets")).json() == body
        assert (await client.delete("/connectors/a/offsets")).status_code == 200
        assert (await client.get("/connectors/a/offsets")).json() == {"offsets": []}

    run(story)


def test_wrong_requests() -> None:
    async def story(client: httpx.AsyncClient, herder: Herder, runner: Recorder) -> None:
        bad = await client.post("/connectors", json={"name": "a", "config": {"connector.class": "Quiet"}})
        assert bad.status_code == 400
        assert bad.json()["message"].splitlines()[:2] == [
            "Connector configuration is invalid and contains the following 1 error(s):",
            'Missing required configuration "topic" which has no default value.',
        ]
        for body, text in [
            ({"name": "a", "config": {"name": "b"}}, "doesn't match connector name in the URL (a)"),
            ({"name": "a", "config": {"topic": "t"}}, "contains no connector type"),
            ({"name": "a", "config": {"connector.class": "Nobody"}}, "org.example.QuietConnector"),
            ({"name": "a", "config": {"x": {}}}, "config['x']"),
        ]:
            response = await client.post("/connectors", json=body)
            assert (response.status_code, text in response.json()["message"]) == (400, True), response.text
        for method, path, status in [
            ("GET", "/nowhere", 404),
            ("DELETE", "/connectors", 405),
            ("POST", "/connectors", 415),
        ]:
            response = await client.request(method, path)
            assert response.status_code == status
            assert response.json()["message"].startswith(f"HTTP {status}")
            assert ":" not in response.json()["message"]
        assert (await client.get("/", headers={"accept": "text/html"})).status_code == 406
        assert (await client.options("/connectors")).headers["allow"] == "GET,POST,HEAD,OPTIONS"
        assert (await client.head("/connectors")).status_code == 200

    run(story)


def test_validate_plugins_and_loggers() -> None:
    async def story(client: httpx.AsyncClient, herder: Herder, runner: Recorder) -> None:
        path = "/connector-plugins/QuietConnector/config/validate"
        config = {
            **CONFIG,
            "name": "a",
            "tasks.max": "word",
            "transforms": "x,x",
            "producer.override.acks": "1",
        }
        body = (await client.put(path, json=config)).json()
        assert body["error_count"] == 4
        assert body["groups"][:4] == ["Common", "Transforms", "Predicates", "Error Handling"]
        values = {each["value"]["name"]: each for each in body["configs"]}
        assert values["pass"]["value"]["value"] == "[hidden]"
        assert values["producer.override.acks"]["definition"]["type"] == "STRING"
        assert values["name"]["definition"]["order_in_group"] == 1
        other = await client.put("/connector-plugins/Other/config/validate", json=config)
        assert other.status_code == 400
        assert (await client.get("/connector-plugins")).json() == [
            {"class": "org.example.QuietConnector", "type": "source", "version": "1.0"}
        ]
        assert (await client.get("/connector-plugins/X/config")).json()["message"] == "Unknown plugin X."
        keys = (await client.get("/connector-plugins/Quiet/config")).json()
        assert [key["name"] for key in keys][:3] == ["topic", "pass", "name"]
        changed = await client.put("/admin/loggers/quiet.one", json={"level": "debug"})
        assert changed.json() == ["quiet.one"]
        assert (await client.get("/admin/loggers/quiet.one")).json()["level"] == "DEBUG"
        assert (await client.get("/admin/loggers/no.one")).json()["message"] == "Logger no.one not found."
        assert (await client.put("/admin/loggers/root", json={"level": "x"})).status_code == 404

    run(story)


def test_responses_have_the_headers_of_the_setting() -> None:
    cache = '"add Cache-Control: no-cache, no-store"'
    headers = response_headers(f"set X-Frame-Options: DENY, {cache}, addDate Expires: 0")
    assert headers()["cache-control"] == "no-cache, no-store"
    assert headers()["x-frame-options"] == "DENY"
    assert headers()["expires"].endswith("GMT")
    with pytest.raises(ConfigError):
        response_headers("put X: y")


def test_headers_of_the_setting_come_with_unknown_paths_too() -> None:
    async def story(client: httpx.AsyncClient, herder: Herder, runner: Recorder) -> None:
        for path, status in (("/connectors", 200), ("/connectors/none", 404), ("/nothing", 404)):
            found = await client.get(path)
            assert (found.status_code, found.headers["x-frame-options"]) == (status, "DENY")
        assert (await client.delete("/connectors")).headers["x-frame-options"] == "DENY"

    run(story, {"response.http.headers.config": "set X-Frame-Options: DENY"})


def test_a_body_of_blanks_and_nulls_are_the_callers_mistakes() -> None:
    async def story(client: httpx.AsyncClient, herder: Herder, runner: Recorder) -> None:
        headers = {"content-type": "application/json"}
        blank = await client.post("/connectors", content=b" \n", headers=headers)
        assert (blank.status_code, blank.json()["error_code"]) == (400, 400)
        none = await client.put("/connectors/a/config", json={"topic": None, "file": ""})
        assert none.json()["message"] == (
            "Connector config {file=, name=a, topic=null} contains no connector type"
        )

    run(story)


def test_a_null_is_one_error_and_shown_as_null() -> None:
    async def story(client: httpx.AsyncClient, herder: Herder, runner: Recorder) -> None:
        path = "/connector-plugins/QuietConnector/config/validate"
        given = {**CONFIG, "name": "a", "topic": None, "tasks.max": None}
        configs = (await client.put(path, json=given)).json()["configs"]
        values = {each["value"]["name"]: each["value"] for each in configs}
        for name in ("topic", "tasks.max"):
            assert values[name]["value"] is None
            assert "Null value can not be supplied as the configuration value." in values[name]["errors"]
            assert not any("Missing required" in each for each in values[name]["errors"])

    run(story)


@pytest.mark.parametrize(
    ("name", "text", "choices"),
    [
        ("acks", "9", ": all, -1, 0, 1"),
        ("compression.type", "zip", ": none, gzip, snappy, lz4, zstd"),
        ("security.protocol", "tls", " (case insensitive): PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
    ],
)
def test_a_word_that_a_client_does_not_know_is_an_error(name: str, text: str, choices: str) -> None:
    async def story(client: httpx.AsyncClient, herder: Herder, runner: Recorder) -> None:
        config = {**CONFIG, f"producer.override.{name}": text}
        refused = await client.put("/connectors/a/config", json=config)
        assert refused.status_code == 400
        reason = f"Invalid value {text} for configuration {name}: String must be one of{choices}"
        assert reason in refused.json()["message"]

    run(story)


def test_a_sink_of_topics_that_cannot_be_is_refused() -> None:
    async def main() -> None:
        herder = Herder({}, "one:1", Plugins(), Recorder())
        letters = "errors.deadletterqueue.topic.name"
        config = {
            "name": "a",
            "connector.class": "FileStreamSink",
            "file": "x",
            "topics": "good.t,no good",
            letters: "..",
        }
        found = herder.validated(config).values
        assert [each.split(":")[0] for each in found["topics"].errors] == [
            "Invalid value no good for configuration topics"
        ]
        assert (
            found[letters].errors[0].startswith(f"Invalid value .. for configuration {letters}: a topic has")
        )

    asyncio.run(main())


def test_offsets_in_a_file_are_changed_by_rest_and_by_tasks(tmp_path: Path) -> None:
    path = tmp_path / "offsets"
    task = FileOffsets("a", path)
    change_offset_file(path, {b'["b",{"f":1}]': b'{"p":1}'})
    task.save([({"f": 2}, {"p": 2})])
    change_offset_file(path, {b'["b",{"f":1}]': None})
    assert read_offset_file(path) == {b'["a",{"f":2}]': b'{"p":2}'}
    path.write_bytes(b"\xac\xed\0\5")
    with pytest.raises(ConfigError, match="Java"):
        read_offset_file(path)
