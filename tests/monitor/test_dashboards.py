"""Every query of every dashboard and rule, asked of a real Prometheus that scrapes a loaded cluster."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from barnabas.engine.timeline import Entry, Kind, State, Timeline
from barnabas.metrics.dialects import DIALECTS
from barnabas.monitor.dashboards.export import DASHBOARDS, RULES, export
from barnabas.monitor.dashboards.model import Dashboard, Panel, metrics_in, promql
from barnabas.monitor.dashboards.rules import ALERTS, RECORDINGS
from barnabas.pipeline.observe.metrics import Endpoint, TimelineCollector
from barnabas.testing.cluster import Cluster
from barnabas.testing.ports import free_ports
from barnabas.testing.waiting import wait_until

from .other_pages import of_the_engine
from .prometheus import Prometheus
from .streams_page import Words

RUNNING = {"", "lag", "pipelines", "streams"}
# Parts that do not run in this test: their queries must be understood, and have no data.
NOT_RUNNING = {"audit", "connect", "node_exporter"}
VARIABLES = {
    "$__rate_interval": "10s",
    "$instance": ".*",
    "$topic": ".*",
    "$cluster": ".*",
    "$group": ".*",
    "$pipeline": ".*",
    "$application": ".*",
}
DATA_S_MAX = 240  # a scrape that takes a second fails: on a busy machine, most of them
TOPIC = "orders"


class Load:
    """Producers and a consumer group at work, in threads."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=work, daemon=True) for work in (self._produce, self._consume)
        ]
        for each in self._threads:
            each.start()

    def _produce(self) -> None:
        producer = Producer({"bootstrap.servers": self._bootstrap, "acks": "all", "log_level": 0})
        while not self._stop.wait(0.05):
            for number in range(20):
                producer.produce(TOPIC, b"x" * 200, key=str(number))
            producer.flush(10)

    def _consume(self) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": "g",
                "auto.offset.reset": "earliest",
                "auto.commit.interval.ms": 500,
                "heartbeat.interval.ms": 500,
                "log_level": 0,
            }
        )
        consumer.subscribe([TOPIC])
        while not self._stop.is_set():
            consumer.consume(100, 0.2)
        consumer.close()

    def stop(self) -> None:
        self._stop.set()
        for each in self._threads:
            each.join(30)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A cluster whose nodes serve metrics."""
    found = Cluster(combined=3)
    for node, port in zip(found.nodes.values(), free_ports(3), strict=True):
        node.properties["barnabas.metrics.port"] = str(port)
    with found:
        yield found


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory, cluster: Cluster) -> Iterator[Prometheus]:
    folder = tmp_path_factory.mktemp("prometheus")
    export("jmx", folder)
    ports = [node.properties["barnabas.metrics.port"] for node in cluster.nodes.values()]
    [lag_port] = free_ports(1)
    endpoint = pipeline_endpoint(folder / "timeline")
    words = Words(cluster, folder / "streams")
    jobs = {
        "barnabas": [f"127.0.0.1:{port}" for port in ports],
        "strimzi": [f"127.0.0.1:{port}" for port in ports],
        "confluent": [f"127.0.0.1:{port}" for port in ports],
        "lag": [f"127.0.0.1:{lag_port}"],
        "pipeline": [f"127.0.0.1:{endpoint.port}"],
        "streams": [f"127.0.0.1:{words.endpoint.port}"],
    }
    dialects = {"strimzi": "strimzi", "confluent": "confluent"}
    with (
        closing(endpoint),
        Prometheus(folder, jobs, folder / RULES, dialects) as found,
        closing(words),
    ):
        cluster.create_topic(TOPIC, partitions=3, replication_factor=3)
        load = Load(cluster.bootstrap)
        words.start()
        with lag_service(cluster.bootstrap, lag_port):
            try:
                wait_until(lambda: len(found.query("up == 1")) == 12, DATA_S_MAX, "all targets are scraped")
                yield found
            finally:
                load.stop()


@contextmanager
def lag_service(bootstrap: str, port: int) -> Iterator[None]:
    command = [sys.executable, "-m", "barnabas", "lag", "serve", "--bootstrap-server", bootstrap]
    service = subprocess.Popen(
        [*command, "--port", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        service.terminate()
        service.wait(30)


def pipeline_endpoint(folder: Path) -> Endpoint:
    """The endpoint of a pipeline that has run a while ago."""
    timeline = Timeline(folder)
    now = time.time()
    for number, kind in enumerate((Kind.SOURCE, Kind.VIEW_SPEED, Kind.VIEW_BATCH)):
        timeline.record(
            Entry(kind, f"part{number}", "1", now - 5, now, 100, 90, 4, 6, 1, 1000, lag=3, delay_s=2.0)
        )
        timeline.set_state(kind, f"part{number}", State.RUNNING)
    return Endpoint("shop", timeline, "127.0.0.1", 0)


def substituted(query: str, job: str = ".*") -> str:
    for name, value in {**VARIABLES, "$job": job}.items():
        query = query.replace(name, value)
    return query


def panels() -> list[tuple[Dashboard, Panel]]:
    return [(dashboard, panel) for dashboard in DASHBOARDS for panel in dashboard.panels]


@pytest.mark.parametrize(
    ("dialect", "job"), [("jmx", "barnabas"), ("strimzi", "strimzi"), ("confluent", "confluent")]
)
def test_every_panel_has_data(prometheus: Prometheus, dialect: str, job: str) -> None:
    queries = {
        (dashboard.name, panel.title, substituted(promql(query.text, dialect), job))
        for dashboard, panel in panels()
        if dashboard.needs not in NOT_RUNNING and not panel.is_often_empty
        for query in panel.queries
    }

    def empty() -> list[tuple[str, str, str]]:
        return sorted(each for each in queries if not prometheus.query(each[2]))

    wait_until(lambda: not empty(), DATA_S_MAX, lambda: f"data for {json.dumps(empty(), indent=1)}")


def test_queries_of_parts_that_do_not_run_are_understood(prometheus: Prometheus) -> None:
    assert {dashboard.needs for dashboard in DASHBOARDS} <= RUNNING | NOT_RUNNING
    for dashboard, panel in panels():
        if dashboard.needs in NOT_RUNNING or panel.is_often_empty:
            for query in panel.queries:
                prometheus.query(substituted(promql(query.text, "jmx")))


def test_every_variable_offers_values(prometheus: Prometheus) -> None:
    for dashboard in DASHBOARDS:
        for variable in dashboard.variables:
            found = re.fullmatch(r"label_values\((.*), (\w+)\)", promql(variable.query, "jmx"))
            assert found is not None, variable.query
            if dashboard.needs not in NOT_RUNNING:
                series = prometheus.query(f"count by ({found[2]}) ({substituted(found[1])})")
                assert all(each["metric"].get(found[2]) for each in series) and series, variable.query


def test_prometheus_evaluates_every_rule_and_no_alert_fires(prometheus: Prometheus, cluster: Cluster) -> None:
    def evaluated() -> bool:
        found = prometheus.rules()
        return len(found) == len(ALERTS) + len(RECORDINGS) and all(
            each["health"] != "unknown" for each in found
        )

    wait_until(evaluated, DATA_S_MAX, "rules are evaluated")
    assert {
        each["name"]: each.get("lastError") for each in prometheus.rules() if each["health"] != "ok"
    } == {}

    def recorded() -> bool:
        return all(prometheus.query(each.name) for each in RECORDINGS)

    wait_until(recorded, DATA_S_MAX, "all recordings have data")
    firing = [each["name"] for each in prometheus.rules() if each.get("state") == "firing"]
    assert firing == [], "\n".join(
        f"log of node {node.id}:\n" + "\n".join(node.lines) for node in cluster.nodes.values()
    )


def test_every_metric_that_an_alert_of_brokers_names_has_data(prometheus: Prometheus) -> None:
    texts = {
        promql(found[0], "jmx")
        for alert in ALERTS
        if not alert.needs
        for found in re.finditer(r"<[chg] [^<>]+>|process_\w+", alert.text)
    }
    assert len(texts) >= 12
    without_tls = {"barnabas_certificate_expiry_seconds"}  # tests/security has nodes with certificates
    assert {name for name in texts if not prometheus.query(name)} == without_tls


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
def test_documents_of_grafana_are_whole_in_every_dialect(dialect: str, tmp_path: Path) -> None:
    written = export(dialect, tmp_path)
    documents = [json.loads(path.read_text()) for path in written if path.suffix == ".json"]
    assert len(documents) == len(DASHBOARDS) == len({each["uid"] for each in documents})
    for document in documents:
        places = set()
        for panel in document["panels"]:
            at = panel["gridPos"]
            cells = {
                (x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])
            }
            assert not cells & places, f"{document['title']}: {panel['title']} lies on another panel"
            assert at["x"] + at["w"] <= 24
            places |= cells
            for target in panel.get("targets", ()):
                assert target["expr"] and not re.search(r"<|\[\[|@", target["expr"]), target["expr"]
                assert not re.search(r"<|@", target["legendFormat"]), target["legendFormat"]
            config = panel.get("fieldConfig", {"defaults": {"unit": "string"}, "overrides": []})
            if panel["type"] == "table":  # labels may look like numbers, and have no unit
                [override] = config["overrides"]
                assert config["defaults"]["unit"] == "string" != override["properties"][0]["value"]
        assert len({panel["id"] for panel in document["panels"]}) == len(document["panels"])
        assert document["templating"]["list"][0]["type"] == "datasource"
    rules = next(path for path in written if path.name == RULES)
    subprocess.run(["promtool", "check", "rules", str(rules)], check=True, capture_output=True)


def test_every_alert_says_what_to_look_at_and_names_a_tool_that_exists() -> None:
    from barnabas.cli.tools import TOOLS

    tools = {tool.name for tool in TOOLS}
    for alert in ALERTS:
        assert alert.look_at and alert.summary and alert.severity in ("critical", "warning")
        words = alert.command.split()
        assert words[0] == "curl" or (words[0] == "barnabas" and words[1] in tools), alert.command
        for metric in metrics_in(alert.text):
            assert metric.domain.startswith(("kafka.", "barnabas"))


def test_dashboards_of_pipelines_ask_for_what_pipelines_show(tmp_path: Path) -> None:
    families = TimelineCollector("shop", Timeline(tmp_path / "timeline.db")).collect()
    names = {f"{each.name}{'_total' if each.type == 'counter' else ''}" for each in families}
    asked = {
        name
        for dashboard, panel in panels()
        for query in panel.queries
        for name in re.findall(r"barnabas_pipeline_\w+", query.text)
    }
    assert asked and asked <= names


def test_the_dashboard_of_streams_asks_for_what_our_streams_show(tmp_path: Path) -> None:
    served = of_the_engine(tmp_path)
    [dashboard] = [each for each in DASHBOARDS if each.name == "streams"]
    asked = {
        name
        for panel in dashboard.panels
        for query in panel.queries
        for name in re.findall(r"\b((?:kafka|barnabas)_\w+)", query.text)
    }
    assert len(asked) >= 20
    assert asked <= served
