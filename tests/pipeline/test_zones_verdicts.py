"""Verdicts on rows are those of a plain model in Python."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from barnabas.pipeline.ingest.dedupe.key_index import KeyIndex, first_of_each
from barnabas.pipeline.ingest.judging.verdicts import Hashes, UniqueValues, judge_staging, judge_trusted
from barnabas.pipeline.spec.model import Merging

KEY = st.integers(0, 12)
ROWS = st.lists(st.tuples(KEY, st.booleans(), st.booleans(), st.integers(0, 3), KEY), max_size=30)


def hashes(keys: list[int], whole: list[bool] | None = None) -> Hashes:
    """Several keys share their first hash: the second one tells them apart."""
    first = np.array([key // 3 for key in keys], np.int64)
    second = np.array(keys, np.int64)
    return Hashes(first, second, np.array([True] * len(keys) if whole is None else whole, np.bool_))


@given(st.lists(st.lists(KEY, max_size=8), max_size=12), st.lists(KEY, max_size=10))
def test_an_index_has_what_was_added_and_nothing_else(batches: list[list[int]], asked: list[int]) -> None:
    index = KeyIndex()
    for batch in batches:
        found = hashes(batch)
        index.add(found.first, found.second)
    keys = hashes(asked)
    known = {key for batch in batches for key in batch}
    assert index.has(keys.first, keys.second).tolist() == [key in known for key in asked]
    assert len(index) == sum(map(len, batches))


@given(ROWS, st.booleans())
def test_one_row_of_each_key_is_the_first_or_the_last(
    rows: list[tuple[int, bool, bool, int, int]], last: bool
) -> None:
    keys, counts = hashes([row[0] for row in rows]), np.array([row[1] for row in rows], np.bool_)
    found = first_of_each(keys.first, keys.second, counts, last=last)
    chosen: dict[int, int] = {}
    for at, row in enumerate(rows):
        if row[1] and (last or row[0] not in chosen):
            chosen[row[0]] = at
    assert np.flatnonzero(found).tolist() == sorted(chosen.values())


@given(st.lists(ROWS, max_size=5))
def test_batches_are_judged_as_a_plain_model_judges_them(
    batches: list[list[tuple[int, bool, bool, int, int]]],
) -> None:
    """Rows: key, parsed, key without null, broken rules, a value that must be unique."""
    keys_seen: set[int] = set()
    values_taken: set[int] = set()
    index, unique = KeyIndex(), KeyIndex()
    for rows in batches:
        keys = hashes([row[0] for row in rows], [row[2] for row in rows])
        values = hashes([row[4] for row in rows])
        fine = np.array([row[1] for row in rows], np.bool_)
        broken = np.array([row[3] if row[3] < 3 else 0 for row in rows], np.int64)
        staged = judge_staging(fine, keys, Merging.INSERT_NEW, index)
        none = np.zeros(len(rows), np.bool_)
        trusted = judge_trusted(staged.staged, none, broken, {5: UniqueValues(values, unique)})
        expected_staged, expected_accepted, expected_refused = [], [], []
        for at, (key, parsed, whole, rules, value) in enumerate(rows):
            if not parsed or (whole and key in keys_seen):
                continue
            if whole:
                keys_seen.add(key)
            expected_staged.append(at)
            if (rules if rules < 3 else 0) or value in values_taken:
                expected_refused.append(at)
            else:
                values_taken.add(value)
                expected_accepted.append(at)
        assert np.flatnonzero(staged.staged).tolist() == expected_staged
        assert np.flatnonzero(trusted.accepted).tolist() == expected_accepted
        assert np.flatnonzero(trusted.refused).tolist() == expected_refused
        assert staged.duplicates.sum() == fine.sum() - len(expected_staged)
        kept = staged.staged & keys.whole
        index.add(keys.first[kept], keys.second[kept])
        claimed = trusted.claimed[5]
        unique.add(values.first[claimed], values.second[claimed])


def test_the_last_change_of_a_key_counts_and_deletes_pass_every_rule() -> None:
    keys = hashes([1, 2, 1, 2])
    fine = np.ones(4, np.bool_)
    staged = judge_staging(fine, keys, Merging.UPSERT, None)
    assert staged.staged.tolist() == [False, False, True, True]
    deletes = np.array([False, False, False, True])
    verdict = judge_trusted(staged.staged, deletes, np.array([0, 0, 1, 1]), {})
    assert verdict.accepted.tolist() == [False, False, False, True]
    assert verdict.refused.tolist() == [False, False, True, False]


def test_a_value_that_must_be_unique_may_come_again_behind_the_horizon() -> None:
    table = KeyIndex()
    taken = hashes([1, 2])
    table.add(taken.first, taken.second, np.array([100, 200]))
    values = UniqueValues(hashes([1, 2, 3]), table, np.array([300, 300, 300]), within_us=150)
    rows, none = np.ones(3, np.bool_), np.zeros(3, np.bool_)
    verdict = judge_trusted(rows, none, np.zeros(3, np.int64), {0: values})
    assert verdict.accepted.tolist() == [True, False, True]
    assert verdict.refused.tolist() == [False, True, False]
