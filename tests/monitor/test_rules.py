"""Unit tests of the rules, run by promtool: each alert of brokers fires when it should, and not before."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from barnabas.metrics.dialects import DIALECTS
from barnabas.monitor.dashboards.export import RULES, export
from barnabas.monitor.dashboards.rules import ALERTS
from installed_tools import needs

STEP_S = 30
BROKER = 'job="b",instance="one"'
OF_JOB = {"job": "b"}
OF_BROKER = {"job": "b", "instance": "one"}
REPLICAS = "kafka_server_replicamanager"
CONTROLLER = "kafka_controller_kafkacontroller"
TIMES = "kafka_network_requestmetrics"

# Series that bring an alert about, as promtool writes them, and the labels of the alert.
CASES: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "BarnabasOfflinePartitions": ({f"{CONTROLLER}_offlinepartitionscount{{{BROKER}}}": "2x60"}, OF_JOB),
    "BarnabasUnderMinIsr": ({f"{REPLICAS}_underminisrpartitioncount{{{BROKER}}}": "2x60"}, OF_JOB),
    "BarnabasUnderReplicated": ({f"{REPLICAS}_underreplicatedpartitions{{{BROKER}}}": "2x60"}, OF_JOB),
    "BarnabasNoActiveController": ({f"{CONTROLLER}_activecontrollercount{{{BROKER}}}": "0x60"}, OF_JOB),
    "BarnabasUncleanElection": (
        {f"kafka_controller_controllerstats_uncleanleaderelections_total{{{BROKER}}}": "0+1x60"},
        OF_JOB,
    ),
    "BarnabasOfflineLogDir": (
        {f"kafka_log_logmanager_offlinelogdirectorycount{{{BROKER}}}": "1x60"},
        OF_BROKER,
    ),
    "BarnabasBrokerGone": (
        {f"up{{{BROKER}}}": "0x60", f"kafka_server_kafkaserver_brokerstate{{{BROKER}}}": "3 stale"},
        OF_BROKER,
    ),
    "BarnabasFencedBroker": ({f"{CONTROLLER}_fencedbrokercount{{{BROKER}}}": "1x60"}, OF_JOB),
    "BarnabasProduceSlow": (
        {f'{TIMES}_totaltimems{{{BROKER},request="Produce",quantile="0.99"}}': "900x60"},
        OF_BROKER,
    ),
    "BarnabasLoopBusy": (
        {f"kafka_network_socketserver_networkprocessoravgidlepercent{{{BROKER}}}": "0.1x60"},
        OF_BROKER,
    ),
    "BarnabasMetadataBehind": ({f"{CONTROLLER}_lastappliedrecordlagms{{{BROKER}}}": "20000x60"}, OF_BROKER),
    "BarnabasDescriptorsShort": (
        {
            f"process_open_fds{{{BROKER}}}": "90x60",
            f"process_max_fds{{{BROKER}}}": "100x60",
            f"kafka_server_kafkaserver_brokerstate{{{BROKER}}}": "3x60",
        },
        OF_BROKER,
    ),
    "BarnabasUnexpectedErrors": ({f"barnabas_node_unexpectederrors{{{BROKER}}}": "0+1x60"}, OF_BROKER),
    "BarnabasThrottling": (
        {f'{TIMES}_throttletimems{{{BROKER},request="Fetch",quantile="0.99"}}': "5000x60"},
        {"job": "b", "request": "Fetch"},
    ),
    "BarnabasDiskAlmostFull": (
        {
            f'barnabas_log_directory_usable_bytes{{{BROKER},logDirectory="/data"}}': "14x60",
            f'barnabas_log_directory_total_bytes{{{BROKER},logDirectory="/data"}}': "100x60",
        },
        {**OF_BROKER, "logDirectory": "/data"},
    ),
    "BarnabasDiskFull": (
        {f'barnabas_log_directory_usable_bytes{{{BROKER},logDirectory="/data"}}': "1e9-1e6x900"},
        {**OF_BROKER, "logDirectory": "/data"},
    ),
    "BarnabasCertificateEnds": (
        {f'barnabas_certificate_expiry_seconds{{{BROKER},listener="TLS"}}': "864000x60"},
        {**OF_BROKER, "listener": "TLS"},
    ),
    "BarnabasGroupFallsBehind": (
        {'barnabas_lag_group_status{cluster="c",group="g"}': "2x60"},
        {"cluster": "c", "group": "g"},
    ),
    "BarnabasGroupStopped": (
        {'barnabas_lag_group_status{cluster="c",group="g"}': "4x60"},
        {"cluster": "c", "group": "g"},
    ),
    "BarnabasAuditIncomplete": (
        {'barnabas_audit_completeness_ratio{topic="t",tier="cluster"}': "0.9x60"},
        {"topic": "t", "tier": "cluster"},
    ),
    "BarnabasAuditDuplicates": (
        {'barnabas_audit_duplicate_ratio{topic="t",tier="cluster"}': "0.01x60"},
        {"topic": "t", "tier": "cluster"},
    ),
    "BarnabasPipelineFailing": (
        {'barnabas_pipeline_runs_total{pipeline="p",name="orders",result="failed"}': "0+1x60"},
        {"pipeline": "p", "name": "orders"},
    ),
    "BarnabasConnectorFailed": (
        {'kafka_connect_connect_worker_metrics_connector_failed_task_count{connector="c"}': "1x60"},
        {"connector": "c"},
    ),
}


CASES_BESIDE = {
    "BarnabasConnectorFailed": (
        {'kafka_connect_connector_metrics_status{connector="c",status="failed"}': "1x60"},
        {"connector": "c"},
    ),
}


def unit_test(name: str, series: dict[str, str], labels: dict[str, str]) -> dict[str, Any]:
    """The alert does not fire with the first samples if it has a patience, and fires later."""
    alert = next(each for each in ALERTS if each.name == name)
    given = [{"series": each, "values": values} for each, values in series.items()]
    expected = [{"exp_labels": {**labels, "severity": alert.severity}}]
    late = "6h" if name == "BarnabasDiskFull" else "25m"
    found = [{"eval_time": late, "alertname": name, "exp_alerts": expected}]
    if alert.for_s:
        found.insert(0, {"eval_time": "0s", "alertname": name, "exp_alerts": []})
    return {"name": name, "interval": f"{STEP_S}s", "input_series": given, "alert_rule_test": found}


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
def test_texts_name_labels_that_the_alert_has(dialect: str, tmp_path: Path) -> None:
    """A command with a placeholder cannot be run, and a label that is not there is an empty word."""
    export(dialect, tmp_path)
    text = (tmp_path / RULES).read_text()
    assert not re.search(r"\b(GROUP|NAME|WORKER|TOPIC)\b", text)
    for alert in ALERTS:
        named = set(re.findall(r"\$labels\.@?(\w+)", f"{alert.summary} {alert.command}"))
        assert named <= set(CASES[alert.name][1]), alert.name
    assert "@" not in text


def test_every_alert_has_a_unit_test() -> None:
    assert set(CASES) == {alert.name for alert in ALERTS}


def test_promtool_agrees(tmp_path: Path) -> None:
    needs("promtool")
    export("jmx", tmp_path)
    text = (tmp_path / RULES).read_text()
    # Annotations hold values: what is tested is when alerts fire.
    kept = [line for line in text.splitlines() if not line.strip().startswith(("summary:", "description:"))]
    rules = tmp_path / "rules.yml"
    rules.write_text("\n".join(kept).replace("        annotations:\n", "") + "\n")
    run_tests(
        tmp_path, rules, [unit_test(name, *case) for name, case in (*CASES.items(), *CASES_BESIDE.items())]
    )


def run_tests(folder: Path, rules: Path, tests: list[dict[str, Any]]) -> None:
    path = folder / "test.yml"
    document = {"rule_files": [str(rules)], "evaluation_interval": f"{STEP_S}s", "tests": tests}
    path.write_text(json.dumps(document))
    found = subprocess.run(["promtool", "test", "rules", str(path)], capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr


def test_the_alert_of_unexpected_errors_names_their_places(tmp_path: Path) -> None:
    needs("promtool")
    export("jmx", tmp_path)
    name = "BarnabasUnexpectedErrors"
    alert = next(each for each in ALERTS if each.name == name)
    place = 'doing="leading",error="KeyError",place="broker/replicas/replicas.py:234"'
    series = {
        f"barnabas_node_unexpectederrors{{{BROKER}}}": "0+1x60",
        f"barnabas_node_unexpectederrorplaces{{{BROKER},{place}}}": "_x10 7x50",
        f'barnabas_node_unexpectederrorplaces{{job="b",instance="two",{place}}}': "1x60",
    }
    test = unit_test(name, series, OF_BROKER)
    said = alert.look_at.partition("{{")[0] + " 7 times KeyError at broker/replicas/replicas.py:234 (leading)"
    [expected] = test["alert_rule_test"][-1]["exp_alerts"]
    expected["exp_annotations"] = {
        "summary": "one met 20 exceptions that no code foresaw",
        "description": f"Look at {said}. Run: {alert.command}",
    }
    run_tests(tmp_path, tmp_path / RULES, [test])
