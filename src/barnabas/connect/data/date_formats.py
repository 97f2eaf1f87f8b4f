"""Patterns of Java's SimpleDateFormat in UTC, for whole columns: times to texts and texts to times.

Letters: G y Y M L w W d D F E u H h k K m s S a z Z X and quoted text. Parsing is lenient as Java's is: a
month 13 is the January after, and text behind the pattern is ignored. Other letters are refused with their
name.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.data.days_of_fields import days

MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
          "November", "December")  # fmt: skip
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
KNOWN = "GyYMLwWDdFEuaHkKhmsSzZX"
NUMERIC = "yYMwWdDFuHhkKmsS"
# Arrow writes a time as 2024-01-02 03:04:05.006: where fields of a pattern stand in this text.
PLACES = {"yyyy": 0, "MM": 5, "dd": 8, "HH": 11, "mm": 14, "ss": 17, "SSS": 20}
SEPARATORS = {4: "-", 7: "-", 10: " ", 13: ":", 16: ":", 19: "."}
YEARS = (-62_167_219_200_000, 253_402_300_799_999)  # milliseconds that have years of four digits
Cut = tuple[int, int]  # of that text


class DateFormat:
    """A pattern, ready to format and to parse columns."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.pieces = list(pieces_of(pattern))
        self._reader, self._order = self._regex()
        self._cuts = cuts_of(self.pieces)

    def texts(self, times: Any) -> Any:
        """Texts of `timestamp[ms]`; nulls stay null."""
        if self._cuts and has_four_digits(times):
            whole = times.cast(pa.timestamp("ms")).cast(pa.string())
            made = [
                each if isinstance(each, str) else pc.utf8_slice_codeunits(whole, *each)
                for each in self._cuts
            ]
            return made[0] if len(made) == 1 else pc.binary_join_element_wise(*made, "")
        parts: list[Any] = [
            text if letter is None else formatted(times, letter, len(text)) for letter, text in self.pieces
        ]
        nothing = pc.if_else(
            times.is_valid(), "", pa.scalar(None, pa.string())
        )  # a pattern may have no field
        return pc.binary_join_element_wise(*parts, nothing, "")

    def times(self, texts: Any) -> Any:
        """`timestamp[ms, UTC]` of texts. ValueError names the first text that does not fit."""
        found = pc.extract_regex(texts, self._reader)
        wrong = pc.and_(found.is_null(), texts.is_valid())
        if pc.any(wrong).as_py():
            text = texts.filter(wrong)[0].as_py()
            raise ValueError(
                f"Could not parse timestamp: value ({text}) does not match pattern ({self.pattern})"
            )
        valid = np.asarray(texts.is_valid())
        fields = {
            letter: column(found, f"f{number}", valid) for number, letter in enumerate(self._order) if letter
        }
        ms = milliseconds(fields, len(texts), self.pieces)
        return pa.array(ms, pa.int64(), mask=~valid).cast(pa.timestamp("ms", "UTC"))

    def _regex(self) -> tuple[str, list[str]]:
        parts = ["^"]
        order: list[str] = []
        for number, (letter, text) in enumerate(self.pieces):
            following = self.pieces[number + 1][0] if number + 1 < len(self.pieces) else None
            if letter is None:
                parts.append(re.escape(text))
                continue
            parts.append(f"(?P<f{len(order)}>{reading(letter, len(text), following)})")
            order.append(letter)
        return "".join(parts), order


def pieces_of(pattern: str) -> list[tuple[str | None, str]]:
    """(letter, letters) for fields and (None, text) for text."""
    found: list[tuple[str | None, str]] = []
    for piece in re.finditer(r"''|'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+|'", pattern):
        text = piece[0]
        if text == "'":
            raise ValueError(f"Unterminated quote in the pattern {pattern!r}")
        if text == "''":
            found.append((None, "'"))
        elif text.startswith("'"):
            found.append((None, piece[1].replace("''", "'")))
        elif piece[2] is not None:
            if piece[2] not in KNOWN:
                raise ValueError(f"Illegal pattern character {piece[2]!r}; possible are {' '.join(KNOWN)}")
            found.append(("M" if piece[2] == "L" else piece[2], text))
        else:
            found.append((None, text))
    return found


