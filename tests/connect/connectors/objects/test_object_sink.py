"""The objects sink: names, folders, formats, and each record once however often it is interrupted."""

from __future__ import annotations

import gzip
import io
import json
import random
import threading
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import fastavro
import pyarrow.parquet as pq
import pytest
from tests.connect.connectors.contexts import Offsets, started_sink, started_source
from tests.s3_server import running_s3

from barnabas.client.core.topology import TopicPartition
from barnabas.connect.config import ConfigError
from barnabas.connect.connectors.objects.connectors import HdfsSinkConnector, S3SinkConnector
from barnabas.connect.connectors.objects.object_source import HdfsSourceConnector
from barnabas.connect.connectors.objects.reading import columns_of
from barnabas.connect.data import INT64, STRING, TIMESTAMP, Column, Records, decimal, struct
from barnabas.connect.plugins import RetriableError, SinkTask

SCHEMA = struct(name="Order", id=INT64, country=STRING)
WHERE = TopicPartition("orders", 0)


def records(first: int, count: int, schema: Any = SCHEMA) -> Records:
    rows = [{"id": n, "country": "DE" if n % 3 else "CH"} for n in range(first, first + count)]
    return Records.of(
        "orders",
        Column.of(rows, schema),
        timestamps=[1_700_000_000_000 + n * 1000 for n in range(first, first + count)],
        partitions=[0] * count,
        offsets=list(range(first, first + count)),
    )


def hdfs(folder: Path, **more: str) -> dict[str, str]:
    return {"hdfs.url": str(folder), "format.class": "JsonFormat", "flush.size": "10", **more}


def written(folder: Path) -> list[int]:
    found = []
    for path in sorted(folder.rglob("*.json")):
        found += [json.loads(line)["id"] for line in path.read_text().splitlines()]
    return sorted(found)


def content(storage: Any, name: str) -> Any:
    with storage.open(name) as file:
        return file.read()


def put_until_done(task: SinkTask, batch: Records, rng: random.Random) -> bool:
    while True:
        try:
            task.put(batch)
            return True
        except RetriableError:
            if rng.random() < 0.3:
                return False


def test_names_and_offsets_are_those_of_confluent(tmp_path: Path) -> None:
    task = started_sink(HdfsSinkConnector, hdfs(tmp_path))
    task.open([WHERE])
    task.put(records(0, 25))
    assert task.flush({WHERE: 25}) == {WHERE: 20}
    names = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.json"))
    assert names == [
        "topics/orders/partition=0/orders+0+0000000000+0000000009.json",
        "topics/orders/partition=0/orders+0+0000000010+0000000019.json",
    ]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"partitioner.class": "FieldPartitioner", "partition.field.name": "country"},
        {
            "partitioner.class": "HourlyPartitioner",
            "timestamp.extractor": "Record",
            "rotate.interval.ms": "7000",
        },
    ],
)
def test_each_record_is_written_once_after_crashes_and_failed_writes(
    tmp_path: Path, seed: int, more: dict[str, str]
) -> None:
    rng, committed, at = random.Random(seed), 0, 0
    while at < 500:
        sought: dict[TopicPartition, int] = {}
        task = started_sink(HdfsSinkConnector, hdfs(tmp_path, **more), seek=sought.update)
        real = task._layout.storage.put_file  # type: ignore[attr-defined]

        def fails(name: str, file: Any, real: Any = real) -> None:
            if rng.random() < 0.3:
                raise RetriableError("the store is away")
            real(name, file)

        task._layout.storage.put_file = fails  # type: ignore[attr-defined]
        task.open([WHERE])
        at = sought.get(WHERE, committed)
        for _ in range(rng.randrange(1, 12)):
            if at >= 500:
                break
            batch = records(at, min(rng.randrange(1, 40), 500 - at))
            if not put_until_done(task, batch, rng):
                at = committed
                break  # the process died while it wrote a group of files
            at += len(batch)
            if rng.random() < 0.3:
                committed = dict(task.flush({WHERE: at}) or {}).get(WHERE, committed)
    found = written(tmp_path)
    assert found == list(range(len(found))) and len(found) >= committed


def test_files_are_the_same_whatever_the_batches(tmp_path: Path) -> None:
    contents = []
    for sizes in (1, 7, 100):
        folder = tmp_path / str(sizes)
        config = hdfs(
            folder,
            **{
                "format.class": "ParquetFormat",
                "partitioner.class": "TimeBasedPartitioner",
                "path.format": "'d'=YYYY-MM-dd/'m'=mm",
                "partition.duration.ms": "60000",
                "timestamp.extractor": "Record",
                "timezone": "Europe/Berlin",
                "rotate.interval.ms": "8000",
            },
        )
        task = started_sink(HdfsSinkConnector, config)
        for first in range(0, 100, sizes):
            task.put(records(first, min(sizes, 100 - first)))
        contents.append(
            {str(p.relative_to(folder)): pq.read_table(p).to_pylist() for p in folder.rglob("*.parquet")}
        )
    assert contents[0] == contents[1] == contents[2] and len(contents[0]) > 5
    assert all(name.startswith("topics/orders/d=2023-11-14/m=") for name in contents[0])


