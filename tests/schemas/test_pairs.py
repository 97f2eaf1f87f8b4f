"""Every pair of the tables is judged as the table says, in both directions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from barnabas.schemas.model import SchemaType

from .pair_tables import Pair, all_pairs, pairs_of, told


@pytest.mark.parametrize("pair", all_pairs(), ids=str)
def test_a_pair_is_judged_as_the_table_says(pair: Pair) -> None:
    old, new = pair.parsed()
    assert told(new, old, pair, pair.backward) == sorted(pair.backward), "the new schema reads old data"
    assert told(old, new, pair, pair.forward) == sorted(pair.forward), "the old schema reads new data"


@pytest.mark.parametrize("pair", all_pairs(), ids=str)
def test_a_schema_reads_its_own_data(pair: Pair) -> None:
    for schema in pair.parsed():
        again = type(schema).normalized(schema)
        assert again.incompatibilities(schema, pair.policy) == []
        assert schema.incompatibilities(again, pair.policy) == []


def test_names_of_pairs_are_different_and_json_has_hundreds_of_them() -> None:
    pairs = all_pairs()
    assert len({str(pair) for pair in pairs}) == len(pairs)
    assert len(pairs_of(SchemaType.JSON)) >= 250


def test_every_reason_has_a_message_with_its_kind_and_path_and_both_sides() -> None:
    for pair in all_pairs():
        old, new = pair.parsed()
        for reason in new.incompatibilities(old, pair.policy):
            assert reason.kind in reason.text
            assert reason.path in reason.text
            assert "<reader>" not in reason.printed(), reason


@pytest.mark.parametrize(
    ("backward", "forward", "fine"),
    [
        ((), (), {"NONE", "BACKWARD", "FORWARD", "FULL"}),
        (("X",), (), {"NONE", "FORWARD"}),
        ((), ("X",), {"NONE", "BACKWARD"}),
        (("X",), ("X",), {"NONE"}),
    ],
)
def test_verdicts_of_levels_follow_from_both_directions(
    backward: tuple[str, ...], forward: tuple[str, ...], fine: set[str]
) -> None:
    pair = replace(pairs_of(SchemaType.JSON)[0], backward=backward, forward=forward)
    for level in ("NONE", "BACKWARD", "FORWARD", "FULL"):
        assert pair.is_compatible(level) == (level in fine)
        assert level == "NONE" or pair.is_compatible(f"{level}_TRANSITIVE") == (level in fine)
