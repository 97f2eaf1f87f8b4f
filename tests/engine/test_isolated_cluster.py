"""On a cluster whose workers have nothing of ours, sources, sinks and pipelines work."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="needs the extra `pipeline`")

from confluent_kafka import Producer

from barnabas.testing.broker import Broker

from .isolated_cluster import (
    FarAway,
    executor_python,
    isolated_cluster,
    isolated_server,
    skip_unless_possible,
)

ROWS = 500
PIPELINE = """
name: far
lake: {lake}
spark:
  {where}
  settings: {{spark.executor.memory: 1g, spark.driver.memory: 1g, spark.driver.host: 127.0.0.1}}
sources:
  orders:
    topic: {{bootstrap.servers: "{bootstrap}", subscribe: orders}}
    format: json
    schema: "id INT, shop STRING, amount DOUBLE"
    frequency: real_time
staging:
  orders: {{source: orders, key: [id]}}
trusted:
  orders:
    from: orders
    rules:
      - {{range: {{amount: [0, 10000]}}}}
views:
  revenue:
    from: trusted.orders
    sql: SELECT shop, count(*) AS orders, sum(amount) AS revenue FROM orders GROUP BY shop
    keys: [shop]
    measures: {{orders: count, revenue: sum}}
serving: {{store: duckdb}}
"""
COPY = """
import sys
from barnabas.engine.session import close, session
from barnabas.engine.spark_settings import SparkSettings

where, bootstrap = sys.argv[1:]
settings = {"spark.executor.memory": "1g", "spark.driver.host": "127.0.0.1"}
spark = session(SparkSettings(where, settings=settings), (), "copy")
kafka = {"kafka.bootstrap.servers": bootstrap}
rows = spark.read.format("barnabas").options(**kafka, subscribe="orders").load()
rows.select("key", "value").write.format("barnabas").options(**kafka, topic="copied").mode("append").save()
copied = spark.read.format("barnabas").options(**kafka, subscribe="copied").load()
print("copied", copied.count(), flush=True)
close(spark)
"""


def run(command: list[str], folder: Path) -> str:
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    environment.pop("PYSPARK_PYTHON", None)
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def copy(driver: Path, broker: Broker, where: str) -> None:
    """Fill a topic, and let Spark copy it to another."""
    broker.create_topic("orders", partitions=2)
    broker.create_topic("copied", partitions=2)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(ROWS):
        value = {"id": number, "shop": f"shop-{number % 3}", "amount": number / 2}
        producer.produce("orders", json.dumps(value), str(number))
    assert producer.flush(30) == 0
    assert f"copied {ROWS}" in run([sys.executable, "-c", COPY, where, broker.bootstrap], driver)


def copy_and_run(driver: Path, lake: Path, broker: Broker, where: str) -> None:
    """Copy a topic, then run a pipeline over it."""
    copy(driver, broker, where)
    file = driver / "pipeline.yaml"
    spark = f'{"remote" if where.startswith("sc:") else "master"}: "{where}"'
    file.write_text(PIPELINE.format(lake=lake, where=spark, bootstrap=broker.bootstrap))
    tool = [sys.executable, "-m", "barnabas"]
    run([*tool, "pipeline", "run", "--once", "-f", str(file)], driver)
    listed = run([*tool, "engine", "list", "--json", "-f", str(file)], driver)
    states = {line["query"]: line for line in map(json.loads, listed.splitlines())}
    orders = states["source/orders"]
    assert (orders["rows_in"], orders["rows_out"], orders["lag"]) == (ROWS, ROWS, 0)
    assert states["view-batch/revenue"]["rows_out"] == 3
    assert json.loads(run([*tool, "pipeline", "query", "revenue", "--json", "-f", str(file)], driver))["rows"]


@pytest.fixture
def far(tmp_path: Path) -> FarAway:
    skip_unless_possible()
    (tmp_path / "driver").mkdir()
    (tmp_path / "lake").mkdir()
    return FarAway(tmp_path / "far", [tmp_path / "driver"], executor_python(tmp_path / "executor"))


@pytest.mark.long
@pytest.mark.timeout(1500)
def test_a_copy_and_a_pipeline_work_where_executors_have_only_pyspark(tmp_path: Path, far: FarAway) -> None:
    with Broker(in_process=False) as broker, isolated_cluster(far) as master:
        copy_and_run(tmp_path / "driver", tmp_path / "lake", broker, master)


@pytest.mark.long
@pytest.mark.timeout(1500)
def test_a_copy_and_a_pipeline_work_on_a_server_that_has_only_pyspark(tmp_path: Path, far: FarAway) -> None:
    pytest.importorskip("grpc", reason="needs the extra `connect`")
    with Broker(in_process=False) as broker, isolated_server(far) as remote:
        copy_and_run(tmp_path / "driver", tmp_path / "lake", broker, remote)


@pytest.mark.long
@pytest.mark.timeout(1500)
def test_a_copy_works_where_executors_lack_even_what_pyspark_needs(tmp_path: Path) -> None:
    skip_unless_possible()
    (tmp_path / "driver").mkdir()
    python = executor_python(tmp_path / "executor", ("pyspark", "py4j"))
    far = FarAway(tmp_path / "far", [tmp_path / "driver"], python)
    with Broker(in_process=False) as broker, isolated_cluster(far) as master:
        copy(tmp_path / "driver", broker, master)
