"""Sources and sinks as functions of DataFrames, in the test kit and in a worker's task."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="needs the extra `spark`")

from barnabas.connect.connectors.files.directory_source import CsvDirectorySourceConnector
from barnabas.connect.connectors.lake.lake_sink import LakeSinkConnector
from barnabas.connect.jobs.spark_kit import SparkKit
from barnabas.connect.plugins import ConnectError, frame_source
from barnabas.connect.tasks.kit import Kit
from connect.jobs.job_runner import Tasks, read_topic, until

FUNCTIONS = textwrap.dedent(
    """
    from barnabas.connect.plugins import frame_source

    @frame_source(topic="squares", key="n")
    def squares(spark, offset):
        first = (offset or {"next": 0})["next"]
        if first >= 250:
            return None
        return spark.range(first, first + 50).selectExpr("id AS n", "id * id AS square"), {"next": first + 50}
    """
)


def test_a_function_that_returns_a_frame_is_a_source(
    spark: Any, barnabas_broker: Any, tmp_path: Path
) -> None:
    (tmp_path / "frame_functions.py").write_text(FUNCTIONS)
    tasks = Tasks(barnabas_broker.bootstrap, spark, tmp_path, offset_storage_topic="offsets-squares")
    try:
        states = tasks.start("squares", {"connector.class": "frame_functions:squares"})
        until(lambda: states.last == "FAILED" or tasks.progress("squares").commits == 5)
        assert states.last == "RUNNING", states.trace
        found = read_topic(barnabas_broker.bootstrap, "squares")
    finally:
        tasks.stop()
    assert sorted((key, value["square"]) for _, _, key, value in found) == [(n, n * n) for n in range(250)]


def test_the_kit_runs_slices_and_batches_with_a_session_alone(spark: Any, tmp_path: Path) -> None:
    @frame_source(topic="t")
    def wrong(spark: Any) -> Any:
        return spark.range(1)

    with pytest.raises(ConnectError, match="pair of DataFrame and offset"):
        SparkKit(wrong, {}, spark).plan()
    with pytest.raises(ConnectError, match="is no source that is polled"):
        Kit(wrong, {}).poll(1)
    config = {
        "lake.path": str(tmp_path),
        "insert.mode": "upsert",
        "pk.mode": "record_value",
        "pk.fields": "n",
    }
    kit = SparkKit(LakeSinkConnector, config, spark)
    kit.write("t", [{"n": 1, "text": "a"}, {"n": 1, "text": "b"}, {"n": 2, "text": "c"}])
    kit.write("t", [{"n": 2, "text": "d"}])
    rows = spark.read.format("delta").load(str(tmp_path / "t")).orderBy("n").collect()
    assert [(row.n, row.text) for row in rows] == [(1, "b"), (2, "d")]


def test_files_of_a_directory_are_read_once(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,name\n1,one\n2,two\n")
    config = {"input.path": str(tmp_path), "topic": "t", "key.field": "id", "batch.max.files": "1"}
    kit = SparkKit(CsvDirectorySourceConnector, config, spark)
    assert kit.plan() == [
        {"key": 1, "value": {"id": 1, "name": "one"}},
        {"key": 2, "value": {"id": 2, "name": "two"}},
    ]
    assert kit.plan() == []
    (tmp_path / "b.csv").write_text("id,name\n3,three\n")
    assert [row["key"] for row in kit.plan()] == [3]
