"""A tiny round of the benchmark on our broker alone: it completes and reports; times do not matter."""

from pathlib import Path

import pytest
from bench.__main__ import main
from bench.rounds import Comparison, Result
from bench.rows import ROWS

from bench import generator, loads, report


@pytest.fixture(scope="module")
def results() -> dict[str, Result]:
    names = ["produce-880k", "produce-15k", "produce-pipelined", "produce-64", "produce-rest", "fetch"]
    names += ["produce-15k-v7", "produce-pipelined-v7", "produce-rest-v7", "produce-15k-4"]
    names += ["produce-idempotent", "produce-together"]
    names += ["latency-p50", "latency-p99", "start", "memory-rest", "partitions-create", "partitions-restart"]
    found = Comparison(loads.TINY, 1, lambda _: None, alone="barnabas").run(names)
    assert [result.row.name for result in found] == [name for name in ROWS if name in names]
    return {result.row.name: result for result in found}


def test_every_requested_row_has_a_value_of_our_broker_and_none_of_apache_kafka(
    results: dict[str, Result],
) -> None:
    assert all(len(result.ours) == 1 and result.ours[0] > 0 for result in results.values())
    assert not any(result.theirs for result in results.values())


def test_the_same_load_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generator, "compiled", lambda: None)
    names = ["produce-880k", "produce-pipelined", "produce-64", "produce-rest"]
    found = Comparison(loads.TINY, 1, lambda _: None, alone="barnabas").run(names)
    assert [result.row.name for result in found] == names
    assert all(result.ours[0] > 0 and result.limit is None for result in found)


def compared(name: str, ours: list[float], theirs: list[float]) -> Result:
    return Result(ROWS[name], ours, theirs)


def test_the_ratio_is_the_median_of_the_rounds_and_is_compared_with_the_floor() -> None:
    more = compared("produce-880k", [20.0, 30.0, 90.0], [10.0, 10.0, 10.0])
    assert (more.ratio, more.holds) == (3.0, True)
    less = compared("latency-p50", [9.0, 9.0, 1.0], [10.0, 10.0, 10.0])
    assert (less.ratio, less.holds) == (0.9, False)


def test_the_page_shows_each_row_with_ratio_spread_floor_and_verdict(tmp_path: Path) -> None:
    shown = [compared("produce-880k", [20.0, 30.0], [10.0, 10.0]), compared("start", [300.0], [1000.0])]
    page = report.markdown(shown, [("processor", "two cores")], "\n## Notes\nkept\n")
    assert "| 2.50 (2.00 to 3.00) | ≥ 2 | pass |" in page
    assert "| 0.30 (0.30 to 0.30) | ≤ 0.125 | FAIL |" in page
    assert "- processor: two cores" in page
    assert page.endswith("\n## Notes\nkept\n")
    report.plot(shown, tmp_path / "plot.svg")
    assert "<svg" in (tmp_path / "plot.svg").read_text()


def test_the_error_of_an_unknown_row_lists_the_known_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["produce-9k"]) == 2
    assert "no such row: produce-9k; there are produce-880k" in capsys.readouterr().err


@pytest.mark.long
def test_the_rows_about_metrics_have_values() -> None:
    names = ["metrics-cost", "metrics-scrape"]
    found = Comparison(loads.TINY, 1, lambda _: None, alone="barnabas").run(names)
    assert [result.row.name for result in found] == names
    assert all(result.ours[0] > 0 for result in found)


@pytest.mark.long
def test_the_rows_about_acls_have_values() -> None:
    names = ["acls-produce", "acls-cost"]
    found = Comparison(loads.TINY, 1, lambda _: None, alone="barnabas").run(names)
    assert [result.row.name for result in found] == names
    assert all(result.ours[0] > 0 for result in found)
