"""PostgreSQL's texts of days and times as numbers. Pure.

Years are not limited to those of Python: `12024-03-15` and `0044-03-15 BC` are days like others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date

DAY = 86_400_000_000  # microseconds
STAMP = re.compile(
    r"(\d{4,})-(\d\d)-(\d\d)(?: (\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?)?"
    r"(?:([+-])(\d\d)(?::(\d\d))?(?::(\d\d))?)?( BC)?"
)
FAR_MS = {"infinity": 9223372036825200000, "-infinity": -9223372036832400000}  # of its driver for Java


@dataclass(frozen=True, slots=True)
class Moment:
    """A day since 1970 in the calendar that has no beginning, and the microseconds of the day."""

    day: int
    micros: int

    @property
    def total(self) -> int:
        return self.day * DAY + self.micros

    @staticmethod
    def of(text: str) -> Moment:
        found = STAMP.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} is no time that PostgreSQL writes")
        year, month, day, hour, minute, second = (int(each or 0) for each in found.groups()[:6])
        micros = ((hour * 60 + minute) * 60 + second) * 1_000_000 + int((found[7] or "").ljust(6, "0"))
        offset = (int(found[9] or 0) * 60 + int(found[10] or 0)) * 60 + int(found[11] or 0)
        micros -= (-offset if found[8] == "-" else offset) * 1_000_000
        first = days_of(1 - year if found[12] else year, month, day)
        return Moment(first + micros // DAY, micros % DAY)


def days_of(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01; the year 0 is 1 BC."""
    cycles, rest = divmod(year, 400)
    return cycles * 146_097 + date(rest + 400, month, day).toordinal() - date(2370, 1, 1).toordinal()


def is_far(text: str) -> bool:
    """Whether a day or time is outside of the years that Python has."""
    return text.endswith(" BC") or text.find("-", 1) > 4
