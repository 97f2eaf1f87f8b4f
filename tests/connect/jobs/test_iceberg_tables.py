"""Iceberg tables with a catalog in SQLite: creation, types, evolution, commits by batch. Without Spark."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyiceberg", reason="needs the extra `iceberg`")

from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.typedef import Record

from barnabas.client.core.topology import TopicPartition
from barnabas.connect.connectors.lake import iceberg_rewrites
from barnabas.connect.connectors.lake.iceberg_files import write_files
from barnabas.connect.connectors.lake.iceberg_rewrites import FileRewriter, stream_of
from barnabas.connect.connectors.lake.iceberg_settings import TableRule, catalog_properties, rules_of
from barnabas.connect.connectors.lake.iceberg_sink import IcebergSinkConnector
from barnabas.connect.connectors.lake.iceberg_tables import Lake, Replaced, partition_field
from barnabas.connect.connectors.lake.iceberg_types import fitted_batch
from barnabas.connect.connectors.lake.key_sets import KeySet
from barnabas.connect.plugins import ConnectError, Plugins, RetriableError

RANGES = {TopicPartition("orders", 0): (0, 3)}
NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
SCHEMA = pa.schema(
    [
        ("id", pa.int32()),
        ("place", pa.struct([pa.field("city", pa.string())])),
        ("at", pa.timestamp("us", "UTC")),
        ("tags", pa.list_(pa.int64())),
        ("counts", pa.map_(pa.string(), pa.int64())),
    ]
)
ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int8()),
        "place": [{"city": "Ulm"}, None, {"city": "Bonn"}],
        "at": pa.array([NOON] * 3, pa.timestamp("us", "UTC")),
        "tags": [[1], [], None],
        "counts": pa.array([[("a", 1)], None, []], pa.map_(pa.string(), pa.int64())),
        "extra": ["a", "b", "c"],
    }
)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    properties = {"type": "sql", "uri": f"sqlite:///{tmp_path}/c.db", "warehouse": f"file://{tmp_path}/w"}
    return Lake("test", properties, "connect-a")


def commit(
    lake: Lake, number: int, rows: pa.Table, replaced: Replaced | None = None, table: Any = None
) -> None:
    found = table or lake.table("db.orders")
    files = write_files(
        found.metadata.model_dump_json(), lake.properties, found.location(), rows, "db.orders", any_case=False
    )
    files = [pickle.loads(pickle.dumps(each)) for each in files]  # as they come from executors
    lake.commit(found, "main", number, RANGES, files, replaced or [])


def ids(lake: Lake) -> list[int]:
    table = lake.table("db.orders")
    assert table is not None
    return sorted(table.scan().to_arrow().column("id").to_pylist())


def test_rows_are_appended_with_the_number_of_their_batch(lake: Lake) -> None:
    table = lake.created(TableRule("db.orders", partition_by=("day(at)",)), SCHEMA, {"a.b": "c"})
    assert lake.last_batch(table, "main") == (-1, {})
    commit(lake, 7, ROWS)
    found = lake.table("db.orders")
    assert found is not None and lake.last_batch(found, "main") == (7, RANGES)
    assert found.properties["a.b"] == "c"
    rows = found.scan().to_arrow().to_pylist()
    assert rows[0] == {
        "id": 1, "place": {"city": "Ulm"}, "at": NOON, "tags": [1], "counts": [("a", 1)],
    }  # fmt: skip
    assert (rows[1]["place"], rows[2]["tags"], rows[1]["counts"]) == (None, None, None)
    other = Lake("test", lake.properties, "connect-b")
    assert other.last_batch(found, "main") == (-1, {})
    assert lake.names() == ["db.orders"]


def test_a_commit_on_an_older_snapshot_is_refused(lake: Lake) -> None:
    """Two tasks that both write the batch: the second one must look at the table first."""
    lake.created(TableRule("db.orders"), SCHEMA, {})
    stale = lake.table("db.orders")
    commit(lake, 0, ROWS)
    with pytest.raises(RetriableError, match="another writer committed first"):
        commit(lake, 0, ROWS, table=stale)
    assert ids(lake) == [1, 2, 3]


def rewritten(lake: Lake, keys: pa.Table) -> Replaced:
    """What executors make of the files that may hold keys."""
    table = lake.table("db.orders")
    fit = lake.fitted_keys(table, keys, any_case=False)
    scans = lake.scans(table, "main", fit)
    rewriter = FileRewriter(
        table.metadata.model_dump_json(),
        lake.properties,
        table.location(),
        "db.orders",
        stream_of(fit),
        False,
    )
    rewriter = pickle.loads(pickle.dumps(rewriter))
    given = [pa.RecordBatch.from_arrays([pa.array([each], pa.binary())], ["scan"]) for each in scans]
    return [
        (pickle.loads(row["old"]), pickle.loads(row["new"]))
        for batch in rewriter(iter(given))
        for row in batch.to_pylist()
    ]


@pytest.mark.parametrize("by", [(), ("bucket(id,2)",), ("at",)])
def test_files_that_hold_keys_are_rewritten_in_pieces_and_the_others_stay(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, by: tuple[str, ...]
) -> None:
    monkeypatch.setattr(iceberg_rewrites, "BUFFER_BYTES", 1)
    table = lake.created(TableRule("db.orders", partition_by=by), SCHEMA, {})
    commit(lake, 0, ROWS)
    commit(lake, 1, ROWS.slice(2, 1).set_column(0, "id", pa.array([9], pa.int32())))
    before = {each.file.file_path for each in lake.table("db.orders").scan().plan_files()}
    replaced = rewritten(lake, pa.table({"id": pa.array([2, 5, 12], pa.int64())}))
    assert len(replaced) == 1  # the file with 9 stays
    commit(lake, 2, ROWS.slice(1, 1), replaced)
    assert ids(lake) == [1, 2, 3, 9]
    table = lake.table("db.orders")
    rows = {row["id"]: row for row in table.scan().to_arrow().to_pylist()}
    assert rows[1]["tags"] == [1] and rows[3]["place"] == {"city": "Bonn"}
    after = {each.file.file_path for each in table.scan().plan_files()}
    assert len(before - after) == 1
    assert len([each for each in table.snapshots() if each.parent_snapshot_id]) == 2  # one for each batch
    assert rewritten(lake, pa.table({"id": pa.array([77], pa.int64())})) == []
    with pytest.raises(ConnectError, match="the key is null"):
        rewritten(lake, pa.table({"id": pa.array([None], pa.int32())}))


def test_rows_that_positional_deletes_removed_do_not_come_back(lake: Lake) -> None:
    table = lake.created(TableRule("db.orders"), SCHEMA, {"write.format.default": "parquet"})
    commit(lake, 0, ROWS)
    table = lake.table("db.orders")
    [task] = table.scan().plan_files()
    path = f"{table.location()}/data/deletes.parquet"
    kind = pa.schema(
        [
            pa.field("file_path", pa.string(), False, {"PARQUET:field_id": "2147483546"}),
            pa.field("pos", pa.int64(), False, {"PARQUET:field_id": "2147483545"}),
        ]
    )
    pq.write_table(
        pa.table({"file_path": [task.file.file_path], "pos": [0]}, kind), path.removeprefix("file://")
    )
    deletes = DataFile.from_args(
        content=DataFileContent.POSITION_DELETES, file_path=path, file_format=FileFormat.PARQUET,
        partition=Record(), record_count=1, file_size_in_bytes=1, sort_order_id=None, spec_id=0,
        equality_ids=None, key_metadata=None,
    )  # fmt: skip
    keys = pa.table({"id": pa.array([2], pa.int32())})
    rewriter = FileRewriter(
        table.metadata.model_dump_json(),
        lake.properties,
        table.location(),
        "db.orders",
        stream_of(keys),
        False,
    )
    scan = pickle.dumps((task.file, {deletes}))
    [made] = rewriter(iter([pa.RecordBatch.from_arrays([pa.array([scan], pa.binary())], ["scan"])]))
    [new] = pickle.loads(made.column("new")[0].as_py())
    assert new.record_count == 1  # of 1, 2 and 3 the first was deleted before


def test_keys_of_several_columns_are_found() -> None:
    keys = pa.table({"a": pa.array([1, 1, 2, 3], pa.int64()), "b": ["x", "y", "x", "z"], "c": [True] * 4})
    rows = pa.table(
        {
            "a": pa.array([1, 2, 2, 1, None, 3, 9], pa.int32()),
            "c": [True, True, True, False, True, True, True],
            "b": pa.array(["x", "x", "y", "x", "x", "z", "x"], pa.large_string()),
        }
    )
    assert KeySet(keys).mask(rows).to_pylist() == [True, True, False, False, False, True, False]
    assert KeySet(keys.select(["a"])).mask(rows).to_pylist() == [True, True, True, True, False, True, False]


def test_columns_are_added_and_numbers_widened(lake: Lake) -> None:
    table = lake.created(TableRule("db.orders"), SCHEMA, {})
    wanted = pa.schema(
        [("id", pa.int64()), ("place", pa.struct([pa.field("zip", pa.int32())])), ("x", pa.string())]
    )
    table = lake.evolved(table, wanted, any_case=False)
    assert str(table.schema().find_type("id")) == "long"
    assert {each.name for each in table.schema().columns} >= {"x", "tags"}
    assert table.schema().find_field("place.zip")
    assert lake.evolved(table, wanted, any_case=False).metadata_location == table.metadata_location
    narrow = pa.schema(
        [("id", pa.int32()), ("place", pa.struct([pa.field("city", pa.string())])), ("z", pa.int32())]
    )
    table = lake.evolved(table, narrow, any_case=False)
    assert str(table.schema().find_type("id")) == "long" and table.schema().find_field("z")
    other = pa.schema([("x", pa.string()), ("id", pa.string()), ("y", pa.string())])
    table = lake.evolved(table, other, any_case=False)  # records with such an id are refused
    assert str(table.schema().find_type("id")) == "long" and table.schema().find_field("y")


def test_values_that_do_not_fit_are_named() -> None:
    rows = pa.table({"id": ["x"], "OTHER": [1]})
    with pytest.raises(ConnectError, match="t: id is int32 in the table, and records bring string"):
        fitted_batch(rows, pa.schema([("id", pa.int32())]), "t", any_case=False)
    there = pa.schema([("other", pa.int64())])
    assert fitted_batch(rows, there, "t", any_case=True).to_pylist() == [{"other": 1}]
    assert fitted_batch(rows, there, "t", any_case=False).to_pylist() == [{"other": None}]
    with pytest.raises(ConnectError, match="a: values of int64 do not fit int32"):
        fitted_batch(pa.table({"a": [1 << 40]}), pa.schema([("a", pa.int32())]), "t", any_case=False)


def settings(**more: str) -> Any:
    return IcebergSinkConnector.CONFIG.parse({name.replace("_", "."): text for name, text in more.items()})


def test_settings_name_catalogs_and_tables() -> None:
    found = settings(
        **{
            "iceberg.tables": "db.a,db.b",
            "iceberg.table.db.a.id-columns": "x, y",
            "iceberg.table.db.a.partition-by": "day(at), bucket(id, 16)",
            "iceberg.tables.default-id-columns": "id",
            "iceberg.catalog.catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
            "iceberg.catalog.uri": "jdbc:postgresql://h:5432/d",
            "iceberg.catalog.jdbc.user": "u",
            "iceberg.catalog.jdbc.password": "p",
            "iceberg.catalog.io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        }
    )
    assert catalog_properties(found) == {"type": "sql", "uri": "postgresql+psycopg://u:p@h:5432/d"}
    a, b = rules_of(found)
    assert (a.keys, a.partition_by, b.keys, b.branch) == (
        ("x", "y"), ("day(at)", "bucket(id,16)"), ("id",), "main",
    )  # fmt: skip
    assert [partition_field(each) for each in (*a.partition_by, "id")] == [
        ("at", "day"), ("id", "bucket[16]"), ("id", "identity"),
    ]  # fmt: skip


def test_settings_are_checked() -> None:
    check = IcebergSinkConnector().check
    errors = check({"iceberg.tables": "a", "iceberg.catalog.type": "hadoop"})
    assert "has no namespace" in errors["iceberg.tables"][0]
    assert "must be one of rest, sql" in errors["iceberg.catalog"][0]
    rest = {"iceberg.catalog.type": "rest", "iceberg.catalog.uri": "http://x"}
    assert check({**rest, "iceberg.tables": "db.a"}) == {}
    routed = check({**rest, "iceberg.tables": "db.a", "iceberg.tables.route-field": "kind"})
    assert "route-regex is needed" in routed["iceberg.tables"][0]
    assert "is needed" in check({**rest, "iceberg.tables.dynamic-enabled": "true"})["iceberg.tables"][0]
    for name in ("org.apache.iceberg.connect.IcebergSinkConnector", "IcebergSink"):
        assert Plugins().connector(name) is IcebergSinkConnector
