"""The report is one page that needs nothing beside it and shows what the timeline says."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

pytest.importorskip("sqlglot", reason="needs the extra `pipeline`")

from barnabas.engine.timeline import Entry, Kind, State, Timeline
from barnabas.pipeline.observe import plots
from barnabas.pipeline.observe.report import Facts, TableFacts, ViewFacts, page
from barnabas.pipeline.observe.report_facts import facts_of

from .shop_pipeline import shop

VOID = {"meta", "line", "rect", "circle", "path", "polyline", "polygon", "i", "br"}


class Balance(HTMLParser):
    """Every element that is opened is closed, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.links += [value or "" for name, value in attributes if name in ("src", "href")]
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Closed at once."""

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def filled(lake: Path) -> Facts:
    pipeline = shop(lake)
    timeline = Timeline(lake / "_barnabas")
    for number in range(5):
        at = 1_700_000_000.0 + number
        entry = Entry(Kind.SOURCE, "orders", str(number), at, at + 0.5, 100, 90, 4, 6, bytes_in=9000, lag=3)
        timeline.record(entry)
        timeline.record(Entry(Kind.VIEW_SPEED, "revenue", str(number), at, at + 0.1, 90, 3, delay_s=0.8))
    timeline.record(Entry(Kind.PROCESS, "batch", "x", 1.0, 2.0, error="killed by <signal 9>"))
    timeline.set_state(Kind.SOURCE, "orders", State.RUNNING)
    view = ViewFacts("revenue", ["shop", "orders"], [("<berlin>", 450)], 1, "up to 0.8 s ago")
    return facts_of(pipeline, [view])


def test_the_page_is_self_contained(tmp_path: Path) -> None:
    text = page(filled(tmp_path))
    parser = Balance()
    parser.feed(text)
    assert parser.open == []
    assert parser.links == []
    assert "url(" not in text
    assert "prefers-color-scheme: dark" in text


def test_the_page_shows_the_numbers_of_the_timeline(tmp_path: Path) -> None:
    text = page(filled(tmp_path))
    assert "<strong>500</strong>" in text  # rows in
    assert "<strong>30</strong>" in text  # quarantined
    assert text.count("orders: 100 at") == 5  # a mark for each batch
    assert "&lt;berlin&gt;" in text
    assert "killed by &lt;signal 9&gt;" in text
    assert 'aria-label="lineage of shop"' in text


def test_an_empty_pipeline_has_a_page_too(tmp_path: Path) -> None:
    text = page(facts_of(shop(tmp_path)))
    assert "nothing came yet" in text


def test_tables_of_the_lake_are_shown_with_their_sizes(tmp_path: Path) -> None:
    table = TableFacts("raw", "orders", 1234, 3, 5_000_000, 7)
    text = page(Facts("shop", "lake", 0.0, tables=[table]))
    assert "<td>1,234</td><td>3</td><td>5.0 MB</td><td>7</td>" in text


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (0.25, "0.25"), (12, "12"), (1234, "1,234"), (45_600, "45.6 k"), (7e6, "7 M")],
)
def test_numbers_are_short(number: float, text: str) -> None:
    assert plots.short(number) == text


def test_plots_show_their_values_and_stay_inside() -> None:
    series = [plots.Series("a", [(0.0, 1.0), (10.0, 5.0), (20.0, 3.0)])]
    svg = plots.lines("label", series)
    assert "a: 5 at 00:00:10" in svg
    places = [float(each) for each in re.findall(r'c[xy]="([\d.]+)"', svg)]
    assert all(0 <= place <= plots.WIDTH for place in places)
    assert plots.lines("nothing", []) == ""
