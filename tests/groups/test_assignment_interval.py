"""When a group may compute its next target."""

import pytest

from barnabas.groups.basics.assignment_interval import is_target_due

LAST_MS = 1_000_000


@pytest.mark.parametrize(
    ("last_ms", "interval_ms", "now_ms", "is_due"),
    [
        pytest.param(0, 1000, LAST_MS, True, id="the first one at once"),
        pytest.param(LAST_MS, 1000, LAST_MS + 999, False, id="not within the interval"),
        pytest.param(LAST_MS, 1000, LAST_MS + 1000, True, id="after the interval"),
        pytest.param(LAST_MS, 0, LAST_MS, True, id="always, without an interval"),
        pytest.param(LAST_MS, 1000, LAST_MS - 40_000, True, id="at once after the clock was set back"),
    ],
)
def test_a_target_is_due(last_ms: int, interval_ms: int, now_ms: int, is_due: bool) -> None:
    assert is_target_due(last_ms, interval_ms, now_ms) is is_due