def test_a_change_of_schema_closes_the_file(tmp_path: Path) -> None:
    task = started_sink(HdfsSinkConnector, hdfs(tmp_path))
    task.put(records(0, 3))
    rows = Column.of([{"id": 3, "country": "x", "note": "n"}], struct(id=INT64, country=STRING, note=STRING))
    task.put(Records.of("orders", rows, partitions=[0], offsets=[3]))
    assert task.flush({}) == {WHERE: 3}


def refusing(task: SinkTask) -> list[tuple[int, str]]:
    """The offsets and texts of records that the task reports."""
    found: list[tuple[int, str]] = []

    def errant(records: Records, indices: Any, error: BaseException) -> None:
        found.extend((records.offsets[each].as_py(), str(error)) for each in indices)

    task.context.errant = errant
    return found


def test_formats_that_need_a_schema_say_so(tmp_path: Path) -> None:
    task = started_sink(
        HdfsSinkConnector, hdfs(tmp_path, **{"format.class": "AvroFormat", "flush.size": "1"})
    )
    refused = refusing(task)
    task.put(Records.of("orders", Column(None, [{"a": 1}]), partitions=[0], offsets=[0]))
    [(offset, text)] = refused
    assert offset == 0 and "orders-0 offset 0: format avro needs structs with a schema" in text
    task.put(records(1, 1))
    assert task.flush({}) == {WHERE: 2}


def test_records_that_no_file_takes_are_reported_alone(tmp_path: Path) -> None:
    by_country = {"partitioner.class": "FieldPartitioner", "partition.field.name": "country"}
    task = started_sink(HdfsSinkConnector, hdfs(tmp_path, **by_country, **{"flush.size": "3"}))
    refused = refusing(task)
    values = [{"id": n, "country": "DE"} for n in range(6)]
    del values[2]["country"]
    rows = Column(None, [*values[:4], None, values[5]])
    task.put(Records.of("orders", rows, partitions=[0] * 6, offsets=list(range(6))))
    assert [offset for offset, _ in refused] == [4, 2]
    assert "has no value: behavior.on.null.values=ignore" in refused[0][1]
    assert "no field 'country'" in refused[1][1]
    task.put(Records.of("orders", Column(None, values[:2]), partitions=[0] * 2, offsets=[6, 7]))
    assert task.flush({}) == {WHERE: 8}
    assert written(tmp_path) == [0, 0, 1, 1, 3, 5]


def test_bytes_that_are_none_are_reported_alone(tmp_path: Path) -> None:
    task = started_sink(
        HdfsSinkConnector, hdfs(tmp_path, **{"format.class": "ByteArrayFormat", "flush.size": "2"})
    )
    refused = refusing(task)
    rows = Column(None, [b"a", "text", b"b"])
    task.put(Records.of("orders", rows, partitions=[0] * 3, offsets=[0, 1, 2]))
    assert [offset for offset, _ in refused] == [1]
    [path] = tmp_path.rglob("*.bin")
    assert path.read_bytes() == b"a\nb\n"


def test_wrong_settings_are_named() -> None:
    connector = S3SinkConnector()
    config = {"s3.bucket.name": "b", "format.class": "Excel", "flush.size": "1"}
    assert "known are ParquetFormat" in connector.check(config)["format.class"][0]
    config |= {"format.class": "JsonFormat", "partitioner.class": "TimeBasedPartitioner", "path.format": "QQ"}
    config |= {"partition.duration.ms": "1000"}
    assert "letter 'Q'" in connector.check(config)["path.format"][0]
    config = {"hdfs.url": "hdfs:///data", "format.class": "JsonFormat", "flush.size": "1"}
    assert "names no namenode" in str(HdfsSinkConnector().check(config))
    del config["hdfs.url"]
    assert "hdfs.url is needed" in HdfsSinkConnector().check(config)["hdfs.url"][0]
    config |= {"store.url": "hdfs://x:8020", "behavior.on.null.values": "write"}
    [text] = HdfsSinkConnector().check(config)["behavior.on.null.values"]
    assert "needs store.kafka.keys=true" in text


