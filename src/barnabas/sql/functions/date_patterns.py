"""Patterns of dates and times as Java's DateTimeFormatter has them: texts from values, values from texts.

In: a pattern such as `yyyy-MM-dd'T'HH:mm:ss.SSSX`. Out: a formatter and a parser. English names only.
Does not know: SQL's functions.
"""

from __future__ import annotations

import datetime as dt
import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from barnabas.sql.errors import EvaluationError

MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
TOKEN = re.compile(r"''|'(?:[^']|'')*'|([A-Za-z])\1*|[^A-Za-z']+|'")
TIME_LETTERS = frozenset("HhKkmsSAnNaXxZzVO")
DATE_LETTERS = frozenset("yuMLdDEe")
PATTERN_CHARS_MAX = 200


@functools.lru_cache(256)
def zone_named(name: str) -> dt.tzinfo:
    """A zone by its name or its offset (`+01:00`)."""
    found = re.fullmatch(r"(?:UTC|GMT)?([+-])(\d{1,2}):?(\d{2})?", name.strip())
    if found:
        minutes = int(found[2]) * 60 + int(found[3] or 0)
        return dt.timezone(dt.timedelta(minutes=minutes if found[1] == "+" else -minutes))
    try:
        return dt.UTC if name.strip() in ("Z", "UTC", "GMT") else ZoneInfo(name.strip())
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise EvaluationError(f"the time zone {name!r} is unknown: use a name such as Europe/Paris") from None


@dataclass(frozen=True, slots=True)
class Token:
    """`letter` with its count, or a text as it is where the letter is empty."""

    letter: str
    count: int
    text: str = ""


@functools.lru_cache(256)
def tokens(pattern: str) -> tuple[Token, ...]:
    if len(pattern) > PATTERN_CHARS_MAX:
        raise EvaluationError(f"a pattern has at most {PATTERN_CHARS_MAX} characters")
    found = []
    for piece in TOKEN.finditer(pattern):
        text = piece[0]
        if text == "''":
            found.append(Token("", 0, "'"))
        elif text == "'":
            raise EvaluationError(f"a quote of the pattern {pattern!r} is not closed")
        elif text[0] == "'":
            found.append(Token("", 0, text[1:-1].replace("''", "'")))
        elif piece[1]:
            if piece[1] not in FORMATS:
                raise EvaluationError(f"the letter {piece[1]} of the pattern {pattern!r} is unknown")
            found.append(Token(piece[1], len(text)))
        else:
            found.append(Token("", 0, text))
    return tuple(found)


