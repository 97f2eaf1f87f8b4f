"""Responses in which our worker differs from Apache's on purpose, by scenario and number of the exchange."""

from __future__ import annotations

from typing import NamedTuple


class Difference(NamedTuple):
    parts: set[str]
    reason: str


TYPE = Difference({"content-type"}, "an error body is JSON, and the response says so")
ALLOW = Difference({"content-type", "allow"}, "405 names the methods that are allowed, as RFC 9110 wants")
OPTIONS = Difference({"content-type", "body"}, "the header Allow says it all: there is no body")
CALLER = Difference({"status", "body"}, "the caller is wrong, not the worker: 400 with the place")
CLASSES = Difference({"body"}, "the list of known classes is ours, without Java's descriptions of plugins")
WORDS = Difference({"body"}, "the reason is Python's or ours, not a Java exception's")
HIDDEN = Difference({"body"}, "secrets leave a worker only to systems that need them")
EARLY = Difference({"body"}, "an error that Apache's task would meet later is told at once")

DIFFERENCES: dict[str, dict[int, Difference]] = {
    "frames_of_http": {
        0: TYPE, 1: TYPE, 2: ALLOW, 3: ALLOW, 4: OPTIONS, 5: OPTIONS, 7: TYPE, 9: TYPE, 10: CALLER,
    },
    "configurations": {
        13: Difference({"status", "body"}, "a null is refused: Apache stores it, and the task fails"),
    },
    "creations_that_are_refused": {2: CLASSES, 13: EARLY, 15: WORDS, 19: WORDS},
    "offsets_of_a_source": {13: CALLER},
    "plugins": {6: Difference({"status", "body"}, "short names with $Key and $Value are understood")},
    "secrets": {3: HIDDEN, 4: HIDDEN},
    "validations": {
        5: CALLER, 6: CALLER,
        14: Difference({"body"}, "a null is refused: Apache stores it, and the task fails"),
    },
}  # fmt: skip
