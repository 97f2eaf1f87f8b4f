"""Levels of loggers by Kafka's words: TRACE and OFF are kept although Python has no such levels.

In: names, levels. Out: levels as REST shows them, and which loggers changed. Does not know: requests.
"""

from __future__ import annotations

import logging
import time
from typing import Any

PYTHON = {
    "TRACE": logging.DEBUG,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "OFF": logging.CRITICAL + 1,
}
LEVELS = frozenset(PYTHON)
SHOWN = {
    logging.DEBUG: "DEBUG",
    logging.INFO: "INFO",
    logging.WARNING: "WARN",
    logging.ERROR: "ERROR",
    logging.CRITICAL: "FATAL",
    logging.CRITICAL + 1: "OFF",
}
OFF, ROOT = "OFF", "root"
NAMES_MAX = 10_000


class Loggers:
    def __init__(self) -> None:
        self._modified: dict[str, int] = {}
        self._words: dict[str, str] = {}  # of levels that REST or a record set

    def set(self, name: str, level: str) -> list[str]:
        """Set the level of a logger and of all below it; the names whose levels changed."""
        name, word = ROOT if name.lower() == ROOT else name, level.upper()
        if word not in LEVELS or (name not in self._words and len(self._words) >= NAMES_MAX):
            return []
        below = [each for each in known_names() if name == ROOT or each.startswith(f"{name}.")]
        changed = [each for each in below if self.level(each) != word]
        if name not in changed and (self.level(name) != word or not logger_of(name).level):
            changed.append(name)
        now = int(time.time() * 1000)
        for each in changed:
            self._words[each] = word
            self._modified[each] = now
            logger_of(each).setLevel(PYTHON[word])
        return sorted(changed)

    def level(self, name: str) -> str:
        found = logger_of(name).getEffectiveLevel()
        word = self._words.get(name)
        if word is not None and PYTHON[word] == found:
            return word  # unless code changed it since
        return SHOWN.get(found, logging.getLevelName(found))

    def knows(self, name: str) -> bool:
        return name == ROOT or name in known_names()

    def shown(self, name: str) -> dict[str, Any]:
        return {"level": self.level(name), "last_modified": self._modified.get(name)}

    def everything(self) -> dict[str, dict[str, Any]]:
        """All loggers; those that are off are left out."""
        names = sorted([ROOT, *known_names()])
        return {name: self.shown(name) for name in names if self.level(name) != OFF}


def known_names() -> list[str]:
    """Loggers of this process. Names that only others are below are none."""
    found = logging.root.manager.loggerDict
    return [name for name, logger in list(found.items()) if isinstance(logger, logging.Logger)]


def logger_of(name: str) -> logging.Logger:
    return logging.getLogger("" if name == ROOT else name)
