"""Transforms: what each does to columns with a schema and to plain values, chains, failures by index."""

from __future__ import annotations

import datetime as dt
import gzip
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from barnabas.connect.config import ConfigError
from barnabas.connect.data import (
    BOOLEAN,
    FLOAT64,
    INT8,
    INT32,
    INT64,
    OPTIONAL_STRING,
    STRING,
    TIMESTAMP,
    Column,
    Header,
    Records,
    Schema,
    array,
    struct,
)
from barnabas.connect.data.date_formats import DateFormat
from barnabas.connect.plugins.known import Kind
from barnabas.connect.transforms.chain import Step, TransformChain
from barnabas.connect.transforms.contract import Predicate, Transform, Transformed
from barnabas.connect.transforms.known import PLUGINS

BY_NAME = {known.name.rpartition(".")[2]: known for known in PLUGINS}
MOMENT = dt.datetime(2024, 2, 29, 13, 5, 9, 45000, tzinfo=dt.UTC)
MS = 1_709_211_909_045


def made(name: str, /, **config: str) -> Any:
    found = BY_NAME[name].load()()
    found.configure({key.replace("_", "."): value for key, value in config.items()})
    return found


def records(values: list[Any], schema: Schema | None, **more: Any) -> Records:
    return Records.of("t-7", Column.of(values, schema), timestamps=[MS] * len(values), **more)


def applied(transform: Transform, values: list[Any], schema: Schema | None, **more: Any) -> Transformed:
    done = TransformChain([Step("a", "A", transform)]).apply(records(values, schema, **more))
    failures = {index: failure.error for index, failure in done.failures.items()}
    if not done.parts:
        return Transformed(records([], None), [], failures)
    assert len(done.parts) == 1
    return Transformed(done.parts[0].records, done.parts[0].indices, failures)


def result(transform: Transform, values: list[Any], schema: Schema | None = None, **more: Any) -> list[Any]:
    done = applied(transform, values, schema, **more)
    assert not done.failures, done.failures
    return done.records.values.pylist()


def test_every_plugin_loads_and_carries_its_name() -> None:
    for known in PLUGINS:
        found = known.load()
        assert issubclass(found, Predicate if known.kind is Kind.PREDICATE else Transform)
        assert known.names == found.JAVA_NAMES


def test_cast_wraps_and_prints_as_java_does() -> None:
    schema = struct(a=INT64, b=FLOAT64, c=STRING, d=BOOLEAN)
    values = [
        {"a": 300, "b": 1e10, "c": "true", "d": True},
        {"a": -129, "b": 0.5, "c": "x", "d": False},
        None,
    ]
    cast = made("Cast$Value", spec="a:int8,b:string,c:boolean,d:int32")
    done = applied(cast, values, schema)
    assert done.records.values.pylist() == [
        {"a": 44, "b": "1.0E10", "c": True, "d": 1},
        {"a": 127, "b": "0.5", "c": False, "d": 0},
        None,
    ]
    assert done.records.values.schema == struct(a=INT8, b=STRING, c=BOOLEAN, d=INT32)
    plain = [{"a": 300, "b": 1e10, "c": "true"}]
    assert result(cast, plain) == [{"a": 44, "b": "1.0E10", "c": True, "d": None}]
    assert result(made("Cast$Value", spec="int32"), [3e9, float("nan"), -1.9], FLOAT64) == [2147483647, 0, -1]


def test_texts_that_are_no_numbers_fail_alone() -> None:
    cast = made("Cast$Value", spec="a:int32")
    rows = [{"a": str(number)} for number in range(100)]
    rows[17] = {"a": "x"}
    rows[80] = {"a": "99999999999"}
    for schema in (struct(a=STRING), None):
        done = applied(cast, rows, schema)
        assert sorted(done.failures) == [17, 80] and len(done.indices) == 98
        assert [row["a"] for row in done.records.values.pylist()] == done.indices
    with pytest.raises(ConfigError, match="spec"):
        made("Cast$Value", spec="a:bytes")