def cuts_of(pieces: list[tuple[str | None, str]]) -> list[Cut | str]:
    """The pattern as cuts of Arrow's text and texts between; none where it has other fields."""
    found: list[Cut | str] = []
    for letter, text in pieces:
        last = found[-1] if found else None
        if letter in ("Z", "X"):
            text, letter = formatted(None, letter, len(text)), None
        if letter is None:
            if isinstance(last, tuple) and SEPARATORS.get(last[1]) == text:
                found[-1] = (last[0], last[1] + 1)
            else:
                found.append(text)
            continue
        start = PLACES.get(text)
        if start is None:
            return []
        end = start + len(text)
        if isinstance(last, tuple) and last[1] == start:
            found[-1] = (last[0], end)
        else:
            found.append((start, end))
    return found if any(isinstance(each, tuple) for each in found) else []


def has_four_digits(times: Any) -> bool:
    """Whether all years have four digits."""
    ends = pc.min_max(times.cast(pa.timestamp("ms")).cast(pa.int64()))
    low, high = ends["min"].as_py(), ends["max"].as_py()
    return low is None or (YEARS[0] <= low and high <= YEARS[1])


def formatted(times: Any, letter: str, width: int) -> Any:
    if letter in "zZX":
        return {"z": "UTC", "Z": "+0000", "X": "Z"}[letter]
    if letter == "G":
        return "AD"
    if letter in "yY":
        year = pc.year(times)
        if letter == "Y":
            year = pc.add(year, ends_in_first_week(times).cast(pa.int64()))
        return (
            padded(pc.subtract(year, pc.multiply(pc.divide(year, 100), 100)), 2)
            if width == 2
            else padded(year, width)
        )
    if letter == "M":
        month = pc.month(times)
        if width < 3:
            return padded(month, width)
        return named(pc.subtract(month, 1), MONTHS if width > 3 else tuple(one[:3] for one in MONTHS))
    if letter == "E":
        return named(pc.day_of_week(times), DAYS if width > 3 else tuple(one[:3] for one in DAYS))
    if letter == "a":
        return pc.if_else(pc.less(pc.hour(times), 12), "AM", "PM")
    return padded(number_of(times, letter), width)


def number_of(times: Any, letter: str) -> Any:
    if letter == "d":
        return pc.day(times)
    if letter == "m":
        return pc.minute(times)
    if letter == "s":
        return pc.second(times)
    if letter == "S":
        return pc.millisecond(times)
    if letter == "D":
        return pc.day_of_year(times)
    if letter == "w":
        return pc.if_else(ends_in_first_week(times), 1, week_since(times, pc.day_of_year(times)))
    if letter == "W":
        return week_since(times, pc.day(times))
    if letter == "F":
        return pc.add(pc.divide(pc.subtract(pc.day(times), 1), 7), 1)
    if letter == "u":
        return pc.add(pc.day_of_week(times), 1)
    hour = pc.hour(times)
    if letter in "hK":
        hour = pc.if_else(pc.greater_equal(hour, 12), pc.subtract(hour, 12), hour)
    if letter in "hk":
        hour = pc.if_else(pc.equal(hour, 0), 12 if letter == "h" else 24, hour)
    return hour


def week_since(times: Any, day: Any) -> Any:
    """The week in a span that began `day` - 1 days before. Weeks begin on Sunday, the first may be cut."""
    weekday = pc.day_of_week(times, week_start=7)
    return pc.divide(pc.add(day, pc.subtract(12, weekday)), 7)


def ends_in_first_week(times: Any) -> Any:
    """Whether days of December lie in the week of the first of January."""
    saturday = pc.add(pc.day(times), pc.subtract(6, pc.day_of_week(times, week_start=7)))
    return pc.and_(pc.equal(pc.month(times), 12), pc.greater(saturday, 31))


