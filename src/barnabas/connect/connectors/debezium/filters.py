"""Lists of tables and columns: patterns that must match a whole name, in any case. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from barnabas.connect.config import Settings

ILLEGAL = re.compile(r"[^A-Za-z0-9._-]")


@dataclass(frozen=True, slots=True)
class Lists:
    """`include` and `exclude` of one setting; at most one of them is set."""

    include: Sequence[str] = ()
    exclude: Sequence[str] = ()

    @staticmethod
    def of(settings: Settings, name: str) -> Lists:
        return Lists(settings.entries(f"{name}.include.list"), settings.entries(f"{name}.exclude.list"))

    def wants(self, name: str) -> bool:
        if self.include:
            return any(re.fullmatch(each, name, re.IGNORECASE) for each in self.include)
        return not any(re.fullmatch(each, name, re.IGNORECASE) for each in self.exclude)


def topic_name(*parts: str, delimiter: str = ".") -> str:
    """A topic; characters that Kafka does not allow become `_`."""
    return ILLEGAL.sub("_", delimiter.join(parts))
