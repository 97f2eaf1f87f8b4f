"""Settings of the lag service: properties, YAML, and Burrow's configuration."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from barnabas.monitor.lag_service.burrow_file import tls_properties
from barnabas.monitor.lag_service.cluster_watch import WatchSettings
from barnabas.monitor.lag_service.from_settings import clusters, watch_settings
from barnabas.monitor.lag_service.settings_file import read_settings
from barnabas.security.tls.certificates import issue, new_authority
from barnabas.services.settings.loading import load_settings
from barnabas.settings import SettingsError


def watches(file: Path) -> dict[str, WatchSettings]:
    settings = load_settings("lag", None, read_settings(file)[0])
    assert settings.warnings == []
    return {name: watch_settings(settings, name, each) for name, each in clusters(settings).items()}


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_yaml_names_several_clusters_with_logins(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        "lag.yaml",
        """
listeners: [http://127.0.0.1:8123]
intervals: 15
group.denylist: ^console-
start.latest: true
clusters:
  east:
    bootstrap.servers: [east1:9092, east2:9092]
    client.id: watcher
  west:
    bootstrap.servers: west:9093
    security.protocol: SASL_PLAINTEXT
    sasl:
      mechanism: PLAIN
      jaas.config: org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="p";
""",
    )
    found = watches(file)
    assert list(found) == ["east", "west"]
    east, west = found.values()
    assert [str(each) for each in east.bootstrap] == ["east1:9092", "east2:9092"]
    assert (east.client_id, east.rules.intervals, east.from_latest) == ("watcher", 15, True)
    assert east.rules.group_denied is not None
    assert (west.security.protocol, west.security.mechanism) == ("SASL_PLAINTEXT", "PLAIN")


def test_a_property_that_is_misspelt_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    text = "cluster.a.bootstrap.servers=h:1\ncluster.a.security.protocl=SSL\ncluster.a.linger.ms=5\n"
    watches(written(tmp_path, "lag.properties", text))
    assert [each.getMessage() for each in caplog.records] == [
        "cluster.a: the property linger.ms has no effect",
        "cluster.a: the property security.protocl has no effect; did you mean security.protocol?",
    ]


def test_properties_name_a_cluster(tmp_path: Path) -> None:
    file = written(tmp_path, "lag.properties", "bootstrap.servers=h:1\ncluster.name=prod\nallowed.lag=5\n")
    found = watches(file)
    assert [(name, str(each.bootstrap[0]), each.rules.allowed_lag) for name, each in found.items()] == [
        ("prod", "h:1", 5)
    ]


BURROW = """
[general]
access-control-allow-origin="mysite.example.com"
[logging]
level="info"
[zookeeper]
servers=["zk:2181"]
[client-profile.test]
client-id="burrow-test"
kafka-version="2.0.0"
[cluster.local]
class-name="kafka"
servers=["k1:10251", "k2:10251"]
client-profile="test"
topic-refresh=120
offset-refresh=30
[consumer.local]
class-name="kafka"
cluster="local"
servers=["k1:10251"]
client-profile="test"
group-denylist="^(console-consumer-|quick-).*$"
group-allowlist=""
[httpserver.default]
address=":8123"
[storage.default]
class-name="inmemory"
intervals=15
expire-group=604800
min-distance=1
[evaluator.default]
class-name="caching"
allowed-lag=3
"""


def test_burrows_file_is_understood(tmp_path: Path) -> None:
    file = written(tmp_path, "burrow.toml", BURROW)
    properties, notes = read_settings(file)
    assert any("Zookeeper is not needed" in note for note in notes)
    assert properties["listeners"] == "http://0.0.0.0:8123"
    [watch] = watches(file).values()
    assert (watch.name, watch.client_id) == ("local", "burrow-test")
    assert (watch.topic_refresh_s, watch.offset_refresh_s) == (120, 30)
    rules = watch.rules
    assert (rules.intervals, rules.min_distance_ms, rules.allowed_lag) == (15, 1_000, 3)
    assert rules.group_denied is not None
    assert rules.group_denied.search("quick-1")


def test_a_profile_with_tls_and_sasl_becomes_properties_of_kafkas_clients(tmp_path: Path) -> None:
    now = datetime.datetime.now(datetime.UTC)
    authority = new_authority("CN=CA", now)
    client = issue(authority, "CN=watcher", now)
    (tmp_path / "ca.pem").write_bytes(authority.certificate_pem)
    (tmp_path / "client.pem").write_bytes(client.certificate_pem)
    (tmp_path / "client.key").write_bytes(client.key_pem)
    text = (
        BURROW.replace('kafka-version="2.0.0"', 'sasl="main"\ntls="main"')
        + f"""
[sasl.main]
username="u"
password="p\\"w"
mechanism="SCRAM-SHA-256"
[tls.main]
cafile="{tmp_path}/ca.pem"
certfile="{tmp_path}/client.pem"
keyfile="{tmp_path}/client.key"
"""
    )
    file = written(tmp_path, "burrow.toml", text)
    assert read_settings(file)[0]["cluster.local.security.protocol"] == "SASL_SSL"
    [watch] = watches(file).values()
    assert watch.security.mechanism == "SCRAM-SHA-256"
    assert watch.security.tls is not None


def test_notifiers_are_left_to_the_alert_service(tmp_path: Path) -> None:
    text = BURROW.replace("[evaluator.default]", "[notifier.web]")
    _, notes = read_settings(written(tmp_path, "burrow.toml", text))
    assert any("barnabas alerts serve FILE" in note for note in notes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('class-name="kafka"\ncluster', 'class-name="kafka_zk"\ncluster'), "groups in Zookeeper"),
        (('client-profile="test"\ntopic', 'client-profile="none"\ntopic'), "client-profile.none"),
        (('cluster="local"', 'cluster="other"'), "'other', which has no section"),
        (("[cluster.local]", "[elsewhere.local]"), "no \\[cluster.NAME\\] section"),
        (('kafka-version="2.0.0"', 'iam="eks"'), "AWS IAM"),
        (('kafka-version="2.0.0"', 'tls="none"'), "\\[tls.none\\]"),
        (("[general]", "[general"), "is no TOML"),
        (("[general]", "sasl=3\n[general]"), "sasl is 3: it is a section"),
        (("[cluster.local]", "[cluster]\nx=1\n[cluster.local]"), "cluster.x is 1: write a section"),
    ],
)
def test_what_burrow_has_and_we_do_not_is_refused(
    tmp_path: Path, change: tuple[str, str], message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        read_settings(written(tmp_path, "burrow.toml", BURROW.replace(*change)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("intervals=5", "no cluster is named"),
        ("cluster.a.client.id=x", "belongs to no cluster"),
        ("bootstrap.servers=h:1\ngroup.denylist=(", "no regular expression"),
        ("cluster.a.bootstrap.servers=h", "cluster.a.bootstrap.servers"),
        ("cluster.a.bootstrap.servers=h:1\ncluster.a.security.protocol=X", "cluster.a: security.protocol=X"),
    ],
)
def test_a_wrong_setting_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        watches(written(tmp_path, "lag.properties", text))


@pytest.mark.parametrize("clusters", ["[a, b]", "h:1", "{a: h:1}"])
def test_clusters_without_properties_are_refused(tmp_path: Path, clusters: str) -> None:
    with pytest.raises(SettingsError, match="clusters: write each as NAME"):
        read_settings(written(tmp_path, "lag.yaml", f"clusters: {clusters}"))


def test_a_certificate_without_its_key_is_refused() -> None:
    with pytest.raises(SettingsError, match="names no keyfile"):
        tls_properties({"certfile": "cert.pem"})


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    for suffix in ("yaml", "toml", "properties"):
        with pytest.raises(SettingsError, match=f"none.{suffix} cannot be read"):
            read_settings(tmp_path / f"none.{suffix}")
