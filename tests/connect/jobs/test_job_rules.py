"""Rules of Spark jobs that need no Spark: united schemas, numbers of batches, reports, settings."""

from __future__ import annotations

import shutil
import sys
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest

from barnabas.client.core.topology import TopicPartition
from barnabas.connect.data import INT32, INT64, STRING, decimal, struct
from barnabas.connect.data.arrow_shapes import fitted
from barnabas.connect.jobs.failures import is_away, may_pass, short
from barnabas.connect.jobs.plugin_archive import archive_of
from barnabas.connect.jobs.reports import Report, check, places_of
from barnabas.connect.jobs.schemas import DoesNotFit, Packet, cut_ranges, shapes_of, united
from barnabas.connect.jobs.sessions import needs_s3, settings_of, with_s3
from barnabas.connect.jobs.sink_job import continued, number_in
from barnabas.connect.plugins import ConnectError, FencedError, Kind, Plugins, RetriableError
from barnabas.connect.plugins.errors import UnknownPluginError
from barnabas.protocol import ErrorCode, KafkaError

ZERO, ONE = TopicPartition("t", 0), TopicPartition("t", 1)


def test_schemas_are_united_field_by_field() -> None:
    old = struct(id=INT32, note=STRING)
    new = struct(id=INT64, extra=STRING)
    found = united(old, new)
    assert found is not None and found.field_names == ("id", "note", "extra")
    assert found.field("id") == INT64
    assert all(found.field(name) == STRING.as_optional() for name in ("note", "extra"))
    assert united(None, STRING) == STRING.as_optional()
    with pytest.raises(DoesNotFit, match="int32 and string"):
        united(INT32, STRING)
    with pytest.raises(DoesNotFit):
        united(decimal(2), decimal(3))


def test_a_range_ends_before_the_first_record_that_does_not_fit() -> None:
    packets = [
        Packet(ZERO, 10, "t", 5, None, INT64),
        Packet(ZERO, 15, "t", 5, None, STRING),
        Packet(ZERO, 20, "t", 5, None, INT64),
        Packet(ONE, 0, "t", 3, None, INT32),
        Packet(ONE, 3, "u", 3, None, STRING),
    ]
    found = shapes_of(reversed(packets))
    assert found.by_topic == {"t": (None, INT64), "u": (None, STRING)}
    assert found.cuts == {ZERO: 15} and found.counts == {"t": 8, "u": 3}
    assert cut_ranges({ZERO: (10, 25), ONE: (0, 6)}, found.cuts) == {ZERO: (10, 15), ONE: (0, 6)}


def test_a_batch_that_the_sink_holds_and_the_group_does_not_comes_again() -> None:
    ranges = {ZERO: (5, 9)}
    assert continued([3, 3], (3, ranges)) == (3, None)
    assert continued([3, 3], (4, ranges)) == (3, (4, ranges))
    assert continued([-1], (0, ranges)) == (-1, (0, ranges))  # the first batch
    assert continued([], (7, ranges)) == (7, None)  # offsets were deleted: numbers go on
    assert continued([3, None], (4, ranges)) == (4, None)  # offsets were set by hand
    assert continued([3], None) == (3, None)
    assert continued([], None) == (-1, None)
    assert (number_in("barnabas-batch:12"), number_in("barnabas-batch:-1"), number_in("")) == (12, -1, None)


def test_the_worst_failure_of_the_pieces_is_raised_as_it_was() -> None:
    again, failed, fenced = Report(piece=0), Report(piece=1), Report(piece=0)
    again.failed(RetriableError("later"))
    failed.failed(ConnectError("wrong"))
    fenced.failed(FencedError("taken over"))
    with pytest.raises(ConnectError, match="wrong"):
        check([Report.read(each.text()) for each in (again, failed)])
    with pytest.raises(RetriableError, match="later"):
        check([again])
    with pytest.raises(FencedError):
        check([fenced])
    check([Report()])
    assert places_of([Report(host="a", records_in=2), Report(host="b", records_out=2)]) == (
        "2 pieces on a (1, 2 records), b (1, 0 records)"
    )


def test_a_connector_is_moved_to_a_cluster_by_one_setting() -> None:
    worker = {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "8", "group.id": "g"}
    here, there = settings_of(worker, {}), settings_of(worker, {"spark.master": "spark://host:7077"})
    assert (here.kind, here.master) == ("local", "local[2]")
    assert (there.kind, there.master) == ("cluster", "spark://host:7077")
    assert there.settings["spark.sql.shuffle.partitions"] == "8"
    assert settings_of({"spark.remote": "sc://a"}, {"spark.master": "local[1]"}).kind == "local"