def test_files_of_keys_without_their_values_do_not_move_the_position(tmp_path: Path) -> None:
    config = hdfs(tmp_path, **{"store.kafka.keys": "true"})
    task: Any = started_sink(HdfsSinkConnector, config)
    real = task._layout.storage.put_file

    def dies(name: str, file: Any) -> None:
        if ".keys." not in name:
            raise RetriableError("killed between the files of a group")
        real(name, file)

    task._layout.storage.put_file = dies
    with pytest.raises(RetriableError):
        task.put(records(0, 10))
    sought: dict[TopicPartition, int] = {}
    after = started_sink(HdfsSinkConnector, config, seek=sought.update)
    after.open([WHERE])
    assert sought == {}
    after.put(records(0, 10))
    started_sink(HdfsSinkConnector, config, seek=sought.update).open([WHERE])
    assert sought == {WHERE: 10}


def test_a_new_owner_deletes_files_that_the_former_one_did_not_finish(tmp_path: Path) -> None:
    for name in ("orders+0+0000000000+0000000009.json.77", "orders+1+0000000000+0000000009.json.77"):
        path = tmp_path / "topics" / "+tmp" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("half")
    started_sink(HdfsSinkConnector, hdfs(tmp_path)).open([WHERE])
    assert [path.name[:8] for path in (tmp_path / "topics" / "+tmp").iterdir()] == ["orders+1"]


@pytest.mark.parametrize("sizes", [1, 3, 12])
def test_keys_of_tombstones_are_written_apart(tmp_path: Path, sizes: int) -> None:
    """Wherever batches end, the same files come."""
    config = hdfs(tmp_path, **{"flush.size": "6", "behavior.on.null.values": "write"})
    config |= {"store.kafka.keys": "true", "partitioner.class": "FieldPartitioner"}
    task = started_sink(HdfsSinkConnector, {**config, "partition.field.name": "country"})
    ids = [0, None, 2, 3, None, 5, None, None, 8, 9, 10, None]
    for first in range(0, 12, sizes):
        some = ids[first : first + sizes]
        rows = [None if n is None else {"id": n, "country": "DE"} for n in some]
        schema = SCHEMA.as_optional() if any(n is not None for n in some) else None
        task.put(
            Records.of(
                "orders",
                Column.of(rows, schema),
                Column.of([f"k{first + n}" for n in range(len(some))]),
                partitions=[0] * len(some),
                offsets=list(range(first, first + len(some))),
            )
        )
    assert task.flush({}) == {WHERE: 12}
    found = {
        str(path.relative_to(tmp_path / "topics" / "orders")): path.read_text().splitlines()
        for path in tmp_path.rglob("*.json")
    }
    keys = {name: lines for name, lines in found.items() if name.startswith("tombstone/")}
    assert keys == {
        "tombstone/orders+0+0000000001+0000000004.keys.json": ['"k1"', '"k4"'],
        "tombstone/orders+0+0000000006+0000000011.keys.json": ['"k6"', '"k7"', '"k11"'],
    }
    assert written_ids(found) == [0, 2, 3, 5, 8, 9, 10]
    rest = started_source(
        HdfsSourceConnector, {"hdfs.url": str(tmp_path), "format.class": "JsonFormat"}, Offsets()
    )
    ids_read = [row.value["id"] for batch in iter(rest.poll, None) for row in batch.rows()]
    assert ids_read == [0, 2, 3, 5, 8, 9, 10]


def written_ids(found: dict[str, list[str]]) -> list[int]:
    values = [lines for name, lines in sorted(found.items()) if ".keys." not in name]
    return [json.loads(line)["id"] for lines in values for line in lines]


def test_settings_that_a_store_cannot_follow_are_refused() -> None:
    config = {"s3.bucket.name": "b", "format.class": "JsonFormat", "flush.size": "1"}
    check = S3SinkConnector().check
    assert check(config | {"s3.ssea.name": "aws:kms", "s3.sse.kms.key.id": "k"}) == {}
    assert "needs s3.ssea.name=aws:kms" in check(config | {"s3.sse.kms.key.id": "k"})["s3.sse.kms.key.id"][0]
    for name, value in (("s3.acl.canned", "private"), ("s3.ssea.name", "DES"), ("s3.object.tagging", "true")):
        with pytest.raises(ConfigError):
            S3SinkConnector.CONFIG.parse(config | {name: value})
    ignored = S3SinkConnector.CONFIG.ignored({"s3.credentials.provider.class": "com.example.Mine"})
    assert "aws.access.key.id" in ignored["s3.credentials.provider.class"]


