"""A whole flow with secrets: none of them is in a log, a plan, an event log, a metric or an answer."""

from __future__ import annotations

import base64
import json
import logging
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="needs the extra `pipeline`")

from barnabas.cli.main import main
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.topics import NewTopic
from barnabas.client.blocking import run
from barnabas.engine.field_cipher import PROTECTED, FieldCipher, new_key
from barnabas.engine.timeline import Timeline
from barnabas.pipeline.file.reading import read_pipeline
from barnabas.pipeline.observe import metrics
from barnabas.pipeline.run.start import programs_of
from barnabas.pipeline.serving.access import serving_url
from barnabas.pipeline.spec.state_folder import state_folder
from barnabas.testing.broker import Broker
from barnabas.testing.waiting import wait_until
from security.sasl_broker import SASL_SETTINGS, client_properties, cluster_of, plain_entry
from spark_sessions import STARTS_FAST

SECRETS = {
    "SASL_WORD": "sasl-b1e3f7-word",
    "SALT": "salt-90c2aa-grain",
    "FIELD_KEY": new_key(),
    "PARTS_TOKEN": "parts-57ad01-token",
    "GUEST_TOKEN": "guest-0d94e2-token",
    "GUEST_WORD": "guest-c33b58-word",
    "SPARK_SECRET": "spark-41f6de-value",
}
PEOPLE = [{"id": number, "name": f"name-{number}", "email": f"p{number}@example.org"} for number in range(3)]

FILE = """
name: people
lake: ./lake
spark:
  master: "local[1]"
  settings:
    spark.hadoop.some.plain.setting: "${env:SPARK_SECRET}"
    spark.eventLog.enabled: "true"
    spark.eventLog.compress: "false"  # so that the test can read it
    spark.eventLog.dir: file://FOLDER/events
    spark.sql.shuffle.partitions: "1"
MORE
sources:
  people:
    topic:
      bootstrap.servers: BROKER
      subscribe: people
      settings:
        kafka.security.protocol: SASL_PLAINTEXT
        kafka.sasl.mechanism: PLAIN
        kafka.sasl.jaas.config: 'some.PlainLoginModule required username="ann" password="${env:SASL_WORD}";'
    schema: "id BIGINT, name STRING, email STRING"
staging: {people: {key: [id]}}
trusted:
  people: {hash: [name], salt: "${env:SALT}", encrypt: [email], key: "${env:FIELD_KEY}"}
views:
  counted:
    from: trusted.people
    sql: "SELECT name, max(email) AS email, count(*) AS people FROM people GROUP BY name"
    keys: [name]
    measures: {email: max, people: count}
serving:
  port: 0
  token: "${env:PARTS_TOKEN}"
  tokens: ["${env:GUEST_TOKEN}"]
  users: {ann: "${env:GUEST_WORD}"}
"""


@pytest.fixture
def broker() -> Iterator[Broker]:
    entry = plain_entry({"admin": "admin-word", "ann": SECRETS["SASL_WORD"]}, ("admin", "admin-word"))
    settings = {**SASL_SETTINGS, "listener.name.plaintext.plain.sasl.jaas.config": entry}
    with Broker(overrides=settings) as found:
        properties = client_properties("PLAIN", "ann", SECRETS["SASL_WORD"])
        with cluster_of(found.bootstrap, properties) as cluster:
            run(Admin(cluster).create_topic(NewTopic("people", 1, 1)))
        yield found


def tool(*arguments: str, capfd: pytest.CaptureFixture[str]) -> str:
    status = main(arguments, "barnabas")
    shown = capfd.readouterr()
    assert status == 0, shown.err
    return shown.out + shown.err


def found_in(text: str) -> list[str]:
    return [name for name, value in SECRETS.items() if value in text]


