"""`python losing_executors.py FOLDER VICTIM`: a pipeline whose executors or Python workers are killed.

Executors are processes of their own (`local-cluster`). Before each commit of trusted rows an executor is
killed: what it had cached is gone, and Spark computes it again. Python workers are killed while they fetch.
Prints what the zones hold, as JSON.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
from confluent_kafka import Producer

from barnabas.engine.errors import IngestError
from barnabas.engine.session import session
from barnabas.pipeline import Pipeline, Schema, SparkSettings, Staging, TopicSource, Trusted, in_range
from barnabas.pipeline.ingest import batch_parser
from barnabas.pipeline.ingest.source_runner import SourceRunner
from barnabas.pipeline.lake import commits
from barnabas.testing.broker import Broker

ROWS, BATCH = 6_000, 2_000
ATTEMPTS_MAX = 20
PAUSE_S = 0.3
killed: list[int] = []


def java_machine() -> psutil.Process:
    return next(each for each in psutil.Process().children() if "java" in each.name())


def executors() -> list[psutil.Process]:
    return [each for each in java_machine().children() if "java" in each.name()]


def workers() -> list[psutil.Process]:
    """Python workers of executors: forks of their daemons."""
    daemons = [each for one in executors() for each in one.children()]
    return [worker for daemon in daemons for worker in daemon.children()]


def kill(victims: list[psutil.Process], rng: random.Random) -> None:
    if victims:
        victim = rng.choice(victims)
        os.kill(victim.pid, signal.SIGKILL)
        killed.append(victim.pid)


@contextmanager
def killing_executors(rng: random.Random) -> Iterator[None]:
    append, append_after = commits.append, commits.append_after
    done: set[int] = set()

    def strike(app: str, number: int) -> None:
        if "/trusted/" in app and number not in done:
            done.add(number)
            kill(executors(), rng)

    def dying_append(rows: Any, path: str, txn: Any, **options: Any) -> None:
        strike(txn.app, txn.version)
        append(rows, path, txn, **options)

    def dying_append_after(
        rows: Any, path: str, version: int, app: str, number: int, *rest: Any
    ) -> int | None:
        strike(app, number)
        return append_after(rows, path, version, app, number, *rest)

    commits.append, commits.append_after = dying_append, dying_append_after
    try:
        yield
    finally:
        commits.append, commits.append_after = append, append_after


@contextmanager
def killing_workers(rng: random.Random) -> Iterator[None]:
    stopping = threading.Event()

    def strike() -> None:
        while not stopping.wait(PAUSE_S):
            try:
                kill(workers(), rng)
            except (psutil.Error, ProcessLookupError):
                continue
            if len(killed) >= 5:
                return

    thread = threading.Thread(target=strike)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()


def produce(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(ROWS):
        value: dict[str, Any] = {"id": f"k{number % 5000}", "amount": number % 110}
        data = b"{broken" if number % 100 == 7 else json.dumps(value).encode()
        producer.produce("events", data, partition=number % 2)
        producer.poll(0)
    assert producer.flush(60) == 0


def drain(runner: SourceRunner) -> int:
    """A step that fails because too much was killed is repeated, as applications do."""
    failures = 0
    for _ in range(ATTEMPTS_MAX):
        try:
            while runner.step() is not None:
                pass
            return failures
        except IngestError:
            failures += 1
    raise AssertionError("it does not end")


def main(folder: Path, victim: str) -> None:
    batch_parser.ROWS_ON_DRIVER_MAX = 0  # executors judge
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.driver.memory": "1g",
        "spark.task.maxFailures": "8",
        "spark.sql.shuffle.partitions": "2",
    }
    spark = session(SparkSettings(master="local-cluster[2,1,1024]"), ("delta",), "losing", settings)
    spark.sparkContext.setLogLevel("OFF")
    rng = random.Random(victim)
    with Broker(folder / "data", in_process=False) as broker:
        broker.create_topic("events", partitions=2)
        produce(broker.bootstrap)
        source = TopicSource(
            name="events", bootstrap_servers=broker.bootstrap, subscribe="events",
            schema=Schema(ddl="id STRING, amount BIGINT"), rows_per_batch_max=BATCH,
        )  # fmt: skip
        pipeline = Pipeline(
            name="losing", lake=str(folder / "lake"), sources=[source],
            staging=[Staging(name="events", source="events", key=["id"])],
            trusted=[Trusted(name="events", staging="events", rules=[in_range("amount", 0, 100)])],
        )  # fmt: skip
        with killing_executors(rng) if victim == "executor" else killing_workers(rng):
            failures = drain(SourceRunner(spark, pipeline, "events"))
        lake = pipeline.lake_location

        def column(zone: str, name: str) -> list[Any]:
            rows = spark.read.format("delta").load(lake.table_path(zone, "events"))
            return sorted(row[0] for row in rows.selectExpr(name).collect())

        found = {
            "raw": column("raw", "concat(partition, '-', offset)"),
            "staging": column("staging", "id"),
            "trusted": column("trusted", "id"),
            "quarantine": column("quarantine", "concat(zone, partition, '-', offset)"),
            "killed": len(killed),
            "failures": failures,
        }
        print(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
