"""A real Prometheus scrapes a real node; one malformed line would make it reject the page."""

from __future__ import annotations

import json
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from barnabas.testing import Broker
from installed_tools import needs

DEADLINE_S = 60


@pytest.fixture(scope="module")
def metrics_url() -> Iterator[str]:
    """The metrics URL of a node with a topic."""
    port = free_port()
    with Broker(overrides={"barnabas.metrics.port": port}) as broker:
        broker.create_topic("orders")
        yield f"http://127.0.0.1:{port}/metrics"


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


def page(url: str) -> str:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return str(answer.read().decode())


def test_the_client_library_reads_every_sample(metrics_url: str) -> None:
    families = list(text_string_to_metric_families(page(metrics_url)))
    names = [family.name for family in families]
    assert len(names) == len(set(names)), "a family appears twice"
    assert sum(len(family.samples) for family in families) > 100
    offline = [each for each in families if each.name == "kafka_log_logmanager_logdirectoryoffline"]
    assert [sample.value for sample in offline[0].samples] == [0.0]


def test_prometheus_scrapes_the_page(metrics_url: str, tmp_path: Path) -> None:
    needs("prometheus")
    port = free_port()
    config = tmp_path / "prometheus.yml"
    target = metrics_url.split("/")[2]
    config.write_text(
        "global: {scrape_interval: 1s, scrape_timeout: 1s}\n"
        f"scrape_configs: [{{job_name: barnabas, static_configs: [{{targets: ['{target}']}}]}}]\n"
    )
    server = subprocess.Popen(
        [
            "prometheus", f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        found = scraped(port)
        assert found["health"] == "up", found["lastError"]
        deadline = time.monotonic() + DEADLINE_S
        while not (partitions := query(port, "kafka_server_replicamanager_partitioncount")):
            assert time.monotonic() < deadline, "the samples of the scrape cannot be queried"
            time.sleep(0.1)
        assert [float(each["value"][1]) for each in partitions] == [1.0]
    finally:
        server.terminate()
        server.wait(30)


def scraped(port: int) -> dict[str, Any]:
    """The target after Prometheus has scraped it, successfully or not."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        try:
            answer = api(port, "targets")
            targets = answer["data"]["activeTargets"]
            if targets and targets[0]["health"] != "unknown":
                return dict(targets[0])
        except OSError:
            pass  # it starts
        assert time.monotonic() < deadline, "Prometheus did not scrape"
        time.sleep(0.1)


def query(port: int, expression: str) -> list[dict[str, Any]]:
    return list(api(port, f"query?query={expression}")["data"]["result"])


def api(port: int, what: str) -> Any:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/{what}", timeout=10) as answer:
        return json.load(answer)


def test_promtool_finds_nothing_malformed(metrics_url: str) -> None:
    needs("promtool")
    found = subprocess.run(
        ["promtool", "check", "metrics"], input=page(metrics_url), text=True, capture_output=True
    )
    assert "error while linting" not in found.stderr, found.stderr
    assert found.returncode in (0, 3), found.stderr  # 3: names that are Kafka's, not Prometheus' style
