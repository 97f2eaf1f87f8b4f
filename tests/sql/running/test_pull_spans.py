"""Spans of bytes have every row that a pull query asks for."""

from __future__ import annotations

import random
from typing import Any

import pytest

from barnabas.plans.windows import Windowed
from barnabas.sql.analysis.work import Bound, PullRead, Range, TopicRows
from barnabas.sql.formats.registries import RegistryPlace
from barnabas.sql.formats.serdes import ColumnsSerde
from barnabas.sql.metastore.schemas import Column, Format, Schema, WindowedKeys
from barnabas.sql.running.pull_spans import WHOLE, Span, spans_of, windows_of
from barnabas.sql.running.pulls import in_windows, is_within, windowed
from barnabas.sql.syntax.statements import Role
from barnabas.sql.types.sql_types import BIGINT, DOUBLE, INTEGER, STRING, SqlType

TEXTS = ("", "a", "a\x00", "a\x00b", "ab", "b", "é", "\uffff", "\U0001f600", "zz")
NUMBERS = (-(2**31), -70, -1, 0, 1, 5, 70, 2**31 - 1)
WINDOWS = (None, WindowedKeys("TUMBLING", 10), WindowedKeys("SESSION"))


def table(kind: SqlType, window: WindowedKeys | None, form: str = "KAFKA") -> TopicRows:
    schema = Schema((Column("ID", kind, Role.KEY),))
    return TopicRows("T", True, "t", schema, Format(form), Format("JSON"), window)


def bound(rng: random.Random, values: Any) -> Bound | None:
    return rng.choice([None, Bound(rng.choice(values), rng.random() < 0.5)])


def is_in(data: bytes, span: Span) -> bool:
    return (span[0] is None or data >= span[0]) and (span[1] is None or data < span[1])


def span_of(read: PullRead, key: bytes) -> Span:
    return (key, key + b"\x00") if read.table.window is None else windows_of(read, key)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize(("kind", "values"), [(STRING, TEXTS), (INTEGER, NUMBERS), (BIGINT, NUMBERS)])
def test_spans_have_all_rows_and_little_more(
    kind: SqlType, values: tuple[Any, ...], window: WindowedKeys | None
) -> None:
    rows = table(kind, window)
    keys = ColumnsSerde(rows.key_format, rows.schema.key, True, RegistryPlace())
    write = keys.serializer("t", True)
    stored: dict[bytes, Any] = {}
    for value in values:
        if window is None:
            stored[write((value,))] = (value,)
            continue
        for start in range(0, 100, 10):
            key = Windowed((value,), start, start + 10)
            stored[windowed(keys, window).serializer("t", True)(key)] = key
    rng = random.Random(f"{kind} {window}")
    for _ in range(300):
        some = None if rng.random() < 0.5 else tuple((rng.choice(values),) for _ in range(2))
        key_range = Range(bound(rng, values), bound(rng, values)) if some is None else None
        starts, ends = (Range(bound(rng, range(0, 120, 5)), bound(rng, range(0, 120, 5))) for _ in range(2))
        read = PullRead(rows, (), None, some, key_range, starts, ends)

        def is_wanted(key: Any, read: PullRead = read) -> bool:
            plain = key.key if isinstance(key, Windowed) else key
            if isinstance(key, Windowed) and not in_windows(read, key):
                return False
            if read.keys is not None:
                return plain in read.keys
            return read.key_range is None or is_within(read.key_range, plain[0])

        if some is None:
            found = [data for span in spans_of(read) for data in stored if is_in(data, span)]
            assert len(found) == len(set(found))
        else:
            found = [data for key in some for data in stored if is_in(data, span_of(read, write(key)))]
        wanted = {data for data, key in stored.items() if is_wanted(key)}
        assert wanted <= set(found), read
        if window is not None and window.kind == "TUMBLING" and some is not None and kind is not STRING:
            assert wanted == set(found), read


@pytest.mark.parametrize(("kind", "form"), [(DOUBLE, "KAFKA"), (STRING, "JSON"), (BIGINT, "AVRO")])
def test_keys_in_another_order_are_all_read(kind: SqlType, form: str) -> None:
    read = PullRead(table(kind, None, form), (), key_range=Range(Bound(1, True), None))
    assert spans_of(read) == [WHOLE]