def padded(numbers: Any, width: int) -> Any:
    return pc.utf8_lpad(pc.cast(numbers, pa.string()), width, "0")


def named(numbers: Any, names: tuple[str, ...]) -> Any:
    return pa.array(names).take(numbers.cast(pa.int64()))


def reading(letter: str, width: int, following: str | None) -> str:
    """The regular expression of a field in a text. A number next to a number has a fixed width."""
    if letter == "G":
        return "[Aa][Dd]"
    if letter == "E":
        return "[A-Za-z]+"
    if letter == "a":
        return "[AaPp][Mm]"
    if letter == "X":
        return "Z|" + (r"[+-]\d{2}", r"[+-]\d{4}", r"[+-]\d{2}:\d{2}")[min(width, 3) - 1]
    if letter in "zZ":
        return r"Z|UTC|GMT|[+-]\d{2}:?\d{2}|[+-]\d{2}"
    if letter == "M" and width > 2:
        return "[A-Za-z]+"
    return rf"\d{{{width}}}" if following is not None and following in NUMERIC else r"\s*-?\d{1,18}"


def column(found: Any, name: str, valid: Any) -> Any:
    texts = pc.struct_field(found, name)
    return np.where(valid, texts.to_numpy(zero_copy_only=False), "0").astype(str)


def milliseconds(fields: dict[str, Any], count: int, pieces: list[tuple[str | None, str]]) -> Any:
    widths = {letter: len(text) for letter, text in pieces if letter}

    def number(letter: str, otherwise: int) -> Any:
        return (
            np.char.strip(fields[letter]).astype(np.int64) if letter in fields else np.full(count, otherwise)
        )

    for letter in "yY":
        if widths.get(letter, 4) <= 2:
            year = number(letter, 0)
            is_short = np.char.str_len(np.char.strip(fields[letter])) == 2
            fields[letter] = np.where(is_short, windowed(year), year).astype(str)
    if widths.get("M", 2) > 2:
        table = {one[:3].lower(): str(index) for index, one in enumerate(MONTHS)}
        fields["M"] = np.array([one_named(table, str(each), "month") for each in fields["M"]])
    elif "M" in fields:
        fields["M"] = (number("M", 1) - 1).astype(str)
    if "E" in fields:
        table = {one[:3].lower(): str((index + 1) % 7 + 1) for index, one in enumerate(DAYS)}
        fields["e"] = np.array([one_named(table, str(each), "day of the week") for each in fields["E"]])
    letters = ["e" if letter == "E" else letter for letter, _ in pieces if letter]
    day = days(letters, number)
    hour = number("H", 0)
    if "k" in fields:
        hour = number("k", 0) % 24
    if "h" in fields or "K" in fields:
        hour = number("h", 0) % 12 if "h" in fields else number("K", 0)
        if "a" in fields:
            hour = hour + 12 * (np.char.lower(fields["a"]) == "pm")
    total = ((day * 24 + hour) * 60 + number("m", 0)) * 60 + number("s", 0)
    for letter in "zZX":
        if letter in fields:
            total = total - np.array([offset_seconds(one) for one in fields[letter]])
    return total * 1000 + number("S", 0)


def one_named(table: dict[str, str], text: str, kind: str) -> str:
    if text == "0":  # of a null
        return "0"
    if text[:3].lower() not in table:
        raise ValueError(f"{text!r} is no {kind}")
    return table[text[:3].lower()]


def windowed(year: Any) -> Any:
    """Two digits mean a year of the 80 before and the 20 after today, as in Java."""
    first = int(np.datetime64("today", "Y").astype(np.int64)) + 1970 - 80
    return first + (year - first) % 100


def offset_seconds(text: str) -> int:
    digits = re.sub(r"\D", "", text)
    if not digits:
        return 0
    seconds = int(digits[:2]) * 3600 + int(digits[2:4] or 0) * 60
    return -seconds if text.startswith("-") else seconds