def on_executor(line: str) -> RuntimeError:
    """An error of a Python function, as Spark tells it."""
    return RuntimeError(
        "Job aborted due to stage failure: Task 0 in stage 3.0 failed 4 times, most recent failure: Lost task"
        " 0.3 in stage 3.0 (TID 9) (10.0.0.7 executor 1): org.apache.spark.api.python.PythonException:"
        f' Traceback (most recent call last):\n  File "job.py", line 3, in ExecutorLostFailure\n{line}\n\n'
        "\tat org.apache.spark.Some.java(Some.java:1)\n\nDriver stacktrace:\n"
    )


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (RetriableError("busy"), True),
        (on_executor("barnabas.connect.plugins.errors.RetriableError: busy"), True),
        (on_executor("barnabas.client.core.errors.ConnectError: cannot connect to a:9092: refused"), True),
        (on_executor("barnabas.protocol.errors.KafkaError: NOT_LEADER_OR_FOLLOWER: moved"), True),
        (KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER), True),
        (on_executor("barnabas.protocol.errors.KafkaError: TOPIC_AUTHORIZATION_FAILED: no"), False),
        (on_executor("barnabas.connect.plugins.errors.ConnectError: wrong"), False),
        (on_executor("barnabas.client.core.errors.AuthenticationError: cannot log in"), False),
        (on_executor("TypeError: 'NoneType' object is not subscriptable"), False),
        (TypeError("no"), False),
        (OSError("no"), False),
    ],
)
def test_only_errors_that_say_so_are_tried_again(error: Exception, passes: bool) -> None:
    assert may_pass(error) is passes and not is_away(error)


def test_lost_executors_and_servers_are_told_from_code_that_fails_on_them() -> None:
    lost = (
        "ExecutorLostFailure (executor 0 exited caused by one of the running tasks) Reason: Command exited",
        "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)",
        "java.net.ConnectException: Connection refused",
        "java.io.IOException: No space left on device",
    )
    assert all(is_away(RuntimeError(each)) for each in lost)
    assert not is_away(RuntimeError("[DIVIDE_BY_ZERO] Division by zero"))
    assert short(on_executor("TypeError: no")) == "TypeError: no"
    assert short(TypeError("no")) == "TypeError: no"


def test_arrays_are_fitted_by_name_with_nulls_for_what_is_missing() -> None:
    given = pa.array([{"b": 1, "l": [1, None]}, None, {"b": None, "l": None}])
    kind = pa.struct([("a", pa.string()), ("b", pa.int32()), ("l", pa.list_(pa.int64()))])
    assert fitted(given, kind).to_pylist() == [
        {"a": None, "b": 1, "l": [1, None]},
        None,
        {"a": None, "b": None, "l": None},
    ]
    times = pa.array([1000], pa.time32("ms"))
    assert fitted(times, pa.int32()).to_pylist() == [1000]
    maps = pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int32()))
    assert fitted(maps, pa.map_(pa.string(), pa.int64())).to_pylist() == [[("k", 1)], None, []]


def test_modules_of_plugin_path_are_plugins_of_executors_that_have_their_archive(tmp_path: Path) -> None:
    """Only modules of the archive: others of the executor are not imported because a request names them."""
    folder = tmp_path / "plugins"
    (folder / "shipped_package").mkdir(parents=True)
    (folder / "shipped_package" / "__init__.py").write_text("class Some: VERSION = '1'\n")
    (folder / "shipped_package" / "table.txt").write_text("data")
    (folder / "shipped_module.py").write_text("class Other: VERSION = '2'\n")
    archive = archive_of([folder, tmp_path / "none"])
    assert archive is not None and zipfile.ZipFile(archive).namelist() == [
        "shipped_module.py", "shipped_package/__init__.py", "shipped_package/table.txt",
    ]  # fmt: skip
    shutil.rmtree(folder)
    plugins = Plugins([str(folder)])
    with pytest.raises(UnknownPluginError):
        plugins.load("shipped_module:Other", Kind.TRANSFORMATION)
    sys.path.append(str(archive))
    try:
        assert plugins.load("shipped_module:Other", Kind.TRANSFORMATION).VERSION == "2"
        assert plugins.load("shipped_package:Some", Kind.PREDICATE).VERSION == "1"
        with pytest.raises(UnknownPluginError):
            plugins.load("subprocess:Popen", Kind.TRANSFORMATION)
    finally:
        sys.path.remove(str(archive))
    assert archive_of([tmp_path / "none"]) is None


def test_a_session_gets_the_jars_of_s3_and_a_log_store_where_something_lies_there() -> None:
    def needs(worker: dict[str, str], **config: str) -> bool:
        given = {name.replace("_", "."): text for name, text in config.items()}
        return needs_s3(settings_of(worker, given), given)

    assert needs({}, lake_path="s3a://lake/x") and needs({"spark.hadoop.fs.s3a.endpoint": "http://h"})
    assert not needs({}, lake_path="/data/lake") and not needs({}, iceberg_catalog_warehouse="s3://lake")
    assert not needs({"spark.remote": "sc://h"}, lake_path="s3a://lake/x")
    found = with_s3(settings_of({"spark.jars": "own.jar"}, {})).settings
    assert str(found["spark.jars"]).startswith("own.jar,") and "spark.delta.logStore.s3a.impl" in found
