"""A lake behind a URL: versions without Spark, commits of several drivers, a pipeline that is killed."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("deltalake", reason="needs the extra `pipeline`")
pytest.importorskip("pyspark", reason="needs the extra `pipeline`")

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from barnabas.engine.delta import log_store
from barnabas.engine.delta.log import newest_version, transactions_in
from barnabas.engine.delta.log_store import check_store, with_log_store_settings
from barnabas.engine.errors import NeedsDecision
from barnabas.engine.spark_settings import SparkSettings
from barnabas.pipeline import Pipeline, TopicSource
from barnabas.pipeline.increments.source_table import SourceTable
from barnabas.pipeline.ingest.audit_mark import AuditMark
from barnabas.pipeline.ingest.complete_batch import CompleteBatch, CompleteBatches
from barnabas.pipeline.ingest.rewriting.progress import Progress
from barnabas.pipeline.lake.table_files import answer, options_for, table_files
from barnabas.pipeline.lake.tables import Lake, TableName, Zone
from barnabas.pipeline.refined import progress as refined_progress
from barnabas.pipeline.sources.listing import ListedPlace, found_files
from barnabas.spark import jars
from barnabas.testing.waiting import wait_until
from s3_server import S3Server, running_s3

JAVA = Path(log_store.__file__).parent / "java"


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with running_s3() as found:
        yield found


def append(url: str, s3: S3Server, number: int, mode: str = "append") -> None:
    write_deltalake(
        url.replace("s3a://", "s3://"),
        pa.table({"id": [number], "rule": ["low"]}),
        mode=mode,  # type: ignore[arg-type]
        storage_options=options_for(s3.settings, url),
        commit_properties=CommitProperties(app_transactions=[Transaction("shop", number)]),
    )


def test_versions_and_commits_behind_a_url_cost_a_request_each(s3: S3Server, tmp_path: Path) -> None:
    for url in (f"s3a://lake/{tmp_path.name}/raw/orders", str(tmp_path / "raw" / "orders")):
        log = f"{url}/_delta_log"
        assert newest_version(log, s3.settings) == -1
        for number in range(5):
            append(url, s3, number)
            assert newest_version(log, s3.settings) == number
        assert transactions_in(log, 4, s3.settings) == [("shop", 4)]
        assert transactions_in(log, 9, s3.settings) == []
        s3.requests()
        assert newest_version(log, s3.settings) == 4
        asked = s3.requests()
        assert len(asked) <= 1 and all("start-after=" in each.query for each in asked)
        found = table_files(url, s3.settings)
        assert found is not None and (found.version, found.files, found.rows) == (4, 5, 5)
        assert answer(url, "SELECT rule, count(*) AS n FROM t GROUP BY rule", s3.settings) == [
            {"rule": "low", "n": 5}
        ]
    # A table that was made anew begins again.
    url = f"s3a://lake/{tmp_path.name}/raw/orders"
    client, store, prefix = log_store.opened_store(url, s3.settings)
    names = [each["path"] for page in client.list(store, prefix=prefix) for each in page]
    client.delete(store, names)
    assert newest_version(f"{url}/_delta_log", s3.settings) == -1
    assert table_files(url, s3.settings) is None
    append(url, s3, 0)
    assert newest_version(f"{url}/_delta_log", s3.settings) == 0


def test_commits_of_a_table_behind_a_url_are_read_without_spark(s3: S3Server, tmp_path: Path) -> None:
    name = TableName(Zone.REFINED, "totals")
    no_spark: Any = None
    for root in (f"s3a://lake/{tmp_path.name}/commits", str(tmp_path / "commits")):
        lake = Lake.at(root, store=s3.settings)
        url = lake.path(name).replace("s3a://", "s3://")
        options = options_for(s3.settings, root)
        progress = refined_progress.Progress("sql", {"orders": 3}, {"orders": "id"})
        noted = CommitProperties(custom_metadata={"userMetadata": progress.text()})
        write_deltalake(
            url,
            pa.table({"id": [0], "rule": ["low"]}),
            mode="append",
            storage_options=options,
            commit_properties=noted,
        )
        for number in (1, 2):
            append(lake.path(name), s3, number)
        table = SourceTable(no_spark, lake, name)
        at = datetime.now(UTC)
        found = table.current()
        assert found is not None and found.version == 2 and abs(found.at - at) < timedelta(minutes=1)
        s3.requests()
        assert table.current() == found  # a second later, as views look at their tables
        assert len(s3.requests()) == (1 if "://" in root else 0)
        assert table.only_adds(0, 2) is True
        assert table.is_commit(2, "shop", 2) and not table.is_commit(2, "shop", 1)
        assert refined_progress.newest_progress(no_spark, lake, name) == progress
        append(lake.path(name), s3, 3, mode="overwrite")
        assert table.only_adds(0, 3) is False
        assert table.only_adds(3, 9) is None
        found = table.current()
        assert found is not None and found.version == 3


def test_progress_of_commands_and_complete_batches_are_seen_from_another_host(
    s3: S3Server, tmp_path: Path
) -> None:
    found = []
    for host in ("one", "two"):  # the folder of the file is a folder of the host
        pipeline = Pipeline(
            name="shop",
            lake=f"s3a://lake/{tmp_path.name}",
            sources=[TopicSource(name="orders", bootstrap_servers="nowhere", subscribe="orders")],
            file=tmp_path / host / "pipeline.yaml",
            spark=SparkSettings("local[1]", settings=s3.settings),
        )
        source = pipeline.source("orders")
        progress, complete = Progress(pipeline, source, "replay"), CompleteBatches(pipeline, "orders")
        found.append((progress.resumes_at, complete.last(), Progress(pipeline, source, "other").resumes_at))
        if host == "one":
            progress.note(7)
            complete.note(CompleteBatch(9, "2026-01-01T00:00:00+00:00", AuditMark(8)))
    known = CompleteBatch(9, "2026-01-01T00:00:00+00:00", AuditMark(8))
    assert found == [(None, None, None), (7, known, None)]
    progress.finish()
    complete.forget()
    assert Progress(pipeline, source, "replay").resumes_at is None and complete.last() is None


def test_files_of_a_bucket_are_listed(s3: S3Server, tmp_path: Path) -> None:
    url = f"s3a://lake/{tmp_path.name}"
    client, store, prefix = log_store.opened_store(f"{url}/in", s3.settings)
    for name in ("a.json", "deep/b+c d.json", "deep/c.csv", "_hidden/d.json", "e.json.tmp", "empty.json"):
        client.put(store, f"{prefix}/{name}", b"" if name == "empty.json" else b"{}")

    def names(recursive: bool) -> list[str]:
        place = ListedPlace(f"{url}/in", "*.json", recursive, s3.settings)
        return sorted(each.path.removeprefix(f"{url}/in/") for each in found_files(place))

    assert names(True) == ["a.json", "deep/b+c d.json"]
    assert names(False) == ["a.json"]


def test_a_store_that_ignores_conditions_is_refused(s3: S3Server) -> None:
    lake = Lake.at("s3a://lake/probed", store={**s3.settings, "spark.other": "1"})
    assert "spark.other" not in lake.store and "test" not in repr(lake)
    check_store(lake.own_path("probe"), lake.store)
    s3.ignore_conditions(True)
    try:
        with pytest.raises(NeedsDecision, match="ignores conditional puts"):
            check_store(lake.own_path("probe"), lake.store)
    finally:
        s3.ignore_conditions(False)


def test_a_lake_at_s3_gets_a_log_store_unless_the_file_names_one() -> None:
    lake = Lake.at("s3a://lake/x")
    found = with_log_store_settings(lake.root, {"spark.jars": "a.jar"})
    assert found["spark.delta.logStore.s3a.impl"] == log_store.CLASS
    assert found["spark.jars"] == f"a.jar,{log_store.JAR}" and log_store.JAR.exists()
    named = {"spark.delta.logStore.s3a.impl": "org.example.Other"}
    assert with_log_store_settings(lake.root, named) == named
    assert with_log_store_settings("/tmp/lake", {}) == {}
    with pytest.raises(NeedsDecision, match="cannot be shared by two drivers"):
        with_log_store_settings(lake.root, {log_store.CONDITIONAL: "false"})


def test_the_jar_holds_what_its_source_says(tmp_path: Path) -> None:
    javac = shutil.which("javac")
    said = subprocess.run([javac, "-version"], capture_output=True, text=True) if javac else None
    if javac is None or said is None or "javac 17" not in said.stdout:
        pytest.skip("needs javac 17")
    import pyspark

    spark_jars = Path(pyspark.__file__).parent / "jars"
    on_path = ":".join(map(str, [*spark_jars.glob("hadoop-client-api-*.jar"), *jars.jars("delta")]))
    source = str(JAVA / "ConditionalPutLogStore.java")
    options = ["--release", "17", "-g:none", "-cp", on_path, "-d", str(tmp_path)]
    subprocess.run([javac, *options, source], check=True)
    with zipfile.ZipFile(log_store.JAR) as jar:
        [name] = jar.namelist()
        packed = jar.read(name)
    assert hashlib.sha256(packed).digest() == hashlib.sha256((tmp_path / name).read_bytes()).digest()


DRIVER = """
import json, sys
from barnabas.engine.session import session
from barnabas.engine.spark_settings import SparkSettings
from barnabas.engine.delta.log_store import with_log_store_settings
from barnabas.pipeline.lake.tables import Lake

