"""The Delta sink with a lake at S3: a worker of its own, killed with kill -9 while it writes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="needs the extra `spark`")
pytest.importorskip("deltalake", reason="needs the extra `pipeline`")

from deltalake import DeltaTable

from barnabas.testing.plugin import barnabas_broker
from barnabas.testing.waiting import wait_until
from connect.jobs.job_runner import CONVERTERS, produce, read_topic
from connect.jobs.worker_processes import WorkerProcess
from s3_server import S3Server, running_s3

__all__ = ["barnabas_broker"]

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

RECORDS, KEYS, BATCH, LETTERS = 1500, 300, 250, 100
IN_RUST = {
    "aws_access_key_id": "test",
    "aws_secret_access_key": "test",
    "aws_region": "us-east-1",
    "aws_allow_http": "true",
    "aws_conditional_put": "etag",
}


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    with running_s3() as found:
        yield found


def config(topic: str, lake: str, **more: str) -> dict[str, str]:
    return {
        "name": topic,
        "connector.class": "LakeSink",
        "topics": topic,
        "lake.path": lake,
        "insert.mode": "upsert",
        "pk.mode": "record_key",
        "pk.fields": "id",
        "barnabas.spark.batch.records": str(BATCH),
        "barnabas.spark.batch.interval.ms": "1",
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": f"{topic}-letters",
        "errors.deadletterqueue.topic.replication.factor": "1",
        **CONVERTERS,
        **more,
    }


def records() -> list[tuple[str | None, str | None]]:
    """Each hundredth one does not fit."""
    return [
        (str(n % KEYS), json.dumps({"n": n if n % LETTERS != LETTERS - 1 else f"x{n}"}))
        for n in range(RECORDS)
    ]


def rows_of(s3: S3Server, table: str) -> dict[int, int]:
    found = DeltaTable(
        f"s3://lake/{table}", storage_options={**IN_RUST, "aws_endpoint": s3.address}
    ).to_pyarrow_table()
    rows: list[dict[str, Any]] = found.to_pylist()
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: row["n"] for row in rows}


def test_upserts_into_a_lake_at_s3_are_right_after_kills_of_the_worker(
    barnabas_broker: Any, s3: S3Server, tmp_path: Path
) -> None:
    bootstrap = barnabas_broker.bootstrap
    worker = WorkerProcess(
        tmp_path / "worker", bootstrap, group="at-s3", spark_master="local[2]", **s3.settings
    )
    try:
        produce(bootstrap, "at-s3", [("0", '{"n": 0}')])
        worker.create(config("at-s3", "s3a://lake/connect"))
        wait_until(lambda: has_ended(worker) or failed(worker), 240)
        worker.check()
        produce(bootstrap, "at-s3", records())
        wait_until(lambda: worker.tasks().get("at-s3", {}).get("commits", 0) > 3 or failed(worker), 240)
        worker.kill()
        worker.restart()
        wait_until(lambda: worker.tasks().get("at-s3", {}).get("dead_letters", 0) > 2 or failed(worker), 240)
        worker.kill()
        worker.restart()
        wait_until(lambda: has_ended(worker) or failed(worker), 240)
        worker.check()
        wanted = {n % KEYS: n for n in range(RECORDS) if n % LETTERS != LETTERS - 1}
        assert rows_of(s3, "connect/at-s3") == wanted
        letters = [value["n"] for _, _, _, value in read_topic(bootstrap, "at-s3-letters")]
        assert set(letters) == {f"x{n}" for n in range(LETTERS - 1, RECORDS, LETTERS)}
        s3.ignore_conditions(True)
        worker.create(config("ignored", "s3a://lake/other", topics="at-s3"))
        wait_until(lambda: failed(worker, "ignored"), 120)
        [task] = worker.ask("GET", "/connectors/ignored/status")["tasks"]
        assert "ignores conditional puts" in task["trace"]
    finally:
        s3.ignore_conditions(False)
        worker.stop()


def has_ended(worker: WorkerProcess) -> bool:
    found = worker.tasks().get("at-s3", {})
    return found.get("lag") == 0 and found.get("commits", 0) > 0


def failed(worker: WorkerProcess, name: str = "at-s3") -> bool:
    try:
        return "FAILED" in worker.states(name)
    except OSError:  # its status is not known yet
        return False
