"""Pages of an API: the request of a place, the records of a response, and the place behind them.

Pure: in comes a parsed response, out come rows and the next place. A response tells where to go on only if it
is a text or a number of bounded length, and a link leads to the same host. Does not know: connections.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urljoin, urlsplit

from barnabas.connect.connectors.stores.retries import Pauses
from barnabas.connect.plugins import ConnectError

MODES = (
    "SIMPLE_INCREMENTING",
    "CHAINING",
    "CURSOR_PAGINATION",
    "LINK_PAGINATION",
    "SNAPSHOT_PAGINATION",
)
OFFSET = "${offset}"
OFFSET_CHARS_MAX = 8192
LINK = re.compile(r'<([^<>]{1,8192})>\s*((?:;\s*[\w*-]+\s*=\s*(?:"[^"]*"|[^",;]*)\s*)*)')
REL_NEXT = re.compile(r';\s*rel\s*=\s*"?(?:[^"]*\s)?next(?:\s[^"]*)?"?\s*(?:;|$)', re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Pointer:
    """A JSON pointer (RFC 6901): `/data/items`; an empty one is the whole document."""

    text: str

    def of(self, document: Any) -> Any:
        if self.text in ("", "/"):
            return document
        for raw in self.text.lstrip("/").split("/"):
            name = raw.replace("~1", "/").replace("~0", "~")
            if isinstance(document, Mapping):
                document = document.get(name)
            elif isinstance(document, list) and re.fullmatch(r"-?\d{1,9}", name):
                index = int(name)
                document = document[index] if -len(document) <= index < len(document) else None
            else:
                return None
        return document


@dataclass(frozen=True, slots=True)
class Place:
    """The position of the source: the offset of a request, and how many of its records were returned."""

    offset: str
    index: int = 0

    @staticmethod
    def of_offset(stored: Any) -> Place:
        offset = stored.get("offset") if isinstance(stored, Mapping) else None
        index = stored.get("index", 0) if isinstance(stored, Mapping) else None
        if not isinstance(offset, str) or isinstance(index, bool) or not isinstance(index, int) or index < 0:
            raise ConnectError(
                f'an offset of this source looks like {{"offset": "17", "index": 0}}, not {stored!r}'
            )
        return Place(offset, index)

    def as_offset(self) -> dict[str, Any]:
        return {"offset": self.offset, **({"index": self.index} if self.index else {})}


@dataclass(frozen=True, slots=True)
class Plan:
    url: str
    topic: str
    mode: str
    first: str
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    params: tuple[tuple[str, str], ...] = ()
    body: str = ""
    data: Pointer = Pointer("")
    offset: Pointer = Pointer("")
    next: Pointer = Pointer("")
    key: Pointer | None = None
    as_text: bool = False
    interval_s: float = 15.0
    retries_max: int = 5
    pauses: Pauses = field(default_factory=lambda: Pauses(3000))
    goes_on: bool = False  # behind errors
    retried: Callable[[int], bool] = lambda status: status >= 500

    @property
    def is_fixed(self) -> bool:
        """Whether all requests are the same: each gives all records that the API has."""
        places = (self.url, self.body, *(value for _, value in self.params))
        return not any(OFFSET in each for each in places)

    def request(self, place: Place) -> tuple[str, dict[str, str], bytes | None]:
        """Address, parameters and body of the request at a place."""
        if self.mode == "LINK_PAGINATION" and place.offset:
            return place.offset, {}, None
        params = {name: value.replace(OFFSET, place.offset) for name, value in self.params}
        # A parameter that would be empty is left out: most APIs begin at the first page without a cursor.
        sent = {name: value for (name, raw), value in zip(self.params, params.values(), strict=True)
                if value or OFFSET not in raw}  # fmt: skip
        body = self.body.replace(OFFSET, place.offset).encode() if self.body else None
        return self.url.replace(OFFSET, place.offset), sent, body


@dataclass(frozen=True, slots=True)
class Page:
    rows: list[Any]
    following: str | None  # what the response names as next


def page_of(plan: Plan, document: Any, link: str, url: str) -> Page:
    rows = plan.data.of(document)
    if rows is None:
        rows = []
    elif not isinstance(rows, list):
        rows = [rows]
    found: Any = None
    if plan.next.text:
        found = plan.next.of(document)
    elif plan.mode == "LINK_PAGINATION":
        found = next_link(link)
    if found in (None, "", False):
        return Page(rows, None)
    text = bounded(found)
    if plan.mode == "LINK_PAGINATION":
        text = urljoin(url, text)
        if urlsplit(text)[:2] != urlsplit(url)[:2]:
            raise ConnectError(
                f"the next page lies at {urlsplit(text).scheme}://{urlsplit(text).netloc}, not at the host of"
                " the setting url: logins are not sent to other hosts"
            )
    return Page(rows, text)


def new_rows(plan: Plan, at: Place, page: Page) -> list[Any]:
    """The records of a page that were not read before. APIs whose offset includes the record that has it
    repeat that record, and all before it are old."""
    if plan.mode == "CHAINING":
        for index in range(len(page.rows) - 1, -1, -1):
            if str(plan.offset.of(page.rows[index])) == at.offset:
                return page.rows[index + 1 :]
    return page.rows[at.index :]


def next_link(header: str) -> str | None:
    """The target of `rel=next` of a Link header (RFC 8288)."""
    for target, parameters in LINK.findall(header):
        if REL_NEXT.search(parameters):
            return str(target)
    return None


def next_place(plan: Plan, at: Place, page: Page) -> tuple[Place, bool]:
    """The place behind a page, and whether nothing more is to be had now."""
    count = len(page.rows)
    if plan.mode == "SIMPLE_INCREMENTING":
        return Place(str(whole(at.offset) + count)), count == 0 or plan.is_fixed
    if plan.mode == "CHAINING":
        if not count:
            return at, True
        last = plan.offset.of(page.rows[-1])
        if last is None:
            raise ConnectError(
                f"http.offset.json.pointer: the last record has nothing at {plan.offset.text!r}"
            )
        text = bounded(last)
        return Place(text), text == at.offset
    if page.following is not None and page.following != at.offset:
        return Place(page.following), False
    if plan.mode == "SNAPSHOT_PAGINATION":
        return Place(plan.first), True
    # The last page has no successor yet: it is asked again, and what it had is left out.
    return Place(at.offset, max(at.index, count)), True


def whole(text: str) -> int:
    if not re.fullmatch(r"-?\d{1,18}", text):
        raise ConnectError(
            f"http.initial.offset must be a whole number with SIMPLE_INCREMENTING, and is {text!r}"
        )
    return int(text)


def bounded(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ConnectError(f"the response names {type(value).__name__} as next: a text or a number is needed")
    text = str(value)
    if len(text) > OFFSET_CHARS_MAX:
        raise ConnectError(f"the response names a next page of more than {OFFSET_CHARS_MAX} characters")
    return text
