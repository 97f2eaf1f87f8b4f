"""A page of metrics in Prometheus' text format, filled family by family.

In: families and lines of samples. Out: the text, in chunks. Lines of one family stand together, whatever the
order in which they were added. Lines are made by the dialects themselves, because a page has hundreds of
thousands of them. Does not know: what is measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan

CHUNK_LINES = 500
ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


class Page:
    def __init__(self) -> None:
        self._families: dict[str, list[str]] = {}

    def family(self, name: str, text: str, kind: str = "gauge") -> list[str]:
        """The lines of a family; the dialect appends `name{labels} value` to them."""
        found = self._families.get(name)
        if found is None:
            about = text.replace("\\", r"\\").replace("\n", r"\n")
            found = self._families[name] = [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]
        return found

    def chunks(self) -> Iterator[str]:
        """The text of all families that have samples. What was given is forgotten."""
        families, self._families = self._families, {}
        for lines in families.values():
            if len(lines) > 2:
                for at in range(0, len(lines), CHUNK_LINES):
                    yield "\n".join(lines[at : at + CHUNK_LINES]) + "\n"


def escaped(value: object) -> str:
    """A label's value as it stands between quotes. Most values need no escapes, and looking is cheaper."""
    text = str(value)
    return text.translate(ESCAPES) if '"' in text or "\\" in text or "\n" in text else text


def number(value: float) -> str:
    return "NaN" if isnan(value) else repr(value)
