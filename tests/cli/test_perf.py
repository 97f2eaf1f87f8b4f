"""The performance tools: their columns, with either client. These tests measure nothing."""

import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from barnabas.cli.frame import librdkafka
from barnabas.cli.perf.perf_consumer import format_date
from barnabas.cli.perf.perf_numbers import ProducerStats, Throttle, percentiles

from .conftest import RunTool

TOTAL = re.compile(
    r"(\d+)( steady state)? records sent, [\d.]+ records/sec \([\d.]+ MB/sec\), [\d.]+ ms avg latency, "
    r"[\d.]+ ms max latency, \d+ ms 50th, \d+ ms 95th, \d+ ms 99th, \d+ ms 99\.9th\."
)


@pytest.fixture(params=["librdkafka", "light"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "light":
        monkeypatch.setattr(librdkafka, "is_installed", lambda: False)
    return str(request.param)


@pytest.fixture
def topic(broker: str, run_tool: RunTool, fresh_name: Callable[[], str]) -> str:
    name = fresh_name()
    run_tool("kafka-topics", "--bootstrap-server", broker, "--create", "--topic", name, "--partitions", "2")
    return name


def produce(run_tool: RunTool, broker: str, topic: str, *more: str) -> list[str]:
    base = ("--bootstrap-server", broker, "--topic", topic, "--num-records", "500", "--throughput", "-1")
    ran = run_tool("kafka-producer-perf-test", *base, *more)
    assert ran.status == 0, ran.errors
    return ran.lines


def test_producing_and_consuming(broker: str, topic: str, engine: str, run_tool: RunTool) -> None:
    [total] = produce(run_tool, broker, topic, "--record-size", "10")
    match = TOTAL.fullmatch(total)
    assert match is not None
    assert match[1] == "500"
    consumed = run_tool(
        "kafka-consumer-perf-test", "--bootstrap-server", broker, "--topic", topic, "--num-records", "500"
    )
    header, row = consumed.lines
    assert header == (
        "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, "
        "rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
    )
    columns = row.split(", ")
    assert len(columns) == 10
    assert (columns[2], columns[4]) == ("0.0048", "500")
    assert f"engine: {'librdkafka' if engine == 'librdkafka' else 'barnabas'}" in consumed.errors


def test_a_consumer_that_times_out_warns(broker: str, topic: str, engine: str, run_tool: RunTool) -> None:
    produce(run_tool, broker, topic, "--record-size", "10")
    base = ("--bootstrap-server", broker, "--topic", topic, "--num-records", "501", "--timeout", "300")
    ran = run_tool("kafka-consumer-perf-test", *base, "--hide-header")
    assert ran.status == 0
    assert ran.lines[0].startswith(
        "WARNING: Exiting before consuming the expected number of records: timeout (300 ms)"
    )
    assert ran.lines[1].split(", ")[4] == "500"


def test_the_warm_up_has_a_total_of_its_own(broker: str, topic: str, engine: str, run_tool: RunTool) -> None:
    lines = produce(run_tool, broker, topic, "--record-size", "10", "--warmup-records", "100")
    assert lines[:2] == [
        "Warmup first 100 records. Steady state results will print after the complete test summary.",
        "In steady state.",
    ]
    matches = [TOTAL.fullmatch(line) for line in lines[2:]]
    assert [(match[1], match[2]) for match in matches if match] == [("500", None), ("400", " steady state")]


def test_payloads_from_a_file_and_numbers(broker: str, topic: str, run_tool: RunTool, tmp_path: Path) -> None:
    file = tmp_path / "payloads"
    file.write_text("red;green;blue")
    produce(run_tool, broker, topic, "--payload-file", str(file), "--payload-delimiter", ";")
    produce(run_tool, broker, topic, "--payload-monotonic")
    base = ("--bootstrap-server", broker, "--topic", topic, "--from-beginning", "--max-messages", "1000")
    seen = run_tool("kafka-console-consumer", *base).lines
    assert {"red", "green", "blue", "0", "499"} <= set(seen)


def test_latency(broker: str, topic: str, run_tool: RunTool) -> None:
    named = ("--bootstrap-server", broker, "--topic", topic, "--num-records", "20", "--producer-acks", "all")
    ran = run_tool("kafka-e2e-latency", *named, "--record-size", "10")
    assert ran.status == 0, ran.errors
    first, average, parts = ran.lines
    assert first.startswith("0\t")
    assert re.fullmatch(r"Avg latency: \d+\.\d{4} ms", average)
    assert re.fullmatch(r"Percentiles: 50th = \d+, 99th = \d+, 99\.9th = \d+", parts)


def test_latency_in_the_old_form(broker: str, run_tool: RunTool, fresh_name: Callable[[], str]) -> None:
    name = fresh_name()
    ran = run_tool("kafka-e2e-latency", broker, name, "5", "1", "10")
    assert ran.status == 0, ran.errors
    assert ran.lines[0] == (
        f'Topic "{name}" does not exist. Will create topic with 1 partition(s) and replication factor = 1'
    )
    assert "Positional argument usage is deprecated" in ran.errors


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--topic", "t", "--throughput", "-1", "--record-size", "1"), "argument --num-records is required"),
        (
            ("--topic", "t", "--throughput", "-1", "--num-records", "1"),
            "exactly one of the arguments --record-size",
        ),
        (
            ("--topic", "t", "--throughput", "-1", "--num-records", "0", "--record-size", "1"),
            "--num-records should be greater than zero.",
        ),
        (
            ("--topic", "t", "--throughput", "-1", "--num-records", "1", "--record-size", "0"),
            "--record-size should be greater than zero.",
        ),
    ],
)
def test_wrong_options_are_refused(arguments: tuple[str, ...], problem: str, run_tool: RunTool) -> None:
    ran = run_tool("kafka-producer-perf-test", *arguments)
    assert ran.status == 1
    assert ran.errors.startswith(problem)


def test_windows_are_printed_as_they_pass() -> None:
    lines: list[str] = []
    stats = ProducerStats(4, 1000, 0, lines.append)
    for at, latency in ((500, 10), (1000, 30), (1500, 2), (2000, 4)):
        stats.record(latency, 1024 * 1024, at)
    stats.print_total(2000)
    assert lines == [
        "2 records sent, 2.0 records/sec (2.00 MB/sec), 20.0 ms avg latency, 30.0 ms max latency.",
        "2 records sent, 2.0 records/sec (2.00 MB/sec), 3.0 ms avg latency, 4.0 ms max latency.",
        "4 records sent, 2.000000 records/sec (2.00 MB/sec), 11.50 ms avg latency, 30.00 ms max latency, "
        "10 ms 50th, 30 ms 95th, 30 ms 99th, 30 ms 99.9th.",
    ]


def test_percentiles_without_records_are_zero() -> None:
    assert percentiles([], (0.5, 0.99)) == [0, 0]


def test_the_throttle_keeps_the_rate() -> None:
    throttle = Throttle(10, now_s=100.0)
    assert throttle.wait_s(5, 100.0) == pytest.approx(0.5)
    assert throttle.wait_s(5, 101.0) == 0.0
    assert Throttle(-1, 0.0).wait_s(10**9, 0.0) == 0.0


def test_dates_follow_javas_patterns() -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, 67_000)
    assert format_date("yyyy-MM-dd HH:mm:ss:SSS", moment) == "2026-01-02 03:04:05:067"
