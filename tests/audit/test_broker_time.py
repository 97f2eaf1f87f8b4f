"""A service whose clock is off judges by the brokers' time."""

from __future__ import annotations

import pytest

from barnabas.audit.report.broker_time import FIRST_LOOK_MS, BrokerTime

T0, HOUR, LOOK = 1_700_000_400_000, 3_600_000, 600_000


@pytest.mark.parametrize("off_ms", [0, 2 * HOUR, -2 * HOUR, 6_000])
def test_a_clock_that_is_off_is_found_at_the_second_look(off_ms: int) -> None:
    time = BrokerTime()
    for look in range(4):
        broker_ms = T0 + look * LOOK
        for late_ms in range(0, LOOK, 10_000):
            time.saw(broker_ms - late_ms)
        found = time.time_ms(broker_ms + off_ms, broker_ms + off_ms + 20)
        if look or off_ms <= 0:
            assert abs(found - broker_ms) <= 10_020
        assert found <= broker_ms + FIRST_LOOK_MS


def test_time_goes_on_where_no_messages_come() -> None:
    """Everything has stopped, the brokers' counts too: what is missing is due all the same."""
    time = BrokerTime()
    time.saw(T0)
    time.time_ms(T0 + 5, T0 + 5)
    assert time.time_ms(T0 + HOUR, T0 + HOUR) == T0 + HOUR


def test_a_clock_that_was_set_right_is_trusted_again() -> None:
    time = BrokerTime()
    for look, off_ms in enumerate((HOUR, HOUR, 0, 0)):
        broker_ms = T0 + look * LOOK
        time.saw(broker_ms - 1)
        time.time_ms(broker_ms + off_ms, broker_ms + off_ms)
    assert time.ahead_ms == 0


def test_a_service_that_starts_late_looks_at_old_messages_as_old() -> None:
    time = BrokerTime()
    time.saw(T0)
    assert time.time_ms(T0 + HOUR, T0 + HOUR) == T0 + FIRST_LOOK_MS
