"""Ids of schemas are found where serializers write them, in payloads and in headers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol import ErrorCode
from barnabas.records.batch import BATCH_OVERHEAD
from barnabas.records.record import Headers, Record, build_batch
from barnabas.records.schema_ids import SchemaIds, SchemaRules, check_schema_ids
from barnabas.records.validation import (
    AppendRules,
    NeedsSchemas,
    NeedsThread,
    RecordsRejected,
    Validation,
    validate_produce,
)

NOW_MS = 1_700_000_000_000
KNOWN, OTHER = b"\0\0\0\0\7", b"\0\0\0\0\1"
GUID = b"\1" + bytes(range(16))


def ids(*, is_key: bool = False) -> SchemaIds:
    found = SchemaIds("t", "TopicNameStrategy", is_key=is_key)
    found.accepted = frozenset([KNOWN, GUID])
    return found


VALUES = AppendRules(schemas=SchemaRules(None, ids()))


def batch(*records: Record) -> memoryview:
    return memoryview(build_batch([one._replace(timestamp=NOW_MS) for one in records]))


def refused(*records: Record, rules: AppendRules = VALUES) -> list[int]:
    with pytest.raises(RecordsRejected) as found:
        validate_produce(batch(*records), rules, 12, NOW_MS)
    assert found.value.code == ErrorCode.INVALID_RECORD
    return [index for index, _ in found.value.record_errors]


@pytest.mark.parametrize(
    ("value", "headers"),
    [
        (KNOWN, ()),
        (KNOWN + b"payload", ()),
        (GUID + b"payload", ()),
        (None, ()),
        (b"payload", (("__value_schema_id", GUID),)),
        (b"payload", (("__key_schema_id", b"?"), ("__value_schema_id", KNOWN + b"more"))),
        (b"", (("__value_schema_id", GUID),)),
        (KNOWN, (("__key_schema_id", OTHER),)),
    ],
)
def test_known_ids_are_accepted_in_both_places(value: bytes | None, headers: Headers) -> None:
    validate_produce(batch(Record(value=value, headers=headers)), VALUES, 12, NOW_MS)


@pytest.mark.parametrize(
    ("value", "headers"),
    [
        (b"", ()),
        (b"\0", ()),
        (KNOWN[:-1], ()),
        (GUID[:-1], ()),
        (b"\2" + KNOWN[1:], ()),
        (b"{}", ()),
        (KNOWN, (("__value_schema_id", None),)),
        (KNOWN, (("__value_schema_id", b""),)),
        (KNOWN, (("__value_schema_id", b"\3"),)),
    ],
)
def test_records_that_name_nothing_are_refused(value: bytes, headers: Headers) -> None:
    assert refused(Record(value=KNOWN), Record(value=value, headers=headers)) == [1]


def test_an_id_that_ends_in_the_next_field_is_none() -> None:
    # The value has four bytes; a reader that takes five would find the id.
    assert refused(Record(value=KNOWN[:4], headers=(("a", b"b"),) * 7)) == [0]


def test_unknown_ids_are_collected_for_the_registry() -> None:
    keys, values = ids(is_key=True), ids()
    rules = AppendRules(schemas=SchemaRules(keys, values))
    sent = batch(
        Record(key=OTHER, value=OTHER), Record(key=KNOWN, value=b"\0\0\0\0\2"), Record(key=None, value=OTHER)
    )
    before = bytes(sent)
    with pytest.raises(NeedsSchemas) as needed:
        validate_produce(sent, rules, 12, NOW_MS)
    assert needed.value.unknown == {keys: {OTHER}, values: {OTHER, b"\0\0\0\0\2"}}
    assert bytes(sent) == before


def test_a_missing_id_is_refused_until_it_is_asked_about_again() -> None:
    values = ids()
    values.missing = {OTHER: NOW_MS + 1}
    rules = AppendRules(schemas=SchemaRules(None, values))
    assert refused(Record(value=OTHER), rules=rules) == [0]
    with pytest.raises(NeedsSchemas):
        validate_produce(batch(Record(value=OTHER)), rules, 12, NOW_MS + 1)


@pytest.mark.parametrize(
    "rules",
    [
        VALUES,
        replace(VALUES, validation=Validation.NONE),
        replace(VALUES, validation=Validation.STRICT),
        replace(VALUES, append_time=True),
        replace(VALUES, compacted=True),
    ],
)
def test_no_rule_takes_a_shortcut_around_ids(rules: AppendRules) -> None:
    good = Record(key=b"k", value=KNOWN)
    validate_produce(batch(good), rules, 12, NOW_MS)
    assert refused(Record(key=b"k", value=b"x" * 100), rules=rules) == [0]


def test_large_batches_need_a_thread() -> None:
    sent = batch(*[Record(value=KNOWN)] * 1000)
    with pytest.raises(NeedsThread):
        validate_produce(sent, VALUES, 12, NOW_MS)
    pauses = []
    validate_produce(sent, VALUES, 12, NOW_MS, "", lambda: pauses.append(1))
    assert len(pauses) > 5


def test_a_topic_without_the_rule_is_validated_as_before() -> None:
    plain = AppendRules()
    assert plain.schemas is None
    assert plain.header_suffices
    assert AppendRules(append_time=True).only_stamps
    assert not VALUES.header_suffices


@given(st.lists(st.tuples(st.binary(max_size=20), st.lists(st.binary(max_size=18), max_size=2)), max_size=5))
def test_any_bytes_are_judged(found: list[tuple[bytes, list[bytes]]]) -> None:
    records = [
        Record(value=value, headers=tuple(("__value_schema_id", content) for content in headers))
        for value, headers in found
    ]
    if not records:
        return
    data = bytes(batch(*records)[BATCH_OVERHEAD:])
    result = check_schema_ids(data, len(records), SchemaRules(None, ids()), NOW_MS, None)
    for index, record in enumerate(records):
        place = record.headers[0][1] if record.headers else record.value
        assert place is not None
        is_named = len(place) >= {0: 5, 1: 17}.get(place[0] if place else -1, 99)
        assert (index in dict(result.errors)) == (not is_named)
