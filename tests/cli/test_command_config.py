"""Every tool connects with the security that a file of Java's client properties describes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.cli.frame import librdkafka
from barnabas.cli.frame.parsing import ToolError
from barnabas.testing import Broker
from security.sasl_broker import SASL_SETTINGS, USERS, client_properties
from security.tls_world import TlsBroker, certificates

from .conftest import RunTool

TOPIC = "secured"
PARTITIONS = json.dumps({"partitions": [{"topic": TOPIC, "partition": 0}]})
OFFSETS = json.dumps({"partitions": [{"topic": TOPIC, "partition": 0, "offset": 0}]})

COMMANDS: dict[str, list[str]] = {
    "kafka-topics": ["--describe", "--topic", TOPIC],
    "kafka-get-offsets": ["--topic", TOPIC],
    "kafka-consumer-groups": ["--list"],
    "kafka-groups": ["--list"],
    "kafka-broker-api-versions": [],
    "kafka-configs": ["--describe", "--topic", TOPIC],
    "kafka-log-dirs": ["--describe"],
    "kafka-delete-records": ["--offset-json-file", "offsets.json"],
    "kafka-leader-election": ["--election-type", "preferred", "--path-to-json-file", "partitions.json"],
    "kafka-reassign-partitions": ["--list"],
    "kafka-client-metrics": ["--list"],
    "kafka-transactions": ["list"],
    "kafka-features": ["describe"],
    "kafka-metadata-quorum": ["describe", "--status"],
    "kafka-cluster": ["cluster-id"],
    "kafka-e2e-latency": [
        "--topic",
        TOPIC,
        "--num-records",
        "2",
        "--producer-acks",
        "1",
        "--record-size",
        "9",
    ],
}
SUBCOMMANDS = {"kafka-cluster"}  # whose options follow the command


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ADMINS_WORD", USERS["admin"])
    (tmp_path / "words").mkdir()
    (tmp_path / "words" / "admin").write_text(USERS["admin"])
    (tmp_path / "words.properties").write_text(f"admin={USERS['admin']}\n")
    (tmp_path / "partitions.json").write_text(PARTITIONS)
    (tmp_path / "offsets.json").write_text(OFFSETS)
    write(tmp_path / "admin.properties", client_properties("PLAIN", "admin", "${env:ADMINS_WORD}"))
    return tmp_path


def write(path: Path, properties: dict[str, str]) -> str:
    path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    return str(path)


@pytest.fixture(scope="module")
def secured() -> Iterator[str]:
    with Broker(overrides=SASL_SETTINGS) as broker:
        yield broker.bootstrap


@pytest.fixture
def topic(secured: str, run_tool: RunTool, files: Path) -> str:
    made = ("--create", "--topic", TOPIC, "--if-not-exists", "--command-config", "admin.properties")
    assert run_tool("kafka-topics", "--bootstrap-server", secured, *made).status == 0
    return TOPIC


@pytest.mark.parametrize("tool", sorted(COMMANDS))
def test_tools_log_in(tool: str, secured: str, topic: str, run_tool: RunTool) -> None:
    given = ["--bootstrap-server", secured, "--command-config", "admin.properties"]
    words = COMMANDS[tool]
    ran = run_tool(tool, *([*words, *given] if tool in SUBCOMMANDS else [*given, *words]))
    assert ran.status == 0, ran.errors
    assert USERS["admin"] not in ran.output + ran.errors


def test_a_tool_without_a_login_says_what_happened(secured: str, run_tool: RunTool) -> None:
    ran = run_tool("kafka-topics", "--bootstrap-server", secured, "--list")
    assert ran.status == 1 and secured in ran.errors and "Traceback" not in ran.errors


def test_a_wrong_password_is_one_line_without_the_password(
    secured: str, run_tool: RunTool, files: Path
) -> None:
    wrong = write(files / "wrong.properties", client_properties("PLAIN", "admin", "not-the-word"))
    ran = run_tool("kafka-topics", "--bootstrap-server", secured, "--list", "--command-config", wrong)
    assert ran.status == 1 and "Invalid username or password" in ran.errors
    assert "not-the-word" not in ran.errors and len(ran.errors.splitlines()) == 1


@pytest.mark.parametrize(
    ("reference", "problem"),
    [
        ("${directory:words:admin}", ""),
        ("${file:words.properties:admin}", ""),
        ("${env:NOT_SET_AT_ALL}", "the environment variable NOT_SET_AT_ALL is not set"),
        ("${file:none.properties:admin}", "cannot be read"),
    ],
)
def test_passwords_are_references(
    reference: str, problem: str, secured: str, run_tool: RunTool, files: Path
) -> None:
    path = write(files / "by-reference.properties", client_properties("PLAIN", "admin", reference))
    ran = run_tool("kafka-topics", "--bootstrap-server", secured, "--list", "--command-config", path)
    assert (ran.status, problem in ran.errors) == (1 if problem else 0, True)


@pytest.mark.parametrize("option", ["--command-config", "--producer.config"])
def test_the_console_producer_and_consumer_log_in(option: str, secured: str, run_tool: RunTool) -> None:
    base = ("--bootstrap-server", secured, "--topic", f"console{option.replace('--', '-')}")
    sent = run_tool("kafka-console-producer", *base, option, "admin.properties", input="hello\n")
    assert sent.status == 0 and "has no effect" not in sent.errors, sent.errors
    other = option.replace("producer", "consumer")
    read = run_tool(
        "kafka-console-consumer", *base, other, "admin.properties", "--from-beginning", "--max-messages", "1"
    )
    assert (read.status, read.lines) == (0, ["hello"]), read.errors
    assert "has no effect" not in read.errors


@pytest.mark.skipif(not librdkafka.is_installed(), reason="members of groups need librdkafka")
def test_members_and_measurements_log_in_by_librdkafka(secured: str, topic: str, run_tool: RunTool) -> None:
    base = ("--bootstrap-server", secured, "--topic", topic, "--command-config", "admin.properties")
    sizes = ("--num-records", "5", "--record-size", "10", "--throughput", "-1")
    measured = run_tool("kafka-producer-perf-test", *base, *sizes)
    assert measured.status == 0 and "5 records sent" in measured.output, measured.errors
    assert run_tool("kafka-consumer-perf-test", *base, "--num-records", "5", "--timeout", "9000").status == 0
    member = ("--group", "g", "--from-beginning", "--max-messages", "1")
    assert run_tool("kafka-console-consumer", *base, *member).status == 0


@pytest.mark.parametrize("kind", ["PEM", "PKCS12"])
def test_tools_speak_tls(kind: str, run_tool: RunTool, files: Path) -> None:
    made = certificates()
    store = {"ssl.truststore.type": kind, "ssl.truststore.location": made.ca_file}
    if kind == "PKCS12":
        path = made.write("trusted.p12", made.authority.trust_pkcs12("ca", "store-word"))
        store |= {"ssl.truststore.location": path, "ssl.truststore.password": "store-word"}
    properties = write(files / "tls.properties", {"security.protocol": "SSL", **store})
    with TlsBroker() as broker:
        base = ("--bootstrap-server", broker.bootstrap, "--command-config", properties)
        assert run_tool("kafka-topics", *base, "--create", "--topic", TOPIC).status == 0
        topic = (*base, "--topic", TOPIC)
        assert run_tool("kafka-console-producer", *topic, input="hello\n").status == 0
        if librdkafka.is_installed():
            member = ("--group", "g", "--from-beginning", "--max-messages", "1")
            assert run_tool("kafka-console-consumer", *topic, *member).lines == ["hello"]
        plain = run_tool("kafka-topics", "--bootstrap-server", broker.bootstrap, "--list")
        assert plain.status == 1 and "Traceback" not in plain.errors


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"ssl.enabled.protocols": "TLSv1.3"}, "ssl.enabled.protocols"),
        ({"ssl.cipher.suites": "TLS_AES_256_GCM_SHA384"}, "ssl.cipher.suites"),
        ({"ssl.truststore.location": "none.pem"}, "ssl.truststore.location"),
        (client_properties("SCRAM-SHA-256", "id", "hmac", ' tokenauth="true"'), "delegation token"),
        (
            {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.jaas.config": "x"},
            "JAAS text is wrong",
        ),
    ],
)
def test_security_that_librdkafka_cannot_follow_is_refused(more: dict[str, str], problem: str) -> None:
    store = {"ssl.truststore.type": "PEM", "ssl.truststore.location": certificates().ca_file}
    with pytest.raises(ToolError, match=problem):
        librdkafka.settings({"security.protocol": "SSL", **store, **more})


def test_settings_for_librdkafka_hold_what_the_stores_hold() -> None:
    made = certificates()
    stores = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": made.alice_file,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": made.ca_file,
        "ssl.endpoint.identification.algorithm": "",
        "ssl.cipher.suites": "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    }
    found = librdkafka.settings({"security.protocol": "ssl", "client.id": "c", **stores})
    assert found.pop("ssl.ca.pem").encode() == made.authority.certificate_pem
    assert found.pop("ssl.key.pem").encode() == made.alice.key_pem
    assert found.pop("ssl.certificate.pem").encode() == made.alice.chain_pem
    assert found == {
        "security.protocol": "SSL",
        "client.id": "c",
        "ssl.endpoint.identification.algorithm": "none",
        "ssl.cipher.suites": "ECDHE-RSA-AES128-GCM-SHA256",
    }
    bearer = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": "http://localhost/token",
        "sasl.jaas.config": 'x.OAuthBearerLoginModule required clientId="a" clientSecret="b" scope="s";',
    }
    assert librdkafka.settings(bearer) == {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": "http://localhost/token",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.client.id": "a",
        "sasl.oauthbearer.client.secret": "b",
        "sasl.oauthbearer.scope": "s",
    }