@pytest.mark.long
@pytest.mark.timeout(600)
def test_no_secret_of_a_run_is_written_or_told(
    tmp_path: Path,
    broker: Broker,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "events").mkdir()
    more = "".join(f'    {name}: "{value}"\n' for name, value in STARTS_FAST.items())
    text = FILE.replace("FOLDER", str(tmp_path)).replace("BROKER", broker.bootstrap).replace("MORE\n", more)
    file = tmp_path / "pipeline.yaml"
    file.write_text(text)
    client = tmp_path / "client.properties"
    client.write_text(
        "".join(f"{n}={v}\n" for n, v in client_properties("PLAIN", "ann", "${env:SASL_WORD}").items())
    )
    produce(broker, client)

    ran = subprocess.run(
        [sys.executable, "-m", "barnabas", "pipeline", "run", "--once", str(file)],
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    texts = {"output": ran.stdout + ran.stderr, "broker": caplog.text}
    for command in ("validate", "plan", "status", "query"):
        texts[command] = tool("pipeline", command, "--file", str(file), capfd=capfd)
    texts["report"] = tool("pipeline", "report", "--file", str(file), "--output", "r.html", capfd=capfd)
    texts["lineage"] = tool("pipeline", "lineage", "--file", str(file), "--events", capfd=capfd)
    texts["configs"] = tool(
        "configs", "--bootstrap-server", broker.bootstrap, "--command-config", str(client),
        "--describe", "--broker", "1", "--all", capfd=capfd,
    )  # fmt: skip
    pipeline = read_pipeline(file)
    texts["metrics"] = metrics.text(pipeline.name, Timeline(state_folder(pipeline)))
    rows = serve(file, texts)

    everything = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any("events" in path.parts for path in everything)  # Spark's event log is among them
    texts |= {str(path): path.read_bytes().decode("latin-1") for path in everything}
    wrong = {where: found for where, each in texts.items() if (found := found_in(each))}
    assert wrong == {}
    plans = "".join(each for where, each in texts.items() if f"{os.sep}events{os.sep}" in where)
    assert "encrypted(" in plans and "hashed(" in plans and "(redacted)" in plans
    # The values themselves are protected, and come back with the key.
    cipher = FieldCipher(SECRETS["FIELD_KEY"])
    assert all(PROTECTED.fullmatch(row["email"]) for row in rows)
    assert {cipher.decrypt(row["email"]) for row in rows} == {each["email"] for each in PEOPLE}


def produce(broker: Broker, client: Path) -> None:
    lines = "\n".join(json.dumps(each) for each in PEOPLE) + "\n"
    command = ["produce", "--bootstrap-server", broker.bootstrap, "--topic", "people"]
    subprocess.run(
        [sys.executable, "-m", "barnabas", *command, "--command-config", str(client)],
        input=lines,
        text=True,
        check=True,
        timeout=60,
    )


def serve(file: Path, texts: dict[str, str]) -> list[dict[str, str]]:
    """Start the serving process as a run does, ask it, keep what it tells, and return the view's rows."""
    pipeline = read_pipeline(file)
    program = programs_of(pipeline, file)[0]
    command = program.command[: program.command.index("--ends-with")]
    process = subprocess.Popen(
        command, env={**os.environ, **program.environment}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        wait_until(lambda: serving_url(pipeline), 60, "the serving process")
        texts["command line"] = Path(f"/proc/{process.pid}/cmdline").read_bytes().decode()
        token, basic = f"Bearer {SECRETS['GUEST_TOKEN']}", f"ann:{SECRETS['GUEST_WORD']}"
        for path in ("/", "/views", "/openapi.json", "/health"):
            texts[path] = ask(pipeline_url(file), path, token)
        texts["refused"] = ask(pipeline_url(file), "/views", "Bearer wrong")
        answer = ask(
            pipeline_url(file), "/views/counted", "Basic " + base64.b64encode(basic.encode()).decode()
        )
        texts["answer"] = answer
    finally:
        process.terminate()
        texts["serving"] = process.communicate(timeout=30)[0].decode()
    found: list[dict[str, str]] = json.loads(answer)["rows"]
    return found


def pipeline_url(file: Path) -> str:
    url = serving_url(read_pipeline(file))
    assert url is not None
    return url


def ask(url: str, path: str, authorization: str) -> str:
    request = urllib.request.Request(url + path, headers={"authorization": authorization})
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.read().decode()
    except urllib.error.HTTPError as refused:
        with refused:
            return str(refused.headers) + refused.read().decode()
