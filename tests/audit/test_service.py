"""The audit over HTTP and on the command line: reports, alarms, metrics, the counter of a cluster."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from audit.counted import T0, WIDTH, counts
from barnabas.audit import PRODUCER, AuditCounter, AuditSettings, consumer
from barnabas.audit.core.buckets import bucket_of
from barnabas.audit.core.report import Rules
from barnabas.audit.report.auditor import AlarmChange, Auditor
from barnabas.cli.main import main
from barnabas.client.cluster import Cluster
from barnabas.client.core.address import parse_bootstrap
from barnabas.client.producer import Producer
from barnabas.testing import Broker
from barnabas.testing.ports import free_ports
from barnabas.testing.waiting import wait_until


def count(bootstrap: str, tier: str, topic: str, number: int, host: str = "here", bucket: int = T0) -> None:
    with AuditCounter(AuditSettings(bootstrap, host=host), tier) as audit:
        for each in range(number):
            audit.count(topic, bucket + each, 0)


def produce(bootstrap: str, topic: str, timestamps: list[int]) -> None:
    async def send() -> None:
        async with Cluster(parse_bootstrap(bootstrap)) as cluster, Producer(cluster) as producer:
            for timestamp in timestamps:
                await producer.send(topic, b"value", timestamp_ms=timestamp)

    asyncio.run(send())


def test_the_service_shows_reports_alarms_and_metrics(counting: Broker, topic: str, tmp_path: Path) -> None:
    bootstrap = counting.bootstrap
    bucket = bucket_of(int(time.time() * 1000) - 3_600_000)  # services forget what is older than a week
    count(bootstrap, PRODUCER, topic, 10, bucket=bucket)
    count(bootstrap, "sink/lake", topic, 8, "lake-1", bucket)
    (port,) = free_ports(1)
    rules = tmp_path / "rules.yaml"
    rules.write_text("tiers: {sink: {patience: 0s}}\n")
    command = [sys.executable, "-m", "barnabas.cli.main", "audit", "serve", "--bootstrap-server", bootstrap]
    command += ["--override", f"listeners=http://127.0.0.1:{port}", "--override", f"rules.file={rules}"]
    command += ["--override", "report.interval.ms=100"]
    service = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def get(path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as response:
            return response.read().decode()  # type: ignore[no-any-return]

    def is_ready() -> bool:
        assert service.poll() is None, service.communicate()[0]
        try:
            return "ready" in get("/health/ready")
        except OSError:
            return False

    try:
        wait_until(is_ready, 60)
        report = json.loads(get(f"/report?topic={topic}"))
        states = {row["tier"]: (row["state"], row["missing"]) for row in report["rows"]}
        assert states == {PRODUCER: ("no reference", 0), "sink/lake": ("missing", 2)}
        (alarm,) = [each for each in json.loads(get("/alarms"))["alarms"] if each["topic"] == topic]
        assert (alarm["tier"], alarm["hosts"], alarm["bucket_ms"]) == ("sink/lake", ["lake-1"], bucket)
        assert f"{topic}, bucket {bucket}: 2 of 10 records are missing" in alarm["text"]
        assert "2 of 10 records are missing" in get("/")
        metrics = get("/metrics")
        assert f'barnabas_audit_completeness_ratio{{tier="sink/lake",topic="{topic}"}} 0.8' in metrics
        assert f'barnabas_audit_missing{{tier="sink/lake",topic="{topic}"}} 2.0' in metrics
        assert f'barnabas_audit_duplicate_ratio{{tier="sink/lake",topic="{topic}"}} 0.0' in metrics
        assert f'barnabas_audit_messages_total{{tier="producer",topic="{topic}"}} 10.0' in metrics
        assert f'barnabas_audit_delay_seconds{{quantile="0.99",tier="producer",topic="{topic}"}}' in metrics
        compared = json.loads(get(f"/report?topic={topic}&from=sink/lake&to=producer"))
        assert [(row["tier"], row["extra"]) for row in compared["rows"]] == [(PRODUCER, 2)]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/alarms/stream", timeout=20) as stream:
            seen = set()
            while topic not in seen:
                seen.add(json.loads(stream.readline())["topic"])
    finally:
        service.send_signal(signal.SIGTERM)
        output, _ = service.communicate(timeout=30)
    assert service.returncode == 0, output


def test_alarms_come_change_and_end(counting: Broker, topic: str) -> None:
    bootstrap = counting.bootstrap

    async def follow() -> list[tuple[bool, int, int]]:
        found: list[AlarmChange] = []
        async with Cluster(parse_bootstrap(bootstrap)) as cluster:
            auditor = Auditor(cluster, rules=Rules(default_patience_ms=0))
            auditor.ledger._keep_ms = 2**60
            changes = auditor.alarms()
            for number in (5, 4, 1):
                await asyncio.to_thread(
                    count, bootstrap, consumer("g") if number < 5 else PRODUCER, topic, number
                )
                await auditor.refresh()
                while number < 5 and len(found) < {4: 1, 1: 2}[number]:
                    change = await anext(changes)
                    if change.row.topic == topic:
                        found.append(change)
            await auditor.close()
        return [(each.is_over, each.row.verdict.missing, each.revision) for each in found]

    assert asyncio.run(follow()) == [(False, 1, 1), (True, 0, 2)]


def test_the_report_is_printed_and_its_status_tells_of_alarms(
    counting: Broker, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    bootstrap = counting.bootstrap
    count(bootstrap, PRODUCER, topic, 3)
    report = ["audit", "report", "--bootstrap-server", bootstrap, "--topic", topic]
    assert main(report) == 0
    count(bootstrap, consumer("g"), topic, 2)
    assert main(report) == 0, "the last record may be on its way"
    report += ["--patience", "0s"]
    assert main(report) == 1
    printed = capsys.readouterr().out
    assert "COMPLETE-%" in printed and "66.666" in printed and "alarm: " in printed
    assert main([*report, "--json", "--from", consumer("g"), "--to", PRODUCER]) == 1
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert (row["tier"], row["extra"], row["completeness_percent"]) == (PRODUCER, 1, "150")
    assert main([*report, "--from", PRODUCER]) == 1
    assert "give both or none" in capsys.readouterr().err


def test_a_cluster_is_counted_from_outside_and_each_record_once(
    broker: str, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Apache Kafka does not count by itself; with --apache this runs on it too."""
    command = ["audit", "count", "--once", "--bootstrap-server", broker, "--topic", topic]
    produce(broker, topic, [T0] * 5 + [T0 + WIDTH] * 3)
    assert main(command) == 0
    assert "counted 8 records" in capsys.readouterr().out
    produce(broker, topic, [T0] * 2)
    assert main(command) == 0
    assert main(command) == 0
    assert capsys.readouterr().out.splitlines() == ["counted 2 records", "counted 0 records"]
    assert counts(broker, topic, "cluster") == {T0: 7, T0 + WIDTH: 3}