def test_fields_are_extracted_hoisted_and_flattened() -> None:
    schema = struct(a=struct(b=INT32, optional=True), c=STRING)
    rows = [{"a": {"b": 1}, "c": "x"}, {"a": None, "c": "y"}]
    assert result(made("ExtractField$Value", field="c"), rows, schema) == ["x", "y"]
    nested = made("ExtractField$Value", field="a.b", field_syntax_version="V2")
    assert result(nested, rows, schema) == result(nested, rows) == [1, None]
    unknown = applied(made("ExtractField$Value", field="z"), rows, schema)
    assert sorted(unknown.failures) == [0, 1] and "Unknown field" in str(unknown.failures[0])
    assert result(made("HoistField$Value", field="f"), ["x"], STRING) == [{"f": "x"}]
    flat = applied(made("Flatten$Value", delimiter="_"), rows, schema).records.values
    assert flat.pylist() == [{"a_b": 1, "c": "x"}, {"a_b": None, "c": "y"}]
    found = flat.schema
    assert found is not None and found.field("a_b") == INT32.as_optional() and found.field("c") == STRING
    assert result(made("Flatten$Value"), [{"a": {"b": 1, "l": [1]}}]) == [{"a.b": 1, "a.l": [1]}]


def test_fields_are_inserted_replaced_and_masked() -> None:
    insert = made(
        "InsertField$Value", topic_field="topic!", timestamp_field="at", static_field="s", static_value="v",
        offset_field="o",
    )  # fmt: skip
    done = applied(insert, [{"a": 1}, None], struct(a=INT32), offsets=[5, 6]).records.values
    assert done.pylist() == [{"a": 1, "topic": "t-7", "o": 5, "at": MOMENT, "s": "v"}, None]
    assert done.schema is not None and done.schema.field("topic") == STRING
    assert done.schema.field("at") == TIMESTAMP.as_optional()
    assert result(insert, [{"a": 1}]) == [{"a": 1, "topic": "t-7", "o": None, "at": MS, "s": "v"}]
    replaced = made("ReplaceField$Value", exclude="a", renames="b:c")
    for schema in (struct(a=INT32, b=STRING), None):
        assert result(replaced, [{"a": 1, "b": "x"}], schema) == [{"c": "x"}]
    mask = made("MaskField$Value", fields="a,b,l")
    rows = [{"a": 1, "b": "x", "l": [1], "k": 2}, {"a": 2, "b": None, "l": [], "k": 3}]
    hidden = [{"a": 0, "b": "", "l": [], "k": 2}, {"a": 0, "b": None, "l": [], "k": 3}]
    for schema in (struct(a=INT32, b=OPTIONAL_STRING, l=array(INT32), k=INT32), None):
        assert result(mask, rows, schema) == hidden
    given = made("MaskField$Value", fields="a", replacement="7")
    assert result(given, [{"a": 1}], struct(a=INT32)) == result(given, [{"a": 1}]) == [{"a": 7}]


def test_keys_come_from_values() -> None:
    to_key = made("ValueToKey", fields="a")
    done = applied(to_key, [{"a": 1, "b": "x"}, None], struct(a=INT32, b=STRING))
    assert done.records.keys.pylist() == [{"a": 1}] and list(done.failures) == [1]
    name = made("SetSchemaMetadata$Value", schema_name="N", schema_version="3")
    schema = applied(name, [{"a": 1}], struct(a=INT32)).records.values.schema
    assert schema == struct(name="N", version=3, a=INT32)


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("string", "2024-02-29 13:05:09.045"),
        ("unix", MS),
        ("Date", MOMENT.date()),
        ("Time", MOMENT.time()),
        ("Timestamp", MOMENT),
    ],
)
def test_times_are_converted_between_all_forms(target: str, expected: Any) -> None:
    pattern = "yyyy-MM-dd HH:mm:ss.SSS"
    convert = made("TimestampConverter$Value", field="t", target_type=target, format=pattern)
    for value, schema in ((MOMENT, TIMESTAMP), (MS, INT64), ("2024-02-29 13:05:09.045", STRING)):
        assert result(convert, [{"t": value}], struct(t=schema)) == [{"t": expected}]
        assert result(convert, [{"t": value}]) == [{"t": expected}]


