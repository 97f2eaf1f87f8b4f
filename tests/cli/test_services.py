"""`registry start`, `rest start` and `start --with`: options, errors, children that are kept up."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import urllib.request
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from barnabas.cli.frame.parsing import ToolError, ToolParser, UsageError
from barnabas.cli.node import service_processes
from barnabas.cli.node.service_processes import (
    BACKOFF_S_MAX,
    ServiceProcess,
    ServiceProcesses,
    commands,
    parse_services,
    registry_url,
    run_beside,
    split_overrides,
)
from barnabas.cli.services.starting import (
    PROPERTIES_VARIABLE,
    REGISTRY,
    REST,
    StartedService,
    add_start_arguments,
    overrides,
    with_port,
)
from barnabas.services.callers.users import parse_users
from barnabas.services.settings.listeners import Listener
from barnabas.testing.ports import free_ports
from barnabas.testing.waiting import until, wait_until

from .conftest import RunTool

SLEEPS = [sys.executable, "-c", "import time; time.sleep(60)"]
STUB = """
import sys
from starlette.responses import JSONResponse
from barnabas.services.app import Service
from barnabas.services.hosting import process
from barnabas.services.routes import Need, ServiceRoute
from barnabas.services.settings.loading import load_settings

async def where(request):
    return JSONResponse(settings["kafkastore.bootstrap.servers"])

def make(settings):
    return Service("registry", [ServiceRoute("/where", where, needs=Need.READ)])

settings = load_settings("registry", overrides={
    "kafkastore.bootstrap.servers": "a:1", "listeners": "http://127.0.0.1:0", "listners": "x"})
sys.exit(process.main(settings, make, on_ready=lambda found: print(found[0], flush=True)))
"""


def options(service: StartedService, *arguments: str) -> argparse.Namespace:
    parser = ToolParser(prog=service.name)
    add_start_arguments(parser, service)
    return parser.read(arguments)[0]


def test_flags_override_the_file_and_overrides_the_flags() -> None:
    given = options(
        REST,
        "--bootstrap-server",
        "a:1",
        "--registry-url",
        "http://r:1",
        "--override",
        "bootstrap.servers=b:2",
    )
    assert overrides(given, REST, {}) == {
        "bootstrap.servers": "b:2",
        "schema.registry.url": "http://r:1",
    }
    given = options(REGISTRY, "--bootstrap-server", "a:1")
    assert overrides(given, REGISTRY, {PROPERTIES_VARIABLE: json.dumps({"host.name": "me"})}) == {
        "kafkastore.bootstrap.servers": "a:1",
        "host.name": "me",
    }


def test_a_port_replaces_that_of_the_one_listener() -> None:
    listener = Listener("https", "127.0.0.1", 8081)
    assert with_port((listener,), 9) == [Listener("https", "127.0.0.1", 9)]
    with pytest.raises(ToolError, match="several listeners"):
        with_port((listener, listener), 9)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("registry", "start", "/nowhere.properties"), "/nowhere.properties cannot be read"),
        (("registry", "start", "--bootstrap-server", "nonsense"), "valid host:port"),
        (("rest", "start", "--override", "listeners=ftp://x"), "listeners: ftp://x has the scheme ftp"),
        (
            ("rest", "start", "--port", "1", "--override", "listeners=http://x:1,http://x:2"),
            "several listeners",
        ),
        (("registry",), "usage: barnabas registry"),
        (("start", "--with", "connect"), "expected some of registry, rest"),
        (("schema-registry-start", "-daemon"), "-daemon is not supported"),
    ],
)
def test_mistakes_are_told_in_a_line(arguments: tuple[str, ...], words: str, run_tool: RunTool) -> None:
    ran = run_tool("barnabas", *arguments)
    assert ran.status == 1
    assert words in ran.errors


def test_a_password_is_hashed_for_the_users_file(run_tool: RunTool) -> None:
    for tool in ("registry", "rest"):
        ran = run_tool("barnabas", tool, "hash-password", input="s3cret\n")
        assert ran.status == 0
        users = parse_users(f"alice: {ran.output.strip()},admin")
        assert users.roles_of("alice", "s3cret") == {"admin"}
    assert run_tool("barnabas", "rest", "hash-password", input="\n").status == 1


def test_a_service_runs_until_it_is_told_to_stop() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", STUB], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    url = process.stdout.readline().strip()
    try:
        with urllib.request.urlopen(f"{url}/where", timeout=10) as response:
            assert json.load(response) == ["a:1"]
    finally:
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "Unknown setting listners is ignored; did you mean listeners?" in errors
    assert f"the service registry is ready at {url}" in errors
    assert '"GET /where" 200' in errors
    assert "the service registry has stopped" in errors


@pytest.mark.long
def test_a_node_with_its_services_is_started_kept_up_and_stopped(tmp_path: Path) -> None:
    kafka, registry, rest = free_ports(3)
    overrides = (f"registry.listeners=http://127.0.0.1:{registry}", f"rest.listeners=http://127.0.0.1:{rest}")
    command = [
        sys.executable,
        "-m",
        "barnabas",
        "start",
        "--data",
        str(tmp_path / "data"),
        "--port",
        str(kafka),
    ]
    command += ["--with", "registry,rest"]
    for each in overrides:
        command += ["--override", each]
    output = (tmp_path / "output").open("wb")
    node = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    try:
        wait_until(lambda: is_ready(registry) and is_ready(rest), 90, "both services")
        schema = json.dumps({"schema": '{"type": "string"}'}).encode()
        assert asked(registry, "/subjects/words-value/versions", schema)["id"] == 1
        record = json.dumps({"value_schema_id": 1, "records": [{"value": "hello"}]}).encode()
        media = "application/vnd.kafka.avro.v2+json"
        made = asked(rest, "/topics/words", record, media, "application/vnd.kafka.v2+json")
        assert made["offsets"][0]["offset"] == 0
        (child,) = children(node.pid, " rest start")
        os.kill(child, signal.SIGKILL)
        wait_until(lambda: children(node.pid, " rest start") not in ([], [child]), 60, "another proxy")
        wait_until(lambda: is_ready(rest), 60, "the proxy")
        assert is_ready(registry)
    finally:
        node.send_signal(signal.SIGTERM)
        status = node.wait(60)
        output.close()
    text = (tmp_path / "output").read_text()
    assert status == 0, text
    assert "the service rest ended with status -9: it starts again in 1 s" in text
    assert not is_ready(registry) and not is_ready(rest)
    assert text.rindex("the service registry has stopped") < text.rindex("INFO stopped (barnabas)")


def asked(port: int, path: str, body: bytes, media: str = "application/json", accept: str = "*/*") -> Any:
    headers = {"content-type": media, "accept": accept}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body, headers)
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)


def is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health/ready", timeout=10) as response:
            return bool(response.status == 200)
    except OSError:
        return False


def children(parent: int, words: str) -> list[int]:
    """Processes that this one started, with these words in their command."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            status = (place / "stat").read_text().rpartition(")")[2].split()
            command = (place / "cmdline").read_text().replace("\0", " ")
        except OSError:
            continue
        if int(status[1]) == parent and status[0] != "Z" and words in command:
            found.append(int(place.name))
    return found


