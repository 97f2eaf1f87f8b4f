"""Which settings a session of each kind gets, and which interpreter its workers use."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="needs the extra `spark`")

from barnabas.engine.secrets import Secret
from barnabas.engine.session import set_workers_python
from barnabas.engine.session_settings import LOCAL, settings_for
from barnabas.engine.spark_settings import SessionKind, SparkSettings
from barnabas.engine.standalone import share_of

ADAPTIVE = "spark.sql.adaptive.enabled"
CLUSTERS = [SparkSettings("spark://host:7077"), SparkSettings("yarn"), SparkSettings("k8s://https://host")]


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        (SparkSettings(), SessionKind.LOCAL),
        (SparkSettings("local"), SessionKind.LOCAL),
        (SparkSettings("spark://host:7077"), SessionKind.CLUSTER),
        (SparkSettings("yarn"), SessionKind.CLUSTER),
        (SparkSettings(remote="sc://host"), SessionKind.CONNECT),
        (SparkSettings("sc://host:15002"), SessionKind.CONNECT),
    ],
)
def test_one_setting_says_where_a_session_computes(settings: SparkSettings, kind: SessionKind) -> None:
    assert settings.kind is kind


def test_a_local_session_is_set_up_for_few_cores() -> None:
    found = settings_for(SparkSettings("local[2]"))
    assert found["spark.sql.shuffle.partitions"] == "4"
    assert found["spark.databricks.delta.snapshotPartitions"] == "1"
    assert ADAPTIVE not in found  # Spark's default


@pytest.mark.parametrize("settings", [*CLUSTERS, SparkSettings(remote="sc://host")])
def test_executors_get_adaptive_execution_and_no_setting_for_few_cores(settings: SparkSettings) -> None:
    found = settings_for(settings)
    assert not set(found) & set(LOCAL)
    assert found[ADAPTIVE] == "true"
    assert found["spark.sql.session.timeZone"] == "UTC"
    assert "spark.cores.max" not in found


@pytest.mark.parametrize("settings", [SparkSettings(), *CLUSTERS])
def test_settings_of_users_win_and_those_of_one_application_over_them(settings: SparkSettings) -> None:
    secret = Secret("${env:KEY}")
    mine = {"spark.sql.shuffle.partitions": "77", ADAPTIVE: "false", "spark.hadoop.fs.s3a.secret.key": secret}
    found = settings_for(SparkSettings(settings.master, settings=mine), {ADAPTIVE: "true"})
    assert found["spark.sql.shuffle.partitions"] == "77"
    assert found[ADAPTIVE] == "true"
    assert found["spark.hadoop.fs.s3a.secret.key"] is secret


def test_the_server_of_spark_connect_keeps_its_static_settings() -> None:
    mine = {"spark.executor.memory": "4g", "spark.jars": "a.jar", "spark.sql.shuffle.partitions": "9"}
    found = settings_for(SparkSettings(remote="sc://host", settings=mine))
    assert found["spark.sql.shuffle.partitions"] == "9"
    assert not {"spark.executor.memory", "spark.jars", "spark.sql.extensions"} & set(found)


def test_local_workers_use_this_interpreter_and_executors_one_of_the_same_version(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    set_workers_python(SessionKind.LOCAL, {})
    assert os.environ["PYSPARK_PYTHON"] == sys.executable
    monkeypatch.delenv("PYSPARK_PYTHON")
    monkeypatch.setenv("PATH", "/usr/bin")
    set_workers_python(SessionKind.CLUSTER, {})
    assert os.environ["PYSPARK_PYTHON"] == f"python{sys.version_info[0]}.{sys.version_info[1]}"
    assert os.environ["PATH"].split(os.pathsep)[0] == str(Path(sys.executable).parent)
    set_workers_python(SessionKind.CLUSTER, {"spark.pyspark.python": "/opt/python"})
    assert os.environ["PYSPARK_PYTHON"] == "/opt/python"


def test_a_session_without_deltas_jars_does_not_ask_for_its_classes() -> None:
    assert "spark.sql.extensions" in settings_for(SparkSettings())
    assert "spark.sql.extensions" not in settings_for(SparkSettings(), has_delta=False)


def test_programs_share_the_cores_of_a_standalone_cluster() -> None:
    assert share_of(64, 2, 2) == 32
    assert share_of(1, 2, 2) == 1
    assert share_of(None, 2, 2) == 2