def test_precisions_round_towards_zero_and_saturate() -> None:
    seconds = made("TimestampConverter$Value", target_type="unix", unix_precision="seconds")
    assert result(
        seconds, [MOMENT, dt.datetime(1969, 12, 31, 23, 59, 58, 500000, tzinfo=dt.UTC)], TIMESTAMP
    ) == [
        MS // 1000,
        -1,
    ]
    bad = made("TimestampConverter$Value", target_type="unix", format="yyyy")
    assert list(applied(bad, ["2024", "soon", "1970"], STRING).failures) == [1]


def test_patterns_of_dates_parse_what_they_print() -> None:
    times = pa.array([MOMENT, None, dt.datetime(1999, 12, 1, 0, 30, tzinfo=dt.UTC)], TIMESTAMP.arrow)
    printed = {
        "yyyyMMdd'T'HHmmss.SSS": "20240229T130509.045",
        "EEE, d MMM yyyy hh:mm:ss a Z": "Thu, 29 Feb 2024 01:05:09 PM +0000",
        "yy/D k 'o''clock'": "24/60 13 o'clock",
        "yyyy-MM-dd'T'HH:mm:ss.SSSX": "2024-02-29T13:05:09.045Z",
    }
    for pattern, text in printed.items():
        format = DateFormat(pattern)
        texts = format.texts(times)
        assert texts[0].as_py() == text and texts[1].as_py() is None
        assert format.texts(format.times(texts)).to_pylist() == texts.to_pylist()
    assert DateFormat("yyyy-MM-dd").times(pa.array(["2024-13-32 rest"]))[0].as_py().date() == dt.date(
        2025, 2, 1
    )
    with pytest.raises(ValueError, match="Illegal pattern character"):
        DateFormat("yyyy-QQ")


@pytest.mark.parametrize(
    ("pattern", "of_python"),
    [
        ("yyyy-MM-dd HH:mm:ss", "%Y-%m-%d %H:%M:%S"),
        ("yyyy-MM-dd'T'HH:mm:ssXXX", "%Y-%m-%dT%H:%M:%SZ"),
        ("ddMMyyyy-", "%d%m%Y-"),
        ("'at 'HH:mm, 'year' yyyy", "at %H:%M, year %Y"),
    ],
)
def test_common_patterns_are_cut_out_of_arrows_text(pattern: str, of_python: str) -> None:
    rng = random.Random(pattern)
    moments = [
        dt.datetime(1970, 1, 1) + dt.timedelta(seconds=rng.randint(-(10**9), 10**11)) for _ in range(99)
    ]
    times = pa.array([*moments, None], pa.timestamp("ms"))
    format = DateFormat(pattern)
    assert format.texts(times).to_pylist() == [*(each.strftime(of_python) for each in moments), None]
    far = pa.array([253_402_300_800_000]).cast(pa.timestamp("ms"))  # the year 10000
    assert "10000" in format.texts(far)[0].as_py()


def test_weeks_and_eras_are_written_as_java_writes_them() -> None:
    """Each text was printed by Java 17's SimpleDateFormat in en_US."""
    printed = {
        "2024-12-28": "AD 2024 24 52 52 4 4 Dec",
        "2024-12-29": "AD 2025 25 1 01 5 5 Dec",
        "2024-12-31": "AD 2025 25 1 01 5 5 Dec",
        "2025-01-01": "AD 2025 25 1 01 1 1 Jan",
        "2025-01-04": "AD 2025 25 1 01 1 1 Jan",
        "2025-01-05": "AD 2025 25 2 02 2 1 Jan",
        "2023-01-01": "AD 2023 23 1 01 1 1 Jan",
        "2022-12-31": "AD 2022 22 53 53 5 5 Dec",
        "2021-08-31": "AD 2021 21 36 36 5 5 Aug",
        "1965-02-28": "AD 1965 65 10 10 5 4 Feb",
    }
    times = pa.array([dt.datetime.fromisoformat(day) for day in printed], pa.timestamp("ms", "UTC"))
    format = DateFormat("G YYYY YY w ww W F LLL")
    assert dict(zip(printed, format.texts(times).to_pylist(), strict=True)) == printed
    assert DateFormat("yyyy GG").times(pa.array(["2024 AD"]))[0].as_py().year == 2024
    timed = made("TimestampRouter", topic_format="${topic}-${timestamp}", timestamp_format="YYYY-'W'ww")
    assert applied(timed, ["a"], STRING).records.topics.to_pylist() == ["t-7-2024-W09"]