def test_decimals_and_bytes_are_written_as_settings_say(tmp_path: Path) -> None:
    schema = struct(price=decimal(2))
    rows = [{"price": Decimal("12345678901234567890.50")}, {"price": Decimal("-1.28")}]
    texts = {}
    for form in ("BASE64", "NUMERIC"):
        folder = tmp_path / form
        more = {"flush.size": "2", "json.decimal.format": form}
        task = started_sink(HdfsSinkConnector, hdfs(folder, **more))
        task.put(Records.of("orders", Column.of(rows, schema), partitions=[0, 0], offsets=[0, 1]))
        [path] = folder.rglob("*.json")
        texts[form] = path.read_text()
    assert texts["NUMERIC"] == '{"price":12345678901234567890.50}\n{"price":-1.28}\n'
    assert texts["BASE64"].endswith('{"price":"gA=="}\n')  # -128 as Java's BigInteger
    more = {"format.class": "ByteArrayFormat", "flush.size": "2"}
    more |= {"format.bytearray.extension": ".raw", "format.bytearray.separator": "||"}
    task = started_sink(HdfsSinkConnector, hdfs(tmp_path / "bytes", **more))
    task.put(Records.of("orders", Column(None, [b"a", b"b"]), partitions=[0, 0], offsets=[0, 1]))
    [path] = tmp_path.rglob("*.raw")
    assert path.read_bytes() == b"a||b||"
    [column] = columns_of(task._layout.form, io.BytesIO(b"a||b||"))  # type: ignore[attr-defined]
    assert column.pylist() == [b"a", b"b"]


def test_requests_are_sent_again_as_often_as_the_setting_says() -> None:
    seen: list[str] = []

    class Busy(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            seen.append(self.path)
            self.send_response(503)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Busy)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    pauses: list[int] = []
    try:
        config = {
            "s3.bucket.name": "bucket",
            "store.url": f"http://127.0.0.1:{server.server_port}",
            "aws.access.key.id": "test",
            "aws.secret.access.key": "test",
            "format.class": "JsonFormat",
            "flush.size": "1",
            "s3.part.retries": "2",
            "s3.retry.backoff.ms": "1",
            "retry.backoff.ms": "77",
        }
        task = started_sink(S3SinkConnector, config, retry_after_ms=pauses.append)
        with pytest.raises(RetriableError):
            task.put(records(0, 1))
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert len(seen) == 3
    assert pauses == [77]


def test_a_store_is_told_how_to_encrypt() -> None:
    boto3 = pytest.importorskip("boto3", reason="comes with moto")
    with running_s3("bucket") as server:
        client = boto3.client(
            "s3", endpoint_url=server.address, region_name="us-east-1",
            aws_access_key_id="test", aws_secret_access_key="test",
        )  # fmt: skip
        config = {
            "s3.bucket.name": "bucket",
            "store.url": server.address,
            "aws.access.key.id": "test",
            "aws.secret.access.key": "test",
            "s3.region": "us-east-1",
            "flush.size": "1",
            "format.class": "JsonFormat",
        }
        found = []
        for more in (
            {"s3.ssea.name": "AES256"},
            {"s3.ssea.name": "aws:kms", "s3.sse.kms.key.id": "key-1"},
        ):
            task = started_sink(S3SinkConnector, {**config, **more})
            task.put(records(0, 1))
            name = "topics/orders/partition=0/orders+0+0000000000.json"
            head = client.head_object(Bucket="bucket", Key=name)
            found.append((head.get("ServerSideEncryption"), head.get("SSEKMSKeyId")))
        assert found == [("AES256", None), ("aws:kms", "key-1")]


def test_an_s3_store_gets_the_same_files_again() -> None:
    with running_s3("bucket") as server:
        config = {
            "s3.bucket.name": "bucket",
            "store.url": server.address,
            "aws.access.key.id": "test",
            "aws.secret.access.key": "test",
            "s3.region": "us-east-1",
            "flush.size": "4",
        }
        schema = struct(name="Order", id=INT64, country=STRING, at=TIMESTAMP)
        rows = Column.of([{"id": n, "country": "DE", "at": 1000 * n} for n in range(9)], schema)
        for form in ("AvroFormat", "JsonFormat", "ParquetFormat", "CsvFormat"):
            more = {"format.class": f"io.confluent.connect.s3.format.x.{form}", "s3.compression.type": "gzip"}
            for _ in range(2):  # the second run writes the same names
                task = started_sink(S3SinkConnector, {**config, **more})
                task.put(Records.of("orders", rows, partitions=[0] * 9, offsets=list(range(9))))
                assert task.flush({}) == {WHERE: 8}
        storage = task._layout.storage  # type: ignore[attr-defined]
        names = storage.names("topics/orders")
        stem = "topics/orders/partition=0/orders+0+000000000"
        assert names == sorted(
            f"{stem}{first}{extension}"
            for first in (0, 4)
            for extension in (".avro", ".json.gz", ".snappy.parquet", ".csv.gz")
        )
        lines = gzip.decompress(content(storage, f"{stem}4.json.gz")).splitlines()
        assert json.loads(lines[0]) == {"id": 4, "country": "DE", "at": 4000}
        avro = list(fastavro.reader(io.BytesIO(content(storage, f"{stem}0.avro"))))
        assert [row["id"] for row in avro] == [0, 1, 2, 3] and avro[1]["at"].timestamp() == 1