def test_settings_of_services_stand_beside_those_of_the_node() -> None:
    node, services = split_overrides(
        {"log.dirs": "/d", "registry.listeners": "http://0.0.0.0:9081", "rest.api.v2.enable": "false"}
    )
    assert node == {"log.dirs": "/d"}
    found = commands(parse_services("rest, registry,rest"), "h:1", services, "INFO")
    assert list(found) == ["rest", "registry"]
    command, properties = found["rest"]
    assert command[1:] == [
        "-m",
        "barnabas",
        "rest",
        "start",
        "--bootstrap-server",
        "h:1",
        "--log-level",
        "INFO",
    ]
    assert properties == {"api.v2.enable": "false", "schema.registry.url": "http://localhost:9081"}
    assert "schema.registry.url" not in commands(["rest"], "h:1", services, "INFO")["rest"][1]
    here = commands(["registry", "rest"], "127.0.0.1:1,localhost:2", {"rest": {"listeners": "x"}}, "INFO")
    assert here["registry"][1] == {"listeners": "http://127.0.0.1:8081"}
    assert here["rest"][1]["listeners"] == "x"
    assert registry_url({"listeners": "https://[::]:1,http://x:2"}) == "https://localhost:1"
    with pytest.raises(UsageError, match="expected some of"):
        parse_services(" , ")


def ended(process: ServiceProcess) -> None:
    assert process.process is not None
    process.process.wait(30)


def test_a_service_that_fails_starts_again_later_each_time() -> None:
    service = ServiceProcess("registry", [sys.executable, "-S", "-c", "raise SystemExit(3)"], {})
    starts: list[float] = []
    now_s = 0.0
    while len(starts) < 4:
        before = service.process
        service.tick(now_s)
        if service.process is not None and service.process is not before:
            starts.append(now_s)
            ended(service)
        now_s += 0.5
    pauses = [later - sooner for sooner, later in pairwise(starts)]
    assert pauses == [1.5, 2.5, 4.5]  # 1, 2 and 4 s behind the moment at which the end was noticed
    assert BACKOFF_S_MAX < 60


def test_a_service_that_was_asked_to_stop_stays_stopped() -> None:
    service = ServiceProcess("registry", [sys.executable, "-S", "-c", "pass"], {})
    service.tick(0.0)
    ended(service)
    service.tick(1.0)
    service.tick(1000.0)
    assert service.process is None


def test_properties_reach_the_child_by_its_environment(tmp_path: Path) -> None:
    program = (
        "import json, os, pathlib; pathlib.Path('found').write_text("
        "os.environ['BARNABAS_SERVICE_PROPERTIES'] + os.environ['BARNABAS_SERVICE_PARENT'])"
    )
    command = [sys.executable, "-c", f"import os; os.chdir({str(tmp_path)!r}); {program}"]
    service = ServiceProcess("rest", command, {"client.sasl.jaas.config": "s3cret"})
    service.tick(0.0)
    ended(service)
    assert (tmp_path / "found").read_text() == '{"client.sasl.jaas.config": "s3cret"}' + str(os.getpid())


def test_services_end_with_their_node(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[ServiceProcesses] = []

    class Noted(ServiceProcesses):
        def __init__(self, wanted: Any) -> None:
            super().__init__({name: (SLEEPS, {}) for name in wanted})
            made.append(self)

    monkeypatch.setattr(service_processes, "ServiceProcesses", Noted)

    class Node:
        bootstrap = "h:1"

    async def run() -> list[int]:
        async with run_beside(("registry", "rest"), {}, "INFO")(Node()):  # type: ignore[arg-type]
            await until(lambda: all(each.process is not None for each in made[0].services), 30)
            return [each.process.pid for each in made[0].services if each.process is not None]

    pids = asyncio.run(run())
    assert len(pids) == 2
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_services_whose_packages_are_missing_are_not_tried_again_and_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"pip install 'barnabas\[registry,rest\]'"):
        parse_services("registry,rest")
