"""The day that fields of a date name, as Java's lenient GregorianCalendar finds it.

In: numbers of fields as columns, and the letters of the pattern in their order. Out: days since 1970. Where
fields contradict each other the last ones of the pattern win. Weeks are those of the United States: they
begin on Sunday, and the first one has the first of January. Does not know: texts, times of the day.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

SUNDAY = 1
TO_JAVA = 719_163  # days from 0001-01-01 to 1970-01-01, the first of which is 1 in Java
WEEKDAY = "eu"  # e: a day's name as a number of Java's, u: 1 for Monday

Number = Callable[[str, int], Any]  # the values of a field, or as many of the given one


def chosen(letters: Sequence[str]) -> str:
    """The letter of the field that decides, besides year, month and weekday. `Y`: a week of a week year."""
    at = {letter: place for place, letter in enumerate(letters, 1)}
    if at.get("Y", 0) > at.get("y", 0):
        return "Y"
    weekday = max(at.get(letter, 0) for letter in WEEKDAY)

    def with_weekday(letter: str) -> int:
        return max(at[letter], weekday) if weekday and letter in at else 0

    stamps = {
        "d": at.get("d", 0),
        "W": with_weekday("W"),
        "F": with_weekday("F"),
        "D": at.get("D", 0),
        "w": with_weekday("w"),
    }
    if not any(stamps.values()):
        stamps = {"d": 0, "W": at.get("W", 0), "F": max(at.get("F", 0), weekday), "w": at.get("w", 0)}
    best = max(stamps.values())
    if not best or best == stamps["d"]:
        return "d"
    week = at.get("w", 0)
    is_week, is_count = stamps["W"] == best, stamps["F"] == best
    if (is_week and at.get("W", 0) >= week) or (is_count and at.get("F", 0) >= week):
        if stamps["W"] == stamps["F"]:
            return "W" if at.get("W", 0) >= at.get("F", 0) else "F"
        return "W" if is_week else "F"
    return "D" if stamps.get("D") == best else "w"


def days(letters: Sequence[str], number: Number) -> Any:
    """Days since 1970, of year, month (from 0) and the fields of the letters."""
    decides = chosen(letters)
    names_day = next((letter for letter in reversed(letters) if letter in WEEKDAY), "e")
    if decides == "Y":
        return week_date(number, names_day)
    month = number("M", 0) if decides in "dWF" else number("", 0)
    start = ((number("y", 1970) - 1970) * 12 + month).astype("datetime64[M]").astype("datetime64[D]")
    first = start.astype(np.int64)
    if decides in "dD":
        return first + number(decides, 1) - 1
    weekday = number("e", SUNDAY) if names_day == "e" else java_weekday(number("u", 7))
    if decides == "F":
        count = number("F", 1)
        after = on_or_before(first + 7 * count - 1, weekday)
        next_month = (start.astype("datetime64[M]") + 1).astype("datetime64[D]").astype(np.int64)
        return np.where(count >= 0, after, on_or_before(next_month + 7 * (count + 1) - 1, weekday))
    begin = on_or_before(first + 6, SUNDAY)
    begin = np.where(begin > first, begin - 7, begin)
    return on_or_before(begin + 6, weekday) + 7 * (number(decides, 1) - 1)


def week_date(number: Number, names_day: str) -> Any:
    """The day of a week of a week year. Numbers that are no days of a week mean those of other weeks."""
    first = (number("Y", 1970) - 1970).astype("datetime64[Y]").astype("datetime64[D]").astype(np.int64)
    week = on_or_before(first, SUNDAY) + 7 * (number("w", 1) - 1)
    if names_day == "e":
        return week + number("e", SUNDAY) - SUNDAY
    day = number("u", 7)
    is_day = (day >= 1) & (day <= 7)
    return week + np.mod(day, 7) + np.where(is_day, 0, 7 * np.floor_divide(day - 1, 7))


def java_weekday(iso: Any) -> Any:
    """The number of a day from Sunday on. Numbers that are no days stay, as in Java."""
    return np.where((iso >= 1) & (iso <= 7), np.mod(iso, 7) + 1, iso)


def on_or_before(day: Any, weekday: Any) -> Any:
    return day - np.mod(day + TO_JAVA - (weekday - 1), 7)