def test_aborted_transactions_are_counted_apart_from_outside(broker: str, topic: str) -> None:
    from confluent_kafka import Producer as Other

    producer = Other({"bootstrap.servers": broker, "transactional.id": topic})
    producer.init_transactions(30)
    for is_commit in (True, False, True):
        producer.begin_transaction()
        for _ in range(4):
            producer.produce(topic, b"v", timestamp=T0)
        producer.flush(30)
        if is_commit:
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)
    assert main(["audit", "count", "--once", "--bootstrap-server", broker, "--topic", topic]) == 0
    assert counts(broker, topic, "cluster") == {T0: 8}
    assert counts(broker, topic, "cluster", "aborted") == {T0: 4}
    assert main(["audit", "count", "--once", "--bootstrap-server", broker, "--topic", topic]) == 0
    assert counts(broker, topic, "cluster") == {T0: 8}


def test_a_counter_keeps_its_counts_while_brokers_are_away(tmp_path: Path) -> None:
    with Broker(tmp_path / "data") as broker:
        audit = AuditCounter(AuditSettings(broker.bootstrap, window_ms=50), PRODUCER)
        audit.count("orders", T0)
        assert audit.flush()
    audit.count("orders", T0, count=2)
    assert not audit.flush(0.3)
    with Broker(tmp_path / "data", port=broker.port) as broker:
        assert audit.flush(60)
        assert audit.close()
        assert counts(broker.bootstrap, "orders", PRODUCER) == {T0: 3}


def test_verify_names_a_topic_that_it_cannot_reach_before_it_starts_spark(
    counting: Broker, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    counting.create_topic(topic, 2)
    known, port = f"{counting.bootstrap}/{topic}", free_ports(1)[0]
    assert main(["audit", "verify", known, f"{counting.bootstrap}/missing"]) == 1
    assert "there is no topic missing" in capsys.readouterr().err
    assert main(["audit", "verify", known, f"127.0.0.1:{port}/{topic}"]) == 1
    shown = capsys.readouterr().err
    assert f"reading {known}: 2 partitions" in shown and f"127.0.0.1:{port}" in shown.splitlines()[-1]
