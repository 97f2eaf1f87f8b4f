"""The plan says what a run would create, change and remove, and shows no secrets."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

pytest.importorskip("yaml", reason="needs the extra `pipeline`")

from barnabas.pipeline.file import plan
from barnabas.pipeline.file.plan import Sign

from .shop_pipeline import RULES_CHANGED, shop


def test_everything_is_new_on_an_empty_lake(tmp_path: Path) -> None:
    found = plan.changes(plan.read_applied(tmp_path), plan.described(shop(tmp_path)))
    titles = [change.title for change in found if change.sign is Sign.CREATE]
    assert titles[:4] == ["source orders", "source customers", "staging orders", "staging customers"]
    assert {"view revenue", "view countries", "refined enriched"} <= set(titles)
    assert all(change.sign is Sign.CREATE for change in found)


def test_nothing_is_left_to_do_after_a_run(tmp_path: Path) -> None:
    plan.apply(shop(tmp_path), tmp_path)
    assert plan.apply(shop(tmp_path), tmp_path) == []
    assert plan.lines([]) == ["Nothing to do: the lake is as the file says."]


def test_changes_name_their_consequences(tmp_path: Path) -> None:
    before = shop(tmp_path)
    plan.apply(before, tmp_path)
    trusted = [dataclasses.replace(before.trusted[0], rules=RULES_CHANGED), before.trusted[1]]
    after = dataclasses.replace(before, trusted=trusted, views=before.views[:1])
    found = plan.changes(plan.read_applied(tmp_path), plan.described(after))
    assert [(change.sign, change.title) for change in found] == [
        (Sign.CHANGE, "trusted orders"),
        (Sign.REMOVE, "view countries"),
    ]
    text = "\n".join(plan.lines(found))
    assert '+ {"kind": "range", "columns": ["amount"]' in text
    assert "`replay` checks old rows" in text
    assert "0 to create, 1 to change, 1 to remove." in text


def test_sql_is_compared_line_by_line(tmp_path: Path) -> None:
    before = shop(tmp_path)
    sql = "SELECT shop,\n  count(*) AS orders,\n  sum(amount) AS revenue\nFROM orders GROUP BY shop"
    views = [dataclasses.replace(before.views[0], sql=sql)]
    changed = [dataclasses.replace(before.views[0], sql=sql.replace("sum(", "max("))]
    one, other = (dataclasses.replace(before, views=each) for each in (views, changed))
    lines = plan.lines(plan.changes(plan.described(one), plan.described(other)))
    assert "      -   sum(amount) AS revenue" in lines
    assert "      +   max(amount) AS revenue" in lines


def test_secrets_are_neither_shown_nor_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", "sesame")
    plan.apply(shop(tmp_path), tmp_path)
    kept = (tmp_path / plan.FILE_NAME).read_text()
    shown = "\n".join(plan.lines(plan.changes(None, plan.described(shop(tmp_path)))))
    for text in (kept, shown):
        assert "sesame" not in text
        assert "hidden" not in text
    assert "${env:SHOP_PASSWORD}" in kept


def test_a_lake_of_another_pipeline_is_refused(tmp_path: Path) -> None:
    plan.apply(shop(tmp_path), tmp_path)
    other = dataclasses.replace(shop(tmp_path), name="other")
    with pytest.raises(plan.LakeOfAnotherPipeline, match="belongs to the pipeline 'shop', not to 'other'"):
        plan.apply(other, tmp_path)


def test_the_reach_of_a_replay_is_named_where_raw_forgets_rows(tmp_path: Path) -> None:
    before = dataclasses.replace(shop(tmp_path), retention_s={"raw": 90 * 86400.0})
    trusted = [dataclasses.replace(before.trusted[0], rules=RULES_CHANGED), before.trusted[1]]
    after = dataclasses.replace(before, trusted=trusted)
    text = "\n".join(plan.lines(plan.changes(plan.described(before), plan.described(after))))
    assert "(raw keeps 90 days: rows that it has removed stay as they are)" in text
