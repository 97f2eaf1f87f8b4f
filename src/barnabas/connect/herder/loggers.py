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
        """Set a level; the names whose levels changed."""
        word = level.upper()
        if word not in LEVELS or (name not in self._words and len(self._words) >= NAMES_MAX):
            return []
        logger = logger_of(name)
        if self.level(name) == word and logger.level:
            return []
        self._words[name] = word
        logger.setLevel(PYTHON[word])
        self._modified[name] = int(time.time() * 1000)
        return [name]

    def level(self, name: str) -> str:
        found = logger_of(name).getEffectiveLevel()
        word = self._words.get(name)
        if word is not None and PYTHON[word] == found:
            return word  # unless code changed it since
        return SHOWN.get(found, logging.getLevelName(found))

    def knows(self, name: str) -> bool:
        return name == ROOT or name in logging.root.manager.loggerDict

    def shown(self, name: str) -> dict[str, Any]:
        return {"level": self.level(name), "last_modified": self._modified.get(name)}

    def everything(self) -> dict[str, dict[str, Any]]:
        """The root and all loggers that have a level of their own; those that are off are left out."""
        names = [ROOT, *(name for name in sorted(logging.root.manager.loggerDict) if logger_of(name).level)]
        return {name: self.shown(name) for name in names if self.level(name) != OFF}


def logger_of(name: str) -> logging.Logger:
    return logging.getLogger("" if name == ROOT else name)
