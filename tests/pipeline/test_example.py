"""The worked example runs: on both brokers, with PostgreSQL, on local threads and on a cluster."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

pytest.importorskip("pyspark", reason="needs the extra `pipeline`")
pytest.importorskip("duckdb", reason="needs the extra `pipeline`")

from barnabas.pipeline.demo import postgres
from barnabas.pipeline.demo.generator import Record, Shop
from barnabas.pipeline.demo.services import TOPICS, open_database
from barnabas.pipeline.file.reading import read_pipeline
from barnabas.pipeline.lineage.log import EventLog
from barnabas.pipeline.observe.report_facts import facts_of
from barnabas.testing.broker import Broker
from barnabas.testing.ports import free_ports
from barnabas.testing.waiting import wait_until
from spark_sessions import STARTS_FAST

from .lakes import rows_of
from .shop_model import Expected

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "shop" / "pipeline.yaml"
HAPPENINGS = 600
RUN_S_MAX = 600
LOCAL = json.dumps({"master": "local[2]", "settings": STARTS_FAST})

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(
        shutil.which("java") is None and "JAVA_HOME" not in os.environ, reason="Spark needs Java"
    ),
]


class Example:
    """The example's file in a folder of its own, with a database, on a broker."""

    def __init__(self, folder: Path, bootstrap: str, spark: str) -> None:
        self.folder = folder
        self.bootstrap = bootstrap
        self.shop = Shop(seed=3)
        self.records: list[Record] = []
        self.least_order = 0.0
        self.file = folder / "pipeline.yaml"
        port = free_ports(1)[0]
        self.file.write_text(f"spark: {spark}\n" + EXAMPLE.read_text().replace("port: 8088", f"port: {port}"))
        # In a folder of its own: pytest's are closed to the other user that it may run as.
        self.database = open_database(folder, self.shop, postgres.Postgres())
        assert postgres.available() or self.database.kind == "PostgreSQL"
        self.environment = {
            **os.environ,
            "SHOP_BROKER": bootstrap,
            "SHOP_DATABASE": self.database.url,
            "SHOP_USER": self.database.user,
            "SHOP_PASSWORD": self.database.password,
            "PYSPARK_PYTHON": sys.executable,
        }

    @property
    def lake(self) -> Path:
        return self.folder / "lake"

    def create_topics(self) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        for future in admin.create_topics([NewTopic(name, 2, 1) for name in TOPICS]).values():
            future.result(30)

    def produce(self, happenings: int) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap})
        for record in self.shop.records(happenings):
            producer.produce(record.topic, record.value, record.key)
            self.records.append(record)
        assert producer.flush(60) == 0

    def command(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "barnabas", "pipeline", *arguments, "-f", str(self.file)],
            capture_output=True,
            text=True,
            env=self.environment,
            cwd=self.folder,
            timeout=RUN_S_MAX,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def view(self, name: str, key: str, *columns: str) -> dict[str, tuple[Any, ...]]:
        answer = json.loads(self.command("query", name, "--json"))
        return {row[key]: tuple(row[column] for column in columns) for row in answer["rows"]}

    def check(self) -> None:
        """Zones and views hold what a plain model says."""
        expected = Expected.of(self.records, self.shop.customers(), self.least_order)
        for topic in TOPICS:
            assert len(rows_of(self.lake, "raw", topic, ["offset"])) == expected.sent[topic]
            assert len(rows_of(self.lake, "trusted", topic, ["_offset"])) == len(expected.accepted[topic])
        assert self.view("revenue", "shop", "orders", "revenue") == close(expected.revenue())
        alerts = self.view("fraud_alerts", "country", "alerts", "amount")
        assert alerts == close(expected.fraud_alerts())
        found: dict[str, tuple[int, float]] = defaultdict(lambda: (0, 0.0))
        for row in json.loads(self.command("query", "warehouse", "--json"))["rows"]:
            count, total = found[row["country"]]
            found[row["country"]] = (count + row["orders"], total + row["revenue"])
        assert dict(found) == close(expected.warehouse())
        popular = self.view("recommendations", "product", "views", "people")
        assert popular == expected.recommendations()


def close(expected: dict[str, tuple[int, float]]) -> dict[str, Any]:
    return {key: (count, pytest.approx(total)) for key, (count, total) in expected.items()}


@contextlib.contextmanager
def example(folder: Path, bootstrap: str, spark: str = LOCAL) -> Iterator[Example]:
    found = Example(folder, bootstrap, spark)
    try:
        found.create_topics()
        yield found
    finally:
        found.database.stop()


@pytest.mark.long
def test_the_example_runs(tmp_path: Path) -> None:
    with Broker(in_process=False) as broker, example(tmp_path, broker.bootstrap) as shop:
        shop.produce(HAPPENINGS)
        shop.command("run", "--once")
        shop.check()
        look_around(shop)


