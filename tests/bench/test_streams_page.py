"""The page on streams tells how much of a backlog each side did, and what was not measured."""

from bench.streams_page import Found, Measured, Row, cells, idle_lines
from bench.streams_sides import Ran

ROW = Row("words", "word count", "words", "java", "words", 1.0)


def test_a_side_whose_time_was_over_is_counted_by_what_it_did() -> None:
    ours = Measured(10_000_000, Ran(50.0, 60.0, 20.0))
    theirs = Measured(10_000_000, Ran(100.0, 150.0, 10.0, share=0.25))
    found = cells(Found(ROW, ours, theirs))
    assert found[2:6] == ("200.0", "25.0", "8.00", "8.00")
    assert found[-2:] == ("pass", "100% of 10 million in 50 s; 25% of 10 million in 100 s")


def test_a_row_with_a_problem_says_what_was_not_measured() -> None:
    theirs = Measured(5_000, Ran(10.0, 1.0, 1.0))
    found = cells(Found(ROW, None, theirs, "the application ended"))
    assert found[2:5] == ("-", "0.5", "not measured: the application ended")


def test_a_further_idle_query_costs_the_difference() -> None:
    idle = {"idle-1": 0.01, "idle-1 MB": 500.0, "idle-50": 0.059, "idle-50 MB": 549.0}
    assert idle_lines(idle)[-1] == "Each further query takes 0.10 % of a processor and 1.0 MB."