def test_dates_of_any_fields_are_read_as_java_reads_them() -> None:
    """`DatesOracle.java` printed patterns, texts and times; fields contradict each other or are no days."""
    path = Path(__file__).with_name("dates_of_java.jsonl.gz")
    wrong = []
    for line in gzip.decompress(path.read_bytes()).decode().splitlines():
        pattern, text, wanted = json.loads(line)
        read = DateFormat(pattern).times(pa.array([None, text])).cast(pa.int64()).to_pylist()
        if read != [None, wanted]:
            wrong.append((pattern, text, read, wanted))
    assert not wrong


def test_a_day_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match="'Xyz' is no day of the week"):
        DateFormat("E dd MMM yyyy").times(pa.array(["Xyz 05 Jan 2020"]))


def test_topics_are_renamed() -> None:
    router = made("RegexRouter", regex="(t)-(?<n>.*)", replacement="x$1_${n}\\$")
    assert applied(router, ["a"], STRING).records.topics.to_pylist() == ["xt_7$"]
    part = made("RegexRouter", regex="t", replacement="x")
    assert applied(part, ["a"], STRING).records.topics.to_pylist() == ["t-7"]
    timed = made("TimestampRouter", topic_format="${topic}.${timestamp}", timestamp_format="yyyy-MM")
    assert applied(timed, ["a"], STRING).records.topics.to_pylist() == ["t-7.2024-02"]


def test_headers_are_inserted_dropped_and_taken_from_fields() -> None:
    given = [(Header("a", 1), Header("b", 2)), ()]
    drop = applied(made("DropHeaders", headers="a"), ["x", "y"], STRING, headers=given).records
    assert drop.headers == [(Header("b", 2),), ()]
    insert = applied(made("InsertHeader", header="h", value_literal="12"), ["x"], STRING).records
    assert insert.headers == [(Header("h", 12, INT8),)]
    move = made("HeaderFrom$Value", fields="a", headers="h", operation="move")
    done = applied(move, [{"a": 1, "b": "x"}], struct(a=INT32, b=STRING)).records
    assert done.headers == [(Header("h", 1, INT32),)] and done.values.pylist() == [{"b": "x"}]
    twice = made("HeaderFrom$Value", fields="a,a,b", headers="g,h,g", operation="move")
    done = applied(twice, [{"a": 1, "b": "x"}], struct(a=INT32, b=STRING)).records
    assert done.headers == [(Header("g", 1, INT32), Header("h", 1, INT32), Header("g", "x", STRING))]


def test_a_chain_keeps_the_order_and_splits_by_schema() -> None:
    chain = TransformChain(
        [
            Step("drop", "drop", made("Filter"), made("RecordIsTombstone")),
            Step("hoist", "hoist", made("HoistField$Value", field="f"), made("HasHeaderKey", name="h")),
            Step("cast", "cast", made("Cast$Value", spec="f:int32"), made("HasHeaderKey", name="h")),
        ]
    )
    headers = [(Header("h", 1),) if number in (1, 2) else () for number in range(5)]
    done = chain.apply(records(["0", "1", "x", None, "4"], STRING, headers=headers))
    assert [(part.indices, part.records.values.pylist()) for part in done.parts] == [
        ([0], ["0"]),
        ([1], [{"f": 1}]),
        ([4], ["4"]),
    ]
    assert list(done.failures) == [2] and done.failures[2].step.alias == "cast"
    kept = TransformChain(
        [Step("drop", "drop", made("Filter"), made("TopicNameMatches", pattern="t-.*"), negate=True)]
    )
    assert len(kept.apply(records(["0"], STRING)).parts) == 1