name, settings = sys.argv[1], json.loads(sys.argv[2])
lake = Lake.at("s3a://lake/raced", store=settings)
options = SparkSettings("local[1]", settings=with_log_store_settings(lake.root, settings))
spark = session(options, ("delta", "s3"))
print("ready", flush=True)
for number in range(int(sys.stdin.readline())):
    rows = spark.range(1).selectExpr(f"'{name}' AS driver", f"{number} AS number")
    rows.coalesce(1).write.format("delta").mode("append").save("s3a://lake/raced/raw/t")
"""
REFRESH = """
import json, sys
from barnabas.engine.delta.log import opened_store
from barnabas.engine.session import session
from barnabas.engine.spark_settings import SparkSettings
from barnabas.pipeline import FilesSource, Pipeline, Refined, Schema, Staging, Trusted
from barnabas.engine.delta.log_store import with_log_store_settings
from barnabas.pipeline.lake.tables import TableName, Zone
from barnabas.pipeline.refined import zone

settings = json.loads(sys.argv[1])
sql = "SELECT shop, count(*) AS n FROM orders GROUP BY shop"
pipeline = Pipeline(
    name="shop", lake="s3a://lake/merged",
    sources=[FilesSource(name="orders", path="/nowhere", schema=Schema(ddl="id BIGINT, shop STRING"))],
    staging=[Staging(name="orders", source="orders", key=["id"])],
    trusted=[Trusted(name="orders", staging="orders")],
    refined=[Refined(name="totals", sql=sql)],
    spark=SparkSettings("local[1]", settings=settings),
)
lake = pipeline.lake_location
options = SparkSettings("local[1]", settings=with_log_store_settings(lake.root, settings))
spark = session(options, ("delta", "s3"))
spark.conf.set("spark.databricks.delta.properties.defaults.enableChangeDataFeed", "true")
for number, shop in enumerate("aab"):
    rows = spark.createDataFrame([(number, shop)], "id BIGINT, shop STRING")
    path = lake.path(TableName(Zone.TRUSTED, "orders"))
    rows.coalesce(1).write.format("delta").mode("append").save(path)
    if number == 2:  # only the added rows are read: the files of others may be gone
        client, store, prefix = opened_store(path, lake.store)
        old = [each["path"] for page in client.list(store, prefix=prefix) for each in page]
        found = spark.read.format("delta").load(path).where("id = 2").select("_metadata.file_path")
        new = {row[0] for row in found.collect()}
        for each in old:
            if each.endswith(".parquet") and not any(each in name for name in new):
                client.delete(store, each)
    zone.refresh(spark, pipeline)
