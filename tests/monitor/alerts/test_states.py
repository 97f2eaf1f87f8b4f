"""The states of alerts, the messages that are due, silences: without clocks and networks."""

from __future__ import annotations

from datetime import UTC, datetime, time
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.monitor.alerts.defaults import DEFAULTS
from barnabas.monitor.alerts.notices import Grouping, Notices, Route
from barnabas.monitor.alerts.rule import Finding, Rule, Severity, check_rule, labels_of
from barnabas.monitor.alerts.silences import MaintenanceWindow, Matcher, Silence, covered_by, parse_matcher
from barnabas.monitor.alerts.states import ALERTS_OF_RULE_MAX, Alert, AlertBook, State
from barnabas.monitor.checks.disk_trend import HOUR_MS, DiskTrends
from barnabas.monitor.checks.names import CHECK_NAMES


def rule(**given: object) -> Rule:
    fields: dict[str, object] = {"above": 5.0, "for_s": 10.0, "keep_s": 20.0, "good_at": 3.0, **given}
    return Rule(
        "Hot",
        "heat",
        Severity.WARNING,
        "{cluster} has {value}: {detail}",
        "the oven",
        "cool {cluster}",
        **fields,  # type: ignore[arg-type]
    )


def found(value: float, cluster: str = "a") -> list[Finding]:
    return [Finding(value, labels_of(cluster=cluster), "it burns")]


def states(changes: list[Alert]) -> list[State]:
    return [each.state for each in changes]


def test_an_alert_fires_when_its_rule_was_violated_for_long_enough() -> None:
    book = AlertBook()
    assert book.observe(rule(), found(6), 0) == []
    assert states(book.alerts()) == [State.PENDING]
    assert book.observe(rule(), found(7), 9_999) == []
    (fired,) = book.observe(rule(), found(8), 10_000)
    assert (fired.state, fired.began_ms, fired.fired_ms) == (State.FIRING, 0, 10_000)
    assert fired.summary == "a has 8: it burns"
    assert fired.command == "cool a"
    assert book.observe(rule(), found(9), 20_000) == []


def test_a_pending_alert_that_is_good_again_is_forgotten() -> None:
    book = AlertBook()
    book.observe(rule(), found(6), 0)
    assert book.observe(rule(), found(5), 5_000) == []
    assert book.alerts() == []
    assert book.observe(rule(), found(6), 10_000) == []


def test_a_firing_alert_ends_only_at_its_second_limit_and_after_a_while() -> None:
    book = AlertBook()
    book.observe(rule(for_s=0), found(6), 0)
    assert book.observe(rule(for_s=0), found(4), 1_000) == []  # between the limits: it still fires
    assert book.observe(rule(for_s=0), found(3), 2_000) == []
    assert book.observe(rule(for_s=0), found(4), 12_000) == []  # violated again
    assert book.observe(rule(for_s=0), found(2), 13_000) == []
    assert book.observe(rule(for_s=0), found(2), 32_999) == []
    (ended,) = book.observe(rule(for_s=0), found(2), 33_000)
    assert (ended.state, ended.ended_ms) == (State.RESOLVED, 33_000)
    assert book.alerts() == []


def test_an_object_that_is_gone_is_good() -> None:
    book = AlertBook()
    book.observe(rule(for_s=0, keep_s=0), [*found(6, "a"), *found(7, "b")], 0)
    (ended,) = book.observe(rule(for_s=0, keep_s=0), found(7, "b"), 1_000)
    assert dict(ended.labels) == {"cluster": "a"}


def test_alerts_of_a_rule_that_is_removed_end() -> None:
    book = AlertBook()
    book.observe(rule(for_s=0), found(6), 0)
    assert states(book.drop_other_rules([], 5)) == [State.RESOLVED]
    assert book.alerts() == []


def test_more_objects_than_the_bound_are_counted_and_not_tracked() -> None:
    book = AlertBook()
    many = [Finding(6, labels_of(group=number)) for number in range(ALERTS_OF_RULE_MAX + 7)]
    assert len(book.observe(rule(for_s=0), many, 0)) == ALERTS_OF_RULE_MAX
    assert book.untracked == {"Hot": 7}


