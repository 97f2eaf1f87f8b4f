"""Duplicates that wait for the audit stay within a bound, the newest first; the mark keeps them."""

from __future__ import annotations

from barnabas.pipeline.ingest.audit_mark import AuditMark, Duplicates, WaitingDuplicates


def group(batch: int, partition: int = 0) -> Duplicates:
    return Duplicates(batch, "orders", "topic", partition, 0, 7)


def test_the_oldest_groups_are_dropped_where_too_many_wait() -> None:
    waiting = WaitingDuplicates(3)
    assert waiting.add([group(1), group(1, 1)]) == 0
    assert waiting.add([group(2), group(2, 1)]) == 1
    assert [each[::3] for each in waiting.groups] == [(1, 1), (2, 0), (2, 1)]
    assert waiting.add([group(3)] * 5) == 5
    assert [each.batch for each in waiting.groups] == [3, 3, 3]


def test_a_batch_that_is_judged_again_replaces_its_groups() -> None:
    waiting = WaitingDuplicates(10)
    waiting.add([group(1), group(2)])
    waiting.drop(2, "orders")
    waiting.add([group(2, 5)])
    assert waiting.groups == (group(1), group(2, 5))
    waiting.drop_before(2)
    assert waiting.groups == (group(2, 5),)


def test_a_mark_is_read_as_it_was_written() -> None:
    mark = AuditMark(4, (group(5), group(6)))
    assert AuditMark.of_json(mark.to_json()) == mark
    assert AuditMark.of_json(None) is None
