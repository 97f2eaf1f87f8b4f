"""The comparison itself: it finds what differs, and only what is excused is excused."""

from __future__ import annotations

import re

from .comparing import differences
from .deliberate import LEDGER, reason
from .scenarios import everything

ANSWER = {"error_code": "NONE", "error_message": None, "topics": [{"name": "a"}]}


def compare(
    ours: dict[str, object], request: str = "METADATA v9: a topic", name: str = "describing.x"
) -> str:
    return differences(name, [{"request": request, "answer": ANSWER}], [{"request": request, "answer": ours}])


def test_equal_answers_are_equal() -> None:
    assert compare(dict(ANSWER)) == ""


def test_a_field_that_differs_is_named_with_both_values() -> None:
    found = compare(ANSWER | {"topics": [{"name": "b"}]})
    assert '.topics[0].name: Apache Kafka "a", ours "b"' in found


def test_a_missing_field_a_missing_answer_and_a_longer_list_are_differences() -> None:
    assert "<absent>" in compare({"error_code": "NONE", "error_message": None})
    assert "topics" in compare(ANSWER | {"topics": []})
    assert "1 answers in the reference, 0 here" in differences("x.y", [{"request": "r", "answer": {}}], [])


def test_more_words_about_an_error_are_none() -> None:
    assert compare(ANSWER | {"error_message": "<words>"}) == ""


def test_the_ledger_excuses_its_own_requests_only() -> None:
    assert reason("settings.wrong_changes", "INCREMENTAL_ALTER_CONFIGS v0: operation 9") is not None
    assert reason("settings.wrong_changes", "INCREMENTAL_ALTER_CONFIGS v0: not a number") is None
    names = set(everything())
    for where, _, _ in LEDGER:
        assert any(re.fullmatch(where, name) for name in names), where
