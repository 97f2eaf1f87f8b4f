"""One partition of a view, without brokers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from barnabas.plans.stores import StoreKind, StoreSpec
from barnabas.streams.serdes.formats import LONG, STRING
from barnabas.streams.spark.task_port import InputRecord
from barnabas.streams.views.partition_view import PartitionView

SPEC = StoreSpec("s", StoreKind.WINDOW, STRING, LONG, retention_ms=10_000, window_size_ms=10, page_ms=80)


def view(spec: StoreSpec, path: Path) -> PartitionView:
    return PartitionView(spec, "app", path, end_of=lambda start: start + 10, finish=None)


def test_a_view_whose_pages_are_laid_out_anew_keeps_them(tmp_path: Path) -> None:
    """The folder is of an application whose windows had another size."""
    path = tmp_path / "s-0.sqlite"
    before = view(replace(SPEC, page_ms=20), path)
    before.begin("topic", 0)
    records = [
        InputRecord(
            b"a" + start.to_bytes(8, "big") + bytes(4), start.to_bytes(8, "big"), start, (), 0, start // 10
        )
        for start in range(0, 1000, 10)
    ]
    before.apply(records, 100)
    before.close()
    for _ in range(2):
        after = view(SPEC, path)
        assert (after.topic_id, after.position) == ("topic", 100)
        assert len(after.windows(b"a", 0, 5_000)) == 100
        after._forget()
        assert len(after.all_windows(None, None, 0, 5_000, None)) == 100
        after.close()
