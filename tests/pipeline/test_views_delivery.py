"""Large parts travel as files of the lake: the store reads them once, whatever is killed, and none stays."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import fs, parquet

from barnabas.pipeline.lake.tables import Lake
from barnabas.pipeline.serving.http import wire
from barnabas.pipeline.serving.store.opening import open_store
from barnabas.pipeline.serving.store.query import Query
from barnabas.pipeline.views import delivery
from barnabas.pipeline.views.layers import Layer, Views
from barnabas.pipeline.views.part_files import LakeParts, PartFolder, PartsMissing
from barnabas.pipeline.views.parts import BatchPart, PartFiles, SpeedPart
from pipeline.test_views_layers import REVENUE, Shop, order
from pipeline.views_model import LAYOUT, Order, batch_part, by_key, committed, expected, speed_part

pytestmark = pytest.mark.timeout(600)
ORDERS = [Order(str(number), f"shop {number % 7}", number, "ann", "new", number) for number in range(20)]


def in_files(
    lake: LakeParts, rows: pa.Table, kind: str, after: int, upto: int, made_ms: int = 0
) -> PartFiles:
    """The rows as executors write them, in two files."""
    made = made_ms or int(time.time() * 1000)
    folder = f"revenue/{kind}-{after}-{upto}-{made}-0a"
    place = Path(lake.root) / folder
    place.mkdir(parents=True)
    half = rows.num_rows // 2
    parquet.write_table(rows.slice(0, half), place / "part-0.parquet", use_deprecated_int96_timestamps=True)
    parquet.write_table(rows.slice(half), place / "part-1.parquet")
    return PartFiles(folder, ("part-0.parquet", "part-1.parquet"), rows.num_rows)


def test_a_part_in_files_is_merged_as_one_that_travels_inline(tmp_path: Path) -> None:
    lake = LakeParts(Lake(str(tmp_path)))
    store = open_store("duckdb", name="shop", folder=tmp_path, lake=lake)
    batch = batch_part(1, ORDERS[:12])
    speed = speed_part(1, 2, ORDERS[12:], [ORDERS[3].shop], ORDERS)
    files = in_files(lake, batch.rows, "batch", -1, 1)
    sent = wire.unpack_batch(wire.pack_batch(BatchPart(LAYOUT, batch.horizon, files)))
    assert sent.rows == files
    store.put_batch(sent)
    more = in_files(lake, speed.rows, "speed", 1, 2)
    store.put_speed(wire.unpack_speed(wire.pack_speed(SpeedPart(LAYOUT, 1, speed.upto, more))))
    assert by_key(store.answer(Query("revenue")).rows.to_pylist()) == expected(ORDERS)
    with pytest.raises(PartsMissing, match="is not a file of a part"):
        store.put_batch(BatchPart(LAYOUT, committed(3), PartFiles("../x", ("part-0.parquet",), 1)))
    with pytest.raises(PartsMissing, match="are gone"):
        store.put_batch(BatchPart(LAYOUT, committed(3), PartFiles(files.folder, ("part-7.parquet",), 1)))
    assert by_key(store.answer(Query("revenue")).rows.to_pylist()) == expected(ORDERS)
    store.close()


def test_files_of_killed_processes_are_deleted_when_no_store_will_read_them(tmp_path: Path) -> None:
    lake = LakeParts(Lake(str(tmp_path)))
    store = open_store("duckdb", name="shop", folder=tmp_path, lake=lake)
    store.put_batch(batch_part(5, ORDERS))
    rows = batch_part(1, ORDERS).rows
    old = int(time.time() * 1000) - 2 * 24 * 3600 * 1000
    for kind, upto, made in (
        ("batch", 4, 0),
        ("batch", 5, 0),
        ("speed", 4, 0),
        ("speed", 6, 0),
        ("speed", 9, old),
    ):
        in_files(lake, rows, kind, 3, upto, made)
    assert lake.sweep("revenue", store.state("revenue")) == 3
    left = sorted(path.name for path in (Path(lake.root) / "revenue").iterdir())
    kinds = [(found.kind, found.upto) for name in left if (found := PartFolder.parse(name))]
    assert kinds == [("batch", 5), ("speed", 6)]
    assert lake.sweep("another", None) == 0
    store.close()


@pytest.fixture
def s3() -> Iterator[dict[str, str]]:
    moto = pytest.importorskip("moto.server", reason="needs moto")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    settings = {
        "spark.hadoop.fs.s3a.endpoint": f"http://{host}:{port}",
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.access.key": "test",
        "spark.hadoop.fs.s3a.secret.key": "test",
    }
    yield settings
    server.stop()


def test_files_of_a_lake_behind_a_url_are_read_and_deleted(s3: dict[str, str], tmp_path: Path) -> None:
    lake = LakeParts(Lake("s3a://shop/lake"), s3)
    maker = fs.S3FileSystem(
        endpoint_override=s3["spark.hadoop.fs.s3a.endpoint"],
        access_key="test",
        secret_key="test",
        allow_bucket_creation=True,
    )
    maker.create_dir("shop")
    files: Any = lake._files
    folder = "revenue/batch--1-1-1-0a"
    rows = batch_part(1, ORDERS).rows
    parquet.write_table(rows, f"shop/lake/_barnabas/parts/{folder}/part-0.parquet", filesystem=files)
    store = open_store("duckdb", name="shop", folder=tmp_path, lake=lake)
    store.put_batch(BatchPart(LAYOUT, committed(1), PartFiles(folder, ("part-0.parquet",), rows.num_rows)))
    assert by_key(store.answer(Query("revenue")).rows.to_pylist()) == expected(ORDERS)
    assert lake.sweep("revenue", store.state("revenue")) == 1  # it is older than a day
    assert lake.sweep("revenue", store.state("revenue")) == 0
    store.close()


class Killed(BaseException):
    """The process ends here: nothing after it runs, not even what cleans up."""


class Dying:
    """A store whose client dies before a part arrives, or after it is stored."""

    def __init__(self, store: Any, *, stores: bool) -> None:
        self._store = store
        self._stores = stores

    def _put(self, put: Callable[[Any], Any], part: Any) -> Any:
        if self._stores:
            put(part)
        raise Killed

    def put_speed(self, part: Any) -> Any:
        return self._put(self._store.put_speed, part)

    def put_batch(self, part: Any) -> Any:
        return self._put(self._store.put_batch, part)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def files_of(shop: Shop) -> list[Path]:
    return list(Path(shop.lake).glob("_barnabas/parts/revenue/*/*.parquet"))


@pytest.mark.long
def test_executors_write_large_parts_and_kills_leave_no_row_twice(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "INLINE_ROWS_MAX", 0)
    shop = Shop(spark, tmp_path, REVENUE)
    orders = [order(1), order(2, None, 5), order(3, "rome", -3, minute=9)]
    shop.add(*orders)
    shop.views.catch_up("revenue")
    shop.check(orders)
    assert files_of(shop) == []
    number = 10
    for step in ("catch_up", "refresh"):
        for stores in (False, True):
            number += 1
            orders.append(order(number, "rome", number))
            shop.add(orders[-1])
            shop.change("UPDATE {orders} SET amount = amount + 1 WHERE order_id = 'o1'")
            orders[0] = order(1, amount=orders[0].amount + 1)
            with monkeypatch.context() as patch, pytest.raises(Killed):
                patch.setattr(delivery.Delivery, "done", lambda self, rows: None)  # a killed process does not
                dying: Any = Dying(shop.store, stores=stores)
                getattr(Views(spark, shop.pipeline, dying), step)("revenue")
            assert files_of(shop)
            views = Views(spark, shop.pipeline, shop.store)
            assert views.catch_up("revenue").layer in (Layer.SPEED, Layer.NONE)
            shop.check(orders)
    shop.add(order(99))
    orders.append(order(99))
    last = Views(spark, shop.pipeline, shop.store)
    last.refresh("revenue")
    last.refresh("revenue")
    shop.check(orders)
    assert [path for path in files_of(shop) if "speed" in path.parent.name] == []
    assert len({path.parent for path in files_of(shop)}) <= 1  # of the current horizon: deleted with the next
    shop.store.close()