"""
FAST = {"spark.driver.memory": "700m", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}


def child(*arguments: str, **more: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **more
    )


@pytest.mark.long
@pytest.mark.timeout(900)
def test_no_commit_of_two_drivers_replaces_another(s3: S3Server) -> None:
    drivers = [child("-c", DRIVER, name, json.dumps({**s3.settings, **FAST})) for name in "ab"]
    try:
        for driver in drivers:
            assert driver.stdout is not None and driver.stdin is not None
            assert driver.stdout.readline().strip() == "ready"
        for driver in drivers:  # both at once
            assert driver.stdin is not None
            driver.stdin.write("8\n")
            driver.stdin.flush()
        for driver in drivers:
            driver.communicate()
        assert [driver.returncode for driver in drivers] == [0, 0]
    finally:
        for driver in drivers:
            driver.kill()
            driver.wait()
    table = DeltaTable("s3://lake/raced/raw/t", storage_options=options_for(s3.settings, "s3a://"))
    rows = sorted((row["driver"], row["number"]) for row in table.to_pyarrow_table().to_pylist())
    assert rows == [(name, number) for name in "ab" for number in range(8)]
    assert table.version() >= 15


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_refined_table_behind_a_url_takes_added_rows_in(s3: S3Server, tmp_path: Path) -> None:
    settings = json.dumps({**s3.settings, **FAST, "spark.sql.shuffle.partitions": "1"})
    done = subprocess.run(
        [sys.executable, "-c", REFRESH, settings], capture_output=True, text=True, cwd=tmp_path, timeout=800
    )
    assert done.returncode == 0, done.stderr[-2000:]
    options = options_for(s3.settings, "s3a://")
    table = DeltaTable("s3://lake/merged/refined/totals", storage_options=options)
    assert sorted(map(tuple, (each.values() for each in table.to_pyarrow_table().to_pylist()))) == [
        ("a", 2), ("b", 1),
    ]  # fmt: skip
    made = [each["operation"] for each in table.history()][::-1]
    assert made[-2:] == ["MERGE", "MERGE"], made


FILE = """
name: shop
lake: s3a://lake/whole
spark:
  master: "local[2]"
  settings: %s
