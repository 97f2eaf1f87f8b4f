"""Times and durations of `consumer-groups --reset-offsets`."""

from datetime import UTC, datetime

import pytest

from barnabas.cli.frame.parsing import ToolError
from barnabas.cli.groups.reset_times import parse_datetime, parse_duration


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01T00:00:00.000", 0),
        ("1970-01-01T00:00:01.500Z", 1_500),
        ("1970-01-01T01:00:00.000+01:00", 0),
        ("1970-01-01T01:00:00.000+0100", 0),
        ("1970-01-01T01:00:00.000+01", 0),
        ("1969-12-31T22:30:00.000-0130", 0),
        ("2024-02-29T23:59:59.999", int(datetime(2024, 3, 1, tzinfo=UTC).timestamp() * 1000) - 1),
    ],
)
def test_times(text: str, expected: int) -> None:
    assert parse_datetime(text) == expected


@pytest.mark.parametrize(
    "text", ["2000-01-01T00:00:00", "2000-13-01T00:00:00.000", "2000-01-01T25:00:00.000", "T", "10000-01-01T"]
)
def test_the_error_of_a_malformed_time_shows_the_format(text: str) -> None:
    with pytest.raises(ToolError, match=r'^Unparseable date: ".*" \(give YYYY-MM-DDThh:mm:ss\.sss'):
        parse_datetime(text)


def test_a_day_without_a_time_is_refused() -> None:
    with pytest.raises(ToolError, match="does not contain a 'T'"):
        parse_datetime("2000-01-01")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("P1D", 86_400_000),
        ("PT1H", 3_600_000),
        ("PT1M30S", 90_000),
        ("p2dt3h4m5.6s", 2 * 86_400_000 + 3 * 3_600_000 + 4 * 60_000 + 5_600),
        ("-PT1S", -1_000),
        ("PT-1.5S", -1_500),
        ("P-1DT1H", -86_400_000 + 3_600_000),
        ("PT0S", 0),
    ],
)
def test_durations(text: str, expected: int) -> None:
    assert parse_duration(text) == expected


@pytest.mark.parametrize("text", ["", "P", "PT", "P1DT", "1h", "P1Y", "PT1D", "P1H", "PTS", "P1.5D"])
def test_the_error_of_a_malformed_duration_shows_the_format(text: str) -> None:
    with pytest.raises(ToolError, match=r"^Text cannot be parsed to a Duration \(give PnDTnHnMnS"):
        parse_duration(text)