def test_objects_without_a_problem_do_not_count_towards_the_bound() -> None:
    book = AlertBook()
    many = [Finding(1, labels_of(group=number)) for number in range(ALERTS_OF_RULE_MAX + 7)]
    (fired,) = book.observe(rule(for_s=0), [*many, Finding(6, labels_of(group="last"))], 0)
    assert dict(fired.labels) == {"group": "last"}
    assert book.untracked == {"Hot": 0}


def test_another_evaluator_continues_with_firing_alerts() -> None:
    book, heir = AlertBook(), AlertBook()
    (fired,) = book.observe(rule(for_s=0, keep_s=0), found(6), 1_000)
    heir.restore({"Hot": rule(for_s=0, keep_s=0)}, [Alert.from_json(fired.to_json())])
    assert heir.observe(rule(for_s=0, keep_s=0), found(6), 2_000) == []
    (ended,) = heir.observe(rule(for_s=0, keep_s=0), found(1), 3_000)
    assert (ended.fired_ms, ended.ended_ms) == (1_000, 3_000)


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(1, 30)), max_size=40))
def test_fired_and_resolved_alternate_whatever_is_measured(history: list[tuple[int, int]]) -> None:
    book, now_ms, seen = AlertBook(), 0, []
    for value, pause_s in history:
        now_ms += pause_s * 1000
        seen += states(book.observe(rule(), found(value), now_ms))
    assert seen == [State.FIRING, State.RESOLVED] * (len(seen) // 2) + [State.FIRING] * (len(seen) % 2)
    assert bool(len(seen) % 2) == any(each.state is State.FIRING for each in book.alerts())


@pytest.mark.parametrize("given", DEFAULTS, ids=lambda each: each.name)
def test_every_default_rule_is_complete(given: Rule) -> None:
    check_rule(given)
    assert given.check in CHECK_NAMES
    assert given.look_at
    assert given.command


def test_a_rule_whose_second_limit_violates_the_first_is_refused() -> None:
    with pytest.raises(ValueError, match="good_at 6 violates above 5"):
        check_rule(rule(good_at=6.0))
    with pytest.raises(ValueError, match="give either above or below"):
        check_rule(rule(below=1.0))
    with pytest.raises(ValueError, match="summary is no valid text"):
        check_rule(Rule("X", "heat", Severity.INFO, "{", "", "", above=1))


# -- messages ----------------------------------------------------------------------------------------

FAST = Grouping(by=("alertname",), wait_s=10, interval_s=60, repeat_s=600)


def alert(cluster: str, state: State = State.FIRING) -> Alert:
    labels = labels_of(cluster=cluster)
    return Alert("Hot", state, "warning", labels, 6.0, f"{cluster} is hot", "", "", 0, 1, 2)


def notices(grouping: Grouping = FAST) -> Notices:
    return Notices(grouping, [Route(("mail",))])


def nobody(alert: Alert) -> bool:
    return False


def test_alerts_of_one_group_go_into_one_message_after_a_moment() -> None:
    due = notices()
    due.add([alert("a")], 0)
    due.add([alert("b")], 5_000)
    assert due.due(9_999, nobody) == []
    (notice,) = due.due(10_000, nobody)
    assert [dict(each.labels)["cluster"] for each in notice.firing] == ["a", "b"]
    assert due.due(10_001, nobody) == []  # it is under way
    due.sent(notice, 10_500)
    due.add([alert("c")], 11_000)
    assert due.due(70_499, nobody) == []
    (second,) = due.due(70_500, nobody)
    assert len(second.firing) == 3


def test_a_firing_alert_is_told_again_and_its_end_once() -> None:
    due = notices()
    due.add([alert("a")], 0)
    (first,) = due.due(10_000, nobody)
    due.sent(first, 10_000)
    assert due.due(609_999, nobody) == []
    (again,) = due.due(610_000, nobody)
    due.sent(again, 610_000)
    due.add([alert("a", State.RESOLVED)], 620_000)
    (ended,) = due.due(670_000, nobody)
    assert (ended.status, len(ended.resolved)) == ("resolved", 1)
    due.sent(ended, 670_000)
    assert due.due(9_999_999, nobody) == []


def test_an_alert_that_ends_before_its_message_is_not_told() -> None:
    due = notices()
    due.add([alert("a")], 0)
    due.add([alert("a", State.RESOLVED)], 5_000)
    assert due.due(60_000, nobody) == []


def test_an_alert_that_ends_while_its_message_is_sent_is_told_to_have_ended() -> None:
    due = notices()
    due.add([alert("a")], 0)
    (first,) = due.due(10_000, nobody)
    due.add([alert("a", State.RESOLVED)], 10_100)
    due.sent(first, 10_200)
    (ended,) = due.due(70_200, nobody)
    assert ended.resolved


def test_a_target_that_fails_is_tried_again_with_growing_pauses() -> None:
    due = notices()
    due.add([alert("a")], 0)
    pauses, now_ms = [], 10_000
    for _ in range(4):
        while not (found := due.due(now_ms, nobody)):
            now_ms += 1_000
        pauses.append(now_ms)
        due.failed(found[0], now_ms)
    assert [second - first for first, second in pairwise(pauses)] == [
        5_000,
        10_000,
        20_000,
    ]


def test_a_silenced_alert_is_told_when_the_silence_ends() -> None:
    due = notices()
    due.add([alert("a")], 0)
    assert due.due(10_000, lambda each: True) == []
    (notice,) = due.due(20_000, nobody)
    assert notice.firing


def test_the_end_of_a_silenced_alert_is_told_to_those_that_heard_of_its_begin() -> None:
    due = notices()
    due.add([alert("a"), alert("b")], 0)
    (both,) = due.due(10_000, nobody)
    due.sent(both, 10_000)
    (without,) = due.due(610_000, lambda each: each == alert("a"))
    assert without.firing == (alert("b"),)
    due.sent(without, 610_000)
    due.add([alert("a", State.RESOLVED)], 620_000)
    (ended,) = due.due(670_000, nobody)
    assert ended.resolved == (alert("a", State.RESOLVED),)


def test_the_heir_of_an_evaluator_tells_nothing_twice() -> None:
    due = notices()
    told = {"mail": {alert("a").fingerprint, alert("b").fingerprint}}
    due.restore([alert("a"), alert("b")], told, {}, 1_000)
    assert due.due(300_000, nobody) == []
    due.add([alert("a", State.RESOLVED)], 300_000)
    (notice,) = due.due(300_001, nobody)
    assert len(notice.resolved) == 1


def test_a_target_that_ends_alerts_by_itself_is_told_again_and_again() -> None:
    due = Notices(FAST, [Route(("mail", "am"))], {"am": 30.0})
    due.add([alert("a")], 0)
    for notice in due.due(10_000, nobody):
        due.sent(notice, 10_000)
    assert due.due(39_999, nobody) == []
    told = 10_000
    for now_ms in range(40_000, 400_000, 1_000):
        if now_ms == 200_000:
            due.add([alert("b")], now_ms)  # repetitions must not put changes off
        for notice in due.due(now_ms, nobody):
            due.sent(notice, now_ms)
            if notice.target == "am":
                assert now_ms - told <= 30_000
                told = now_ms
                assert len(notice.firing) == (1 if now_ms < 200_000 else 2)
    assert told >= 370_000


def test_a_failure_of_such_a_target_is_tried_again_as_often() -> None:
    due = Notices(FAST, [Route(("am",))], {"am": 30.0})
    due.add([alert("a")], 0)
    attempts, now_ms = [], 10_000
    while len(attempts) < 12:
        for notice in due.due(now_ms, nobody):
            attempts.append(now_ms)
            due.failed(notice, now_ms)
        now_ms += 1_000
    assert max(second - first for first, second in pairwise(attempts)) == 30_000


def test_the_first_route_that_fits_names_the_targets_unless_the_rule_does() -> None:
    routes = [Route(("pager",), (Matcher("severity", "critical"),)), Route(("mail",))]
    due = Notices(FAST, routes)
    assert due.targets_of(alert("a")) == ("mail",)
    own = Alert.from_json({**alert("a").to_json(), "targets": ["chat"]})
    assert due.targets_of(own) == ("chat",)
    critical = Alert.from_json({**alert("a").to_json(), "severity": "critical"})
    assert due.targets_of(critical) == ("pager",)


# -- silences ----------------------------------------------------------------------------------------


def test_matchers_are_written_as_alertmanager_writes_them() -> None:
    labels = {"cluster": "main", "alertname": "Hot"}
    for text, fits in {
        "cluster=main": True,
        'cluster="main"': True,
        "cluster!=main": False,
        "cluster=~ma.*": True,
        "cluster=~a": False,
        "cluster!~x": True,
        "missing=": True,
    }.items():
        assert parse_matcher(text).matches(labels) is fits, text
    for wrong in ("cluster", "=x", "cluster=~("):
        with pytest.raises(ValueError):
            parse_matcher(wrong)


def test_a_pattern_of_a_request_takes_bounded_time() -> None:
    """A backtracking engine would not return within a lifetime."""
    assert not parse_matcher("group=~(a+)+b").matches({"group": "a" * 10_000})
    assert parse_matcher("group=~(a+)+b").matches({"group": "a" * 10_000 + "b"})


def test_a_silence_holds_between_its_times() -> None:
    silence = Silence("one", (Matcher("cluster", "main"),), 1_000, 2_000, "me", "")
    kept = Silence.from_json(silence.to_json())
    for now_ms, holds in ((999, False), (1_000, True), (1_999, True), (2_000, False)):
        assert bool(covered_by({"cluster": "main"}, now_ms, [kept], [])) is holds
    assert covered_by({"cluster": "other"}, 1_500, [kept], []) == []


def test_a_maintenance_window_may_cross_midnight_in_its_own_time_zone() -> None:
    window = MaintenanceWindow("patches", time(23), time(2), ("sun",), "Europe/Berlin")

    def is_open(day: int, hour: int) -> bool:
        at = datetime(2026, 11, day, hour, 30, tzinfo=ZoneInfo("Europe/Berlin"))
        return window.is_open(int(at.timestamp() * 1000))

    assert [is_open(15, 22), is_open(15, 23), is_open(16, 1), is_open(16, 2), is_open(16, 23)] == [
        False,
        True,
        True,
        False,
        False,
    ]
    assert datetime(2026, 11, 15, tzinfo=UTC).strftime("%a") == "Sun"


def open_minutes(window: MaintenanceWindow, day: datetime) -> list[int]:
    """The minutes since midnight (UTC) at which a window begins and ends, in turn."""
    begin_ms = int(day.timestamp() * 1000)
    states = [window.is_open(begin_ms + minute * 60_000) for minute in range(24 * 60)]
    return [minute for minute in range(1, 24 * 60) if states[minute] != states[minute - 1]]


@pytest.mark.parametrize(
    ("since", "until", "day", "expected"),
    [
        # The clock goes from 02:00 to 03:00: a window of that hour is held after it.
        (time(2, 15), time(2, 45), datetime(2026, 3, 29, tzinfo=UTC), [75, 105]),
        (time(1, 30), time(3, 30), datetime(2026, 3, 29, tzinfo=UTC), [30, 90]),
        # The clock has the hour from 02:00 twice: the window is held once, without a gap.
        (time(2, 30), time(3, 30), datetime(2026, 10, 25, tzinfo=UTC), [30, 150]),
        (time(1), time(2, 30), datetime(2026, 10, 25, tzinfo=UTC), [30]),
    ],
)
def test_a_maintenance_window_is_held_once_when_the_clock_changes(
    since: time, until: time, day: datetime, expected: list[int]
) -> None:
    window = MaintenanceWindow("patches", since, until, ("sun",), "Europe/Berlin")
    assert open_minutes(window, day) == expected


# -- disks -------------------------------------------------------------------------------------------


def test_a_disk_that_grows_evenly_is_full_when_the_line_says() -> None:
    trends, total, hours = DiskTrends(), 1_000_000, None
    for minute in range(0, 121, 5):
        used = 500_000 + 1_000 * minute
        hours = trends.hours_left((1, "/data"), total, total - used, minute * 60_000)
        if minute < 60:
            assert hours is None
    assert hours is not None
    assert hours == pytest.approx((total - 620_000) / 60_000, rel=0.01)


def test_a_disk_that_shrinks_has_no_end() -> None:
    trends = DiskTrends()
    for hour in range(8):
        left = trends.hours_left((1, "/data"), 1_000, 100 + hour, hour * HOUR_MS)
    assert left is None
