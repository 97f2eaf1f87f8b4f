"""The file of alerts: what it may say, and what an error tells."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.monitor.alert_service.durations import seconds
from barnabas.monitor.alert_service.file import AlertsFile, read_file
from barnabas.monitor.alerts.rule import Severity
from barnabas.settings.errors import SettingsError

WHOLE = """
clusters:
  - name: main
    properties: {bootstrap.servers: "broker-1:9092,broker-2:9092", client.id: watcher}
    metrics: ["http://broker-1:9404/metrics"]
interval: 30s
external_url: http://alerts.example
audit: ["http://localhost:8001"]
connect: ["http://localhost:8083/"]
certificates: ["broker-1:9093"]
targets:
  ops: {mail: {server: "smtp.example:2525", from: kafka@example, to: [ops@example], security: none, user: me,
               password: "${env:ALERT_TEST_PASSWORD}"}}
  hook: {webhook: {url: "https://hooks.example/secret-path", basic: {user: a, password: b}}}
  chat: {slack: {url: "https://hooks.example/T0/B0"}}
  pager: {pagerduty: {routing_key: k}}
  am: {alertmanager: {urls: ["http://am-1:9093", "http://am-2:9093"]}}
routes:
  - {match: [severity=critical], targets: [pager, ops]}
  - {targets: [chat]}
group: {by: [cluster], wait: 5s, interval: 1m, repeat: 12h}
rules:
  - {name: UnderReplicatedPartitions, for: 10m, severity: critical}
  - {name: DiskAlmostFull, below: 5}
  - {name: QuorumFallsBehind, enabled: false}
  - name: SlowProduce
    check: metric
    metric: kafka_network_requestmetrics_totaltimems
    match: {request: Produce, quantile: "0.99"}
    above: 500
    for: 5m
    targets: [chat]
maintenance:
  - {name: patches, days: [sun], from: "02:00", to: "04:00", timezone: Europe/Berlin, match: [cluster=main]}
"""


def read(tmp_path: Path, text: str) -> AlertsFile:
    path = tmp_path / "alerts.yaml"
    path.write_text(text)
    return read_file(path)


def test_a_whole_file_is_understood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALERT_TEST_PASSWORD", "hunter2")
    found = read(tmp_path, WHOLE)
    rules = {rule.name: rule for rule in found.rules}
    assert rules["UnderReplicatedPartitions"].for_s == 600
    assert rules["UnderReplicatedPartitions"].severity is Severity.CRITICAL
    assert rules["UnderReplicatedPartitions"].above == 0
    assert (rules["DiskAlmostFull"].below, rules["DiskAlmostFull"].good_at) == (5, None)
    assert "QuorumFallsBehind" not in rules
    assert rules["SlowProduce"].options == {
        "metric": "kafka_network_requestmetrics_totaltimems",
        "match": {"request": "Produce", "quantile": "0.99"},
    }
    assert set(found.targets) == {"ops", "hook", "chat", "pager", "am"}
    assert "hunter2" not in repr(found)
    assert "secret-path" not in repr(found)
    assert found.clusters[0].bootstrap_text == "broker-1:9092,broker-2:9092"
    assert found.connect == ("http://localhost:8083",)
    assert found.grouping.repeat_s == 43_200


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("rulez: []", "rulez: no such entry; did you mean rules?"),
        ("rules: [{name: Mine}]", "Mine is a new rule and needs `check`"),
        ("rules: [{name: OfflinePartition, enabled: false}]", "did you mean OfflinePartitions?"),
        ("rules: [{name: Mine, check: metric, above: 1}]", "needs `metric`"),
        ("rules: [{name: Mine, check: heat, above: 1}]", "no check is called heat; known: unreachable"),
        ("rules: [{name: OfflinePartitions, for: soon}]", "'soon' is no duration: write it as 30s"),
        ("rules: [{name: OfflinePartitions, targets: [x]}]", "no target is called x; known: none"),
        ("targets: {a: {mail: {server: x}}}", "targets.a.mail.from: Field required"),
        ("targets: {a: {}}", "a target is one of mail, webhook, slack, pagerduty, alertmanager"),
        ("routes: [{targets: [nobody]}]", "routes: no target is called nobody"),
        ("clusters: [{name: a, properties: {}}]", "clusters.0.properties"),
        ("clusters: [{name: a, properties: {client.id: x}}]", "bootstrap.servers is missing"),
        ("maintenance: [{name: a, from: '01:00', to: '02:00', days: [sonntag]}]", "'sonntag' is no day"),
        ("maintenance: [{name: a, from: '01:00', to: '02:00', timezone: Mars}]", "'Mars' is no time zone"),
        ("interval: 10ms", "interval: give at least 1 s"),
        ("targets: {a: {slack: {url: '${env:NOT_THERE_AT_ALL}'}}}", "NOT_THERE_AT_ALL is not set"),
        ("rules: [{name: OfflinePartitions, above: .nan}]", "rules.0.above: Input should be a finite number"),
        ("rules: [{name: OfflinePartitions, labels: {severity: x}}]", "'severity' is no name of a label"),
        ("rules: [{name: OfflinePartitions, labels: {a b: x}}]", "'a b' is no name of a label"),
        ("targets: {'': {slack: {url: 'http://h'}}}", "String should have at least 1 character"),
        ("targets: {a: {webhook: {url: 'http://h', headers: {X-A: ü}}}}", "a header holds ASCII"),
        ('targets: {a: {mail: {server: h, from: "a\\nBcc: x", to: [b]}}}', "there is a line end"),
        ("clusters: &a [*a]", "an entry refers to itself"),
        ("- a list", "expected entries such as clusters"),
        ("a: [", "is no YAML"),
    ],
)
def test_an_error_names_the_place_and_what_fits(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(SettingsError) as raised:
        read(tmp_path, text)
    assert told in str(raised.value)


def test_durations_are_written_as_people_write_them() -> None:
    assert [seconds(each) for each in ("30s", "1h30m", "2d", 5, "250ms")] == [30, 5_400, 172_800, 5, 0.25]
    for wrong in ("", "m", "5 minutes", "-1s", True):
        with pytest.raises(ValueError):
            seconds(wrong)


@pytest.mark.parametrize("text", ["22:00", "'22:00'", "22:00:00", '"22:00:00"'])
def test_a_time_of_day_may_stand_without_quotes(text: str, tmp_path: Path) -> None:
    """YAML makes a number of it."""
    [window] = read(tmp_path, f"maintenance: [{{name: a, from: {text}, to: 02:00}}]").windows
    assert (window.since.isoformat(), window.until.isoformat()) == ("22:00:00", "02:00:00")
