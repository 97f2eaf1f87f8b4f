"""Settings of services: Confluent's names, checked values, properties of clients, files and references."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.security.errors import SecuritySettingsError
from barnabas.services.settings.client_properties import registry_client, registry_topic, rest_client
from barnabas.services.settings.http_rows import SHARED
from barnabas.services.settings.listeners import Listener, parse_listeners
from barnabas.services.settings.loading import SERVICES, load_settings, table_of
from barnabas.services.settings.service_settings import ServiceSettings
from barnabas.settings import SettingsError
from barnabas.settings.validators import check_value
from barnabas.settings.values import parse_value, to_text

BROKER = {"kafkastore.bootstrap.servers": "localhost:9092"}

REGISTRY_FILE = """
# as Confluent ships it
listeners=http://0.0.0.0:8081, https://0.0.0.0:8443
host.name=registry-1.example
kafkastore.bootstrap.servers=SASL_SSL://kafka-1:9093,PLAINTEXT://kafka-1:9092,SASL_SSL://kafka-2:9093
kafkastore.security.protocol=SASL_SSL
kafkastore.ssl.truststore.location=/etc/trust.jks
kafkastore.ssl.truststore.password=${env:TRUST_PASSWORD}
kafkastore.sasl.mechanism=PLAIN
kafkastore.sasl.jaas.config=some.PlainLoginModule required username="sr" password="p";
kafkastore.topic=_schemas
kafkastore.topic.config.segment.bytes=1000000
kafkastore.topic.replication.factor=1
schema.compatibility.level=full
schema.registry.leader.eligibility=false
debug=false
"""


def test_a_file_of_confluents_registry_is_understood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUST_PASSWORD", "s3cret")
    file = tmp_path / "schema-registry.properties"
    file.write_text(REGISTRY_FILE)
    settings = load_settings("registry", file, {"kafkastore.topic": "_mine"})
    assert settings.listeners == (Listener("http", "0.0.0.0", 8081), Listener("https", "0.0.0.0", 8443))
    assert settings["kafkastore.topic"] == "_mine"
    assert settings["schema.compatibility.level"] == "full"
    assert settings["leader.eligibility"] is False
    assert settings.warnings == ["debug has no effect here."]
    assert registry_client(settings) == {
        "bootstrap.servers": "kafka-1:9093,kafka-2:9093",
        "security.protocol": "SASL_SSL",
        "ssl.truststore.location": "/etc/trust.jks",
        "ssl.truststore.password": "s3cret",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": 'some.PlainLoginModule required username="sr" password="p";',
    }
    assert registry_topic(settings) == {"segment.bytes": "1000000"}
    assert "s3cret" not in repr(settings)


def test_clients_of_the_proxy_share_settings_and_have_their_own() -> None:
    settings = load_settings(
        "rest",
        overrides={
            "bootstrap.servers": "a:1,b:2",
            "client.security.protocol": "SSL",
            "client.ssl.truststore.location": "/t",
            "producer.linger.ms": "20",
            "consumer.ssl.truststore.location": "/other",
            "consumer.request.timeout.ms": "2000",
            "schema.registry.url": "http://sr:8081",
            "schema.registry.basic.auth.user.info": "a:b",
            "kafka.rest.api.v2.enable": "false",
        },
    )
    assert rest_client(settings, "producer") == {
        "bootstrap.servers": "a:1,b:2",
        "security.protocol": "SSL",
        "ssl.truststore.location": "/t",
        "linger.ms": "20",
    }
    assert rest_client(settings, "consumer")["ssl.truststore.location"] == "/other"
    assert "request.timeout.ms" not in rest_client(settings, "consumer")
    assert settings["consumer.request.timeout.ms"] == 2000
    assert settings.below("schema.registry.") == {"basic.auth.user.info": "a:b"}
    assert settings["api.v2.enable"] is False
    assert settings.warnings == []


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("kafkastore.topic.replication.factor", "0", "must be at least 1"),
        ("kafkastore.timeout.ms", "soon", "Not a number"),
        ("leader.eligibility", "maybe", "true or false"),
        ("schema.compatibility.level", "sideways", "must be one of"),
        ("authentication.method", "KERBEROS", "must be one of"),
        ("listeners", "ftp://0.0.0.0:21", "has the scheme ftp"),
        ("listeners", "http://0.0.0.0:99999", "is no number"),
        ("listeners", "http://0.0.0.0:1,https://0.0.0.0:1", "two listeners"),
        ("listeners", "http://0.0.0.0:1/path", "more than a scheme"),
        ("listeners", "", "names no listener"),
        ("kafkastore.bootstrap.servers", "", "must not be empty"),
    ],
)
def test_a_wrong_value_is_refused_by_its_name(name: str, text: str, words: str) -> None:
    with pytest.raises(SettingsError, match=words) as caught:
        load_settings("registry", overrides={**BROKER, name: text})
    assert name in str(caught.value)


def test_what_is_missing_unknown_or_old_is_said() -> None:
    with pytest.raises(SettingsError, match=r"kafkastore.bootstrap.servers"):
        load_settings("registry")
    settings = load_settings(
        "registry",
        overrides={
            **BROKER,
            "kafkastore.topci": "x",  # below kafkastore. every name may be a client's
            "listners": "http://x:1",
            "master.eligibility": "false",
        },
    )
    assert settings["leader.eligibility"] is False
    assert settings.warnings == [
        "Unknown setting listners is ignored; did you mean listeners?",
        "master.eligibility is an old name: use leader.eligibility.",
    ]


def test_servers_of_another_protocol_only_are_an_error() -> None:
    settings = load_settings("registry", overrides={"kafkastore.bootstrap.servers": "SSL://a:1"})
    with pytest.raises(SettingsError, match="no server has the protocol PLAINTEXT"):
        registry_client(settings)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="No such file"):
        load_settings("registry", tmp_path / "none.properties")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError, match="is no text file"):
        load_settings("registry", tmp_path / "binary")
    with pytest.raises(SecuritySettingsError, match="BARNABAS_NONE is not set"):
        load_settings("registry", overrides={**BROKER, "ssl.keystore.password": "${env:BARNABAS_NONE}"})


def test_listeners_know_whether_others_reach_them() -> None:
    texts = ("http://127.0.0.1:0", "https://[::1]", "http://localhost:1", "https://:8443", "0.0.0.0:8081")
    found = parse_listeners("listeners", texts)
    assert [each.is_loopback for each in found] == [True, True, True, False, False]
    assert [str(each) for each in found] == [
        "http://127.0.0.1:0",
        "https://[::1]:443",
        "http://localhost:1",
        "https://0.0.0.0:8443",
        "http://0.0.0.0:8081",
    ]


@pytest.mark.parametrize("service", SERVICES)
def test_every_default_is_a_value_that_the_setting_allows(service: str) -> None:
    table = table_of(service)
    given = {name: "localhost:9092" for name, row in table.rows.items() if row.required}
    settings = ServiceSettings(table, given)
    for name, row in table.rows.items():
        assert row.documentation.endswith("."), name
        value = settings[name]
        if value is not None and not row.required:
            check_value(row, parse_value(name, row.type, to_text(value) or ""))
    assert not set(table.aliases.values()) - set(table.rows)
    assert not table.without_effect & set(table.rows)


def test_the_guide_lists_every_setting_that_services_share() -> None:
    page = (Path(__file__).parents[2] / "docs" / "services.md").read_text()
    for name, _, default, valid, text in SHARED:
        shown = "" if default in (None, "") else f"`{to_text(default)}`"  # type: ignore[arg-type]
        assert f"| `{name}` | {shown} | {valid} | {text} |\n" in page