@pytest.mark.long
def test_the_example_runs_once_more_and_a_wrong_rule_is_fixed(tmp_path: Path) -> None:
    with Broker(in_process=False) as broker, example(tmp_path, broker.bootstrap) as shop:
        for happenings in (HAPPENINGS, HAPPENINGS // 4):
            shop.produce(happenings)
            (tmp_path / "lake" / "_barnabas" / "schedule.json").unlink(missing_ok=True)  # all is due again
            shop.command("run", "--once")
            shop.check()
        allow_returns(shop)
        said = shop.command("release", "orders", "--rule", "range_amount")
        assert "view revenue refreshed" in said
        assert "recommendations" not in said  # it does not depend on orders
        shop.check()


def allow_returns(shop: Example) -> None:
    """The rule was wrong: orders may be returns, with amounts below zero."""
    parts = shop.file.read_text().partition("  orders:\n    from: orders")
    rule = "{range: {amount: [0, 10000]}}"
    assert rule in parts[2]
    shop.file.write_text("".join((*parts[:2], parts[2].replace(rule, rule.replace("[0,", "[-10000,"), 1))))
    shop.least_order = -10_000.0


def look_around(shop: Example) -> None:
    """What is written beside the lake: events, timeline, report; nowhere a password."""
    pipeline = read_pipeline(shop.file)
    folder = shop.lake / "_barnabas"
    jobs = {event["job"]["name"] for event in EventLog(folder).events()}
    assert {"shop.raw.orders", "shop.trusted.payments", "shop.refined.sales", "shop.view.warehouse"} <= jobs
    facts = facts_of(pipeline)
    sizes = {(each.zone, each.name): each.rows for each in facts.tables}
    assert sizes["raw", "orders"] == sum(record.topic == "orders" for record in shop.records)
    rules = {rule for _, rule in facts.quarantine}
    assert "malformed" in rules
    assert "range_amount" in rules
    shop.command("report")
    page = (shop.folder / "report.html").read_text()
    assert f"<td>raw</td><td>orders</td><td>{sizes['raw', 'orders']:,}</td>" in page
    for view in ("revenue", "fraud_alerts", "warehouse", "recommendations"):
        assert f"<h3>{view}</h3>" in page
    for (table, rule), count in facts.quarantine.items():
        assert f"<td>{table}</td><td>{rule}</td><td class='number'>{count:,}</td>" in page
    assert 'aria-label="lineage of shop"' in page
    if shop.database.password:
        for path in folder.rglob("*"):
            if path.is_file():
                assert shop.database.password.encode() not in path.read_bytes(), path


@pytest.mark.long
@pytest.mark.java
def test_on_apache_kafka(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    kafka = request.getfixturevalue("apache_kafka")
    with example(tmp_path, kafka.bootstrap) as shop:
        shop.produce(HAPPENINGS // 4)
        shop.command("run", "--once")
        shop.check()


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """A master and two workers with a core each."""
    import pyspark

    home = Path(pyspark.__file__).parent
    port, *pages = free_ports(4)
    environment = {**os.environ, "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable}
    environment |= {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_NO_DAEMONIZE": "1"}
    java = "org.apache.spark.deploy"
    master = f"spark://127.0.0.1:{port}"
    first = [
        f"{java}.master.Master",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--webui-port",
        str(pages[0]),
    ]
    workers = [
        [
            *(f"{java}.worker.Worker", "--cores", "1", "--memory", "1g", "--host", "127.0.0.1"),
            *("--webui-port", str(page), "--work-dir", str(folder / f"worker-{page}"), master),
        ]
        for page in pages[1:]
    ]
    logs = [folder / f"cluster-{number}.log" for number in range(3)]
    processes = []
    try:
        for command, log in zip([first, *workers], logs, strict=True):
            with log.open("wb") as output:
                processes.append(
                    subprocess.Popen(
                        [str(home / "bin" / "spark-class"), *command],
                        env=environment,
                        stdout=output,
                        stderr=output,
                        cwd=folder,
                    )
                )
        wait_until(lambda: logs[0].read_text().count("Registering worker") == 2, 120, "two workers")
        yield master
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(30)


@pytest.mark.long
def test_on_a_spark_cluster_of_two_workers(tmp_path: Path) -> None:
    with Broker(in_process=False) as broker, cluster(tmp_path) as master:
        spark = f'{{master: "{master}", settings: {{spark.cores.max: "2"}}}}'
        with example(tmp_path, broker.bootstrap, spark) as shop:
            shop.environment["SPARK_LOCAL_IP"] = "127.0.0.1"
            shop.produce(HAPPENINGS // 4)
            shop.command("run", "--once")
            shop.check()
        text = "".join(path.read_text() for path in tmp_path.glob("cluster-*.log"))
        assert text.count("Asked to launch executor") >= 2


@contextlib.contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """A Spark Connect server, with Delta's jars and the drivers, and our package on its Python's path."""
    import pyspark

    from barnabas.engine.session_settings import DELTA
    from barnabas.spark import jars

    home = Path(pyspark.__file__).parent
    port = free_ports(1)[0]
    environment = {**os.environ, "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable}
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.jars": ",".join(map(str, jars.jars("delta", "postgresql", "sqlite"))),
        **DELTA,
    }
    command = [str(home / "bin" / "spark-submit"), "--master", "local[2]", "--driver-memory", "1g"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    log = folder / "connect.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "spark-internal"],
            env={**environment, "SPARK_LOCAL_IP": "127.0.0.1"},
            stdout=output,
            stderr=output,
            cwd=folder,
        )
    try:
        wait_until(lambda: "Spark Connect server started" in log.read_text(), 120, "a Spark Connect server")
        yield f"sc://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


@pytest.mark.long
def test_on_spark_connect(tmp_path: Path) -> None:
    pytest.importorskip("grpc", reason="needs the extra `connect`")
    with (
        Broker(in_process=False) as broker,
        connect_server(tmp_path) as remote,
        example(tmp_path, broker.bootstrap, f'{{remote: "{remote}"}}') as shop,
    ):
        shop.environment["PATH"] = ""  # no Java: everything computes on the server
        shop.environment.pop("JAVA_HOME", None)
        shop.produce(HAPPENINGS // 4)
        shop.command("run", "--once")
        shop.check()
        shop.produce(HAPPENINGS // 8)
        (tmp_path / "lake" / "_barnabas" / "schedule.json").unlink()
        shop.command("run", "--once")
        shop.check()
        allow_returns(shop)
        assert "view revenue refreshed" in shop.command("release", "orders", "--rule", "range_amount")
        shop.check()