sources:
  people:
    files: {path: %s, pattern: "*.json"}
    schema: "id BIGINT, name STRING"
    frequency: {batch: "0 2 * * *"}
    rows_per_batch: 10
staging: {people: {key: [id]}}
trusted: {people: {rules: [{not_null: name}]}}
serving: {port: 0}
"""


@pytest.mark.long
@pytest.mark.timeout(1500)
def test_a_pipeline_on_s3_that_is_killed_again_and_again_is_exact(s3: S3Server, tmp_path: Path) -> None:
    """Killed after more and more puts to the store, then finished; each row is there once."""
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(3):
        lines = [{"id": 10 * number + each, "name": "n" if each else None} for each in range(10)]
        (folder / f"{number}.json").write_text("\n".join(json.dumps(line) for line in lines))
    settings = {**s3.settings, **FAST, "spark.sql.shuffle.partitions": "2"}
    settings[f"{'spark.hadoop.fs.s3a.'}secret.key"] = "${env:S3_SECRET}"
    file = tmp_path / "pipeline.yaml"
    file.write_text(FILE % (json.dumps(settings), json.dumps(str(folder))))
    environment = {**os.environ, "S3_SECRET": "test"}
    command = ("-m", "barnabas", "pipeline", "run", "--once", "-f", str(file))
    options = options_for(s3.settings, "s3a://")

    put: list[str] = []

    def commits() -> int:
        put.extend(each.path for each in s3.requests() if each.method == "PUT" and "log/0" in each.path)
        return len(put)

    def killed_after(more: int) -> None:
        before = commits()
        run = child(*command, env=environment, start_new_session=True, stderr=subprocess.STDOUT)
        try:
            wait_until(lambda: commits() >= before + more or run.poll() is not None, 600)
            assert run.poll() is None, run.communicate()[0][-2000:]
        finally:
            os.killpg(run.pid, signal.SIGKILL)
            run.communicate()

    killed_after(2)
    killed_after(5)
    done = subprocess.run(
        [sys.executable, *command], env=environment, capture_output=True, text=True, timeout=700
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]

    def ids(zone: str) -> list[int]:
        table = DeltaTable(f"s3://lake/whole/{zone}/people", storage_options=options)
        column = "id" if zone in ("staging", "trusted") else "offset"
        return sorted(table.to_pyarrow_table(columns=[column])[column].to_pylist())

    assert ids("staging") == list(range(30))
    assert ids("trusted") == [each for each in range(30) if each % 10]
    assert len(ids("raw")) == 30 and len(ids("quarantine")) == 3
