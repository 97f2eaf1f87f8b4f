"""A picture of a dashboard: panels drawn from what a real Prometheus scraped of a loaded cluster of three.

`python -m bench.dashboards docs/dashboard-cluster.png [dashboard] [seconds]`. Grafana draws the same queries;
this needs only Prometheus and matplotlib.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer

from barnabas.monitor.dashboards.export import DASHBOARDS
from barnabas.monitor.dashboards.model import STAT, TABLE, Panel, promql
from barnabas.testing.cluster import Cluster
from barnabas.testing.ports import free_ports
from barnabas.testing.waiting import wait_until

SECONDS = 90
STEP_S = 2
COLUMNS = 24
LINES_MAX = 8  # of a query: the largest
VARIABLES = {"$__rate_interval": "10s", "$job": ".*", "$instance": ".*", "$topic": ".*", "$group": ".*"}
TOPICS = ("orders", "clicks")
UNITS = {"Bps": (1e6, "MB/s"), "bytes": (1e6, "MB"), "ms": (1, "ms"), "cps": (1, "/s"), "reqps": (1, "/s")}


class Prometheus:
    def __init__(self, folder: Path, targets: list[str]) -> None:
        [self.port] = free_ports(1)
        scrape = {"job_name": "barnabas", "static_configs": [{"targets": targets}]}
        config = {"global": {"scrape_interval": "1s", "scrape_timeout": "1s"}, "scrape_configs": [scrape]}
        (folder / "prometheus.yml").write_text(json.dumps(config))
        arguments = [
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{self.port}",
            "--log.level=error",
        ]
        self.process = subprocess.Popen(["prometheus", *arguments])

    def get(self, path: str, **query: str) -> Any:
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=30) as answer:
            return json.load(answer)["data"]["result"]


class Load:
    """Producers that send more and less, and a group that reads."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._stop = threading.Event()
        works = [lambda topic=topic: self._produce(topic) for topic in TOPICS] + [self._consume]
        self._threads = [threading.Thread(target=work, daemon=True) for work in works]
        for each in self._threads:
            each.start()

    def _produce(self, topic: str) -> None:
        producer = Producer({"bootstrap.servers": self._bootstrap, "acks": "all", "linger.ms": 5})
        count = 0
        while not self._stop.wait(0.02):
            count += 1
            for number in range(50 + 40 * (count // 500 % 2) * (topic == "orders")):
                producer.produce(topic, b"x" * 500, key=str(number))
            producer.poll(0)
        producer.flush(10)

    def _consume(self) -> None:
        consumer = Consumer(
            {"bootstrap.servers": self._bootstrap, "group.id": "g", "auto.offset.reset": "earliest"}
        )
        consumer.subscribe(list(TOPICS))
        while not self._stop.is_set():
            consumer.consume(500, 0.2)
        consumer.close()

    def stop(self) -> None:
        self._stop.set()
        for each in self._threads:
            each.join(30)


def substituted(text: str) -> str:
    query = promql(text, "jmx")
    for name, value in VARIABLES.items():
        query = query.replace(name, value)
    return query


def draw(panel: Panel, axes: Any, prometheus: Prometheus, start: float, end: float) -> None:
    axes.set_title(panel.title, fontsize=9, loc="left")
    if panel.kind in (STAT, TABLE):
        found = prometheus.get("query", query=substituted(panel.queries[0].text))
        value = float(found[0]["value"][1]) if found else float("nan")
        is_red = panel.red_above is not None and value > panel.red_above
        axes.text(
            0.5, 0.45, f"{value:g}", ha="center", va="center", fontsize=20, color="#c33" if is_red else "#2a7"
        )
        axes.axis("off")
        return
    scale, unit = UNITS.get(panel.unit, (1, ""))
    for query in panel.queries:
        rows = prometheus.get(
            "query_range", query=substituted(query.text), start=str(start), end=str(end), step=str(STEP_S)
        )
        rows.sort(key=lambda row: -float(row["values"][-1][1]))
        for row in rows[:LINES_MAX]:
            label = query.legend
            for name, value in row["metric"].items():
                label = label.replace("{{" + name + "}}", value)
            times = [float(at) - start for at, _ in row["values"]]
            axes.plot(
                times, [float(value) / scale for _, value in row["values"]], linewidth=1, label=label or None
            )
    axes.set_ylim(bottom=0)
    axes.set_ylabel(unit, fontsize=7)
    axes.tick_params(labelsize=6)
    axes.grid(alpha=0.3)
    if axes.get_legend_handles_labels()[1]:
        axes.legend(fontsize=5, ncol=2, loc="upper left", framealpha=0.6)


def main() -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.gridspec import GridSpec

    path, name = Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "cluster"
    seconds = int(sys.argv[3]) if len(sys.argv) > 3 else SECONDS
    dashboard = next(each for each in DASHBOARDS if each.name == name)
    cluster = Cluster(combined=3)
    ports = free_ports(3)
    for node, port in zip(cluster.nodes.values(), ports, strict=True):
        node.properties["barnabas.metrics.port"] = str(port)
    with tempfile.TemporaryDirectory() as folder, cluster:
        for topic in TOPICS:
            cluster.create_topic(topic, partitions=6, replication_factor=3)
        prometheus = Prometheus(Path(folder), [f"127.0.0.1:{port}" for port in ports])
        load = Load(cluster.bootstrap)
        try:
            begun = time.time()
            wait_until(lambda: time.time() - begun >= seconds, seconds + 60, "the load has run")
            end = time.time()
            places = []
            y = 0
            for row in dashboard.rows:
                x = height = 0
                for panel in row.panels:
                    if x + panel.width > COLUMNS:
                        x, y, height = 0, y + height, 0
                    places.append((panel, x, y))
                    x, height = x + panel.width, max(height, panel.height)
                y += height
            figure = plt.figure(figsize=(13, y * 0.34))
            grid = GridSpec(
                y,
                COLUMNS,
                figure=figure,
                wspace=6.0,
                hspace=9.0,
                left=0.05,
                right=0.98,
                top=0.97,
                bottom=0.04,
            )
            for panel, x, top in places:
                axes = figure.add_subplot(grid[top : top + panel.height, x : x + panel.width])
                draw(panel, axes, prometheus, begun + 10, end)
            figure.savefig(path, dpi=80)
        finally:
            load.stop()
            prometheus.process.terminate()
            prometheus.process.wait(30)
    print(path)


if __name__ == "__main__":
    main()