def offset_text(value: dt.datetime, count: int, zulu: bool, colon: bool) -> str:
    seconds = int((value.utcoffset() or dt.timedelta()).total_seconds())
    if zulu and seconds == 0:
        return "Z"
    hours, minutes = divmod(abs(seconds) // 60, 60)
    sign = "-" if seconds < 0 else "+"
    if count == 1 and not minutes and zulu:
        return f"{sign}{hours:02d}"
    return f"{sign}{hours:02d}{':' if colon else ''}{minutes:02d}"


def year_text(value: dt.datetime, count: int) -> str:
    return f"{value.year % 100:02d}" if count == 2 else f"{value.year:0{count}d}"


def month_text(value: dt.datetime, count: int) -> str:
    name = MONTHS[value.month - 1]
    return f"{value.month:0{count}d}" if count < 3 else name[:3] if count == 3 else name


FORMATS: dict[str, Callable[[dt.datetime, int], str]] = {
    "y": year_text,
    "u": year_text,
    "M": month_text,
    "L": month_text,
    "d": lambda v, n: f"{v.day:0{n}d}",
    "D": lambda v, n: f"{v.timetuple().tm_yday:0{n}d}",
    "E": lambda v, n: DAYS[v.weekday()][: 3 if n < 4 else None],
    "e": lambda v, n: str(v.isoweekday()),
    "a": lambda v, n: "AM" if v.hour < 12 else "PM",
    "H": lambda v, n: f"{v.hour:0{n}d}",
    "k": lambda v, n: f"{v.hour or 24:0{n}d}",
    "K": lambda v, n: f"{v.hour % 12:0{n}d}",
    "h": lambda v, n: f"{v.hour % 12 or 12:0{n}d}",
    "m": lambda v, n: f"{v.minute:0{n}d}",
    "s": lambda v, n: f"{v.second:0{n}d}",
    "S": lambda v, n: f"{v.microsecond:06d}".ljust(n, "0")[:n],
    "A": lambda v, n: str((v.hour * 3600 + v.minute * 60 + v.second) * 1000 + v.microsecond // 1000).zfill(n),
    "n": lambda v, n: str(v.microsecond * 1000).zfill(n),
    "X": lambda v, n: offset_text(v, n, True, n >= 3),
    "x": lambda v, n: offset_text(v, n, False, n >= 3),
    "Z": lambda v, n: offset_text(v, n, False, False),
    "z": lambda v, n: v.tzname() or "UTC",
    "V": lambda v, n: str(v.tzinfo or "UTC"),
    "O": lambda v, n: "GMT" + offset_text(v, n, False, True),
}


def format_with(value: dt.datetime, pattern: str) -> str:
    return "".join(
        each.text if not each.letter else FORMATS[each.letter](value, each.count) for each in tokens(pattern)
    )


def digits(token: Token, next_is_digits: bool, most: int = 10) -> str:
    """Numbers beside other numbers have the width of the pattern; others take what is there."""
    if next_is_digits or token.count > 1:
        return rf"\d{{{token.count}}}" if token.letter not in "yu" or token.count != 1 else r"\d{1,9}"
    return rf"\d{{1,{most}}}"


@functools.lru_cache(256)
def parser(pattern: str) -> tuple[re.Pattern[str], tuple[Token, ...]]:
    parts, groups = [], []
    found = tokens(pattern)
    for index, token in enumerate(found):
        if not token.letter:
            parts.append(re.escape(token.text))
            continue
        following = found[index + 1] if index + 1 < len(found) else Token("", 0)
        groups.append(token)
        beside = following.letter not in ("", "a", "E", "X", "x", "Z", "z", "V", "O")
        if token.letter in "ML" and token.count >= 3:
            parts.append("(" + "|".join(m[:3] if token.count == 3 else m for m in MONTHS) + ")")
        elif token.letter == "E":
            parts.append("(" + "|".join(d[:3] if token.count < 4 else d for d in DAYS) + ")")
        elif token.letter == "a":
            parts.append("(AM|PM|am|pm)")
        elif token.letter in "XxZO":
            parts.append(r"(Z|(?:GMT)?[+-]\d{2}:?\d{0,2})")
        elif token.letter in "zV":
            parts.append(r"([A-Za-z0-9_/+:-]+)")
        elif token.letter == "S":
            parts.append(rf"(\d{{{token.count}}})")
        else:
            parts.append("(" + digits(token, beside) + ")")
    return re.compile("".join(parts)), tuple(groups)


def fields_of(text: str, pattern: str) -> dict[str, str]:
    form, groups = parser(pattern)
    match = form.fullmatch(text)
    if match is None:
        raise EvaluationError(f"{text!r} does not fit the pattern {pattern!r}")
    return {
        token.letter + ("2" if token.letter in "yu" and token.count == 2 else ""): part
        for token, part in zip(groups, match.groups(), strict=True)
    }


def parse_with(text: str, pattern: str) -> tuple[dt.datetime, dt.tzinfo | None]:
    """The moment as the text says it, and its zone where the text has one. Missing parts are those of
    1970-01-01T00:00."""
    found = fields_of(text, pattern)
    try:
        year = int(found.get("y") or found.get("u") or 2000 + int(found.get("y2") or found.get("u2") or -30))
        month = found.get("M") or found.get("L") or "1"
        if not month.isdigit():
            month = str(next(i for i, m in enumerate(MONTHS, 1) if m[:3] == month[:3]))
        if "D" in found:
            date = dt.date(year, 1, 1) + dt.timedelta(days=int(found["D"]) - 1)
        else:
            date = dt.date(year, int(month), int(found.get("d", 1)))
        time = dt.time(
            hour_of(found),
            int(found.get("m", 0)),
            int(found.get("s", 0)),
            int(found.get("S", "0").ljust(6, "0")[:6]),
        )
    except ValueError as error:
        raise EvaluationError(f"{text!r} is no moment: {error}") from None
    zone = next((found[letter] for letter in "XxZzVO" if letter in found), None)
    return dt.datetime.combine(date, time), None if zone is None else zone_named(zone)


def hour_of(found: dict[str, str]) -> int:
    if "H" in found:
        return int(found["H"])
    if "k" in found:
        return int(found["k"]) % 24
    hour = int(found.get("h", found.get("K", "0"))) % 12
    return hour + 12 if found.get("a", "AM").upper() == "PM" else hour


def letters(pattern: str) -> set[str]:
    return {each.letter for each in tokens(pattern) if each.letter}
