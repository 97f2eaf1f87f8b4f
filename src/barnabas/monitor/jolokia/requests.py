"""Requests in Jolokia's protocol, from the path of a GET or the JSON of a POST.

In: `/read/MBEAN/ATTRIBUTE/PATH` with `!` as escape, or `{"type": "read", "mbean": ...}`. Out: a value, or
JolokiaError with the status and the Java exception that Jolokia answers with. Does not know: MBeans, HTTP.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

ESCAPE = "!"
READ, SEARCH, LIST, VERSION = "read", "search", "list", "version"
SERVED = (READ, SEARCH, LIST, VERSION)
REFUSED = ("write", "exec", "notification", "regnotif", "addnotif", "remnotif")
BULK_MAX = 1_000
ATTRIBUTES_MAX = 1_000
SECURITY = "java.lang.SecurityException"
ILLEGAL = "java.lang.IllegalArgumentException"
NO_MBEAN = "javax.management.InstanceNotFoundException"
NO_ATTRIBUTE = "javax.management.AttributeNotFoundException"


class JolokiaError(Exception):
    def __init__(self, status: int, error_type: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.error_type = error_type


@dataclass(frozen=True, slots=True)
class JolokiaRequest:
    type: str
    mbean: str = ""
    attributes: tuple[str, ...] | None = None  # None: all
    has_one_attribute: bool = False  # it was named as a text: the value stands alone
    path: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)

    def option(self, name: str, default: str) -> str:
        return self.options.get(name, default)

    @property
    def ignores_errors(self) -> bool:
        return self.option("ignoreErrors", "false").lower() == "true"

    @property
    def is_canonical(self) -> bool:
        return self.option("canonicalNaming", "true").lower() != "false"

    @property
    def depth_max(self) -> int:
        text = self.option("maxDepth", "0")
        return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def of_path(text: str, options: Mapping[str, str]) -> JolokiaRequest:
    """The request of a GET: `read/MBEAN/A1,A2/inner/path`."""
    parts = split_path(text)
    if not parts:
        return JolokiaRequest(VERSION, options=options)
    kind, rest = parts[0].lower(), parts[1:]
    check_type(kind)
    if kind == VERSION:
        return JolokiaRequest(VERSION, options=options)
    if kind == LIST:
        return JolokiaRequest(LIST, path=tuple(rest), options=options)
    if not rest:
        raise JolokiaError(400, ILLEGAL, f"No MBean name given for the request {kind}")
    if kind == SEARCH:
        return JolokiaRequest(SEARCH, rest[0], options=options)
    names = tuple(each for each in rest[1].split(",") if each) if len(rest) > 1 else ()
    return JolokiaRequest(
        READ,
        rest[0],
        bounded(names) or None,
        has_one_attribute=len(names) == 1,
        path=tuple(rest[2:]),
        options=options,
    )


def of_json(data: Any, options: Mapping[str, str]) -> JolokiaRequest:
    """The request of a POST, or one of a bulk of them."""
    if not isinstance(data, dict):
        raise JolokiaError(400, ILLEGAL, f"A request is a JSON object, not {type(data).__name__}")
    kind = data.get("type")
    if not isinstance(kind, str):
        raise JolokiaError(400, ILLEGAL, "Type is required: read, search, list or version")
    kind = kind.lower()
    check_type(kind)
    if "target" in data:
        raise JolokiaError(403, SECURITY, "This agent is no proxy: ask the target itself")
    own = data.get("config") or data.get("options") or {}
    if not isinstance(own, dict):
        raise JolokiaError(400, ILLEGAL, "config is a JSON object")
    found = {**options, **{str(name): text_of(value) for name, value in own.items()}}
    path = tuple(split_path(text_in(data, "path"))) if data.get("path") is not None else ()
    if kind in (LIST, VERSION):
        return JolokiaRequest(kind, path=path, options=found)
    mbean = text_in(data, "mbean")
    if not mbean:
        raise JolokiaError(400, ILLEGAL, f"No MBean name given for the request {kind}")
    if kind == SEARCH:
        return JolokiaRequest(SEARCH, mbean, options=found)
    given = data.get("attribute")
    names: tuple[str, ...] | None = None
    if isinstance(given, str) and given:
        names = (given,)
    elif isinstance(given, list):
        names = bounded(tuple(str(each) for each in given)) or None
    elif given is not None and given != "":
        raise JolokiaError(400, ILLEGAL, "attribute is a text or a list of texts")
    return JolokiaRequest(READ, mbean, names, isinstance(given, str) and bool(given), path, found)


def check_type(kind: str) -> None:
    if kind in REFUSED:
        raise JolokiaError(403, SECURITY, f"{kind} is not allowed: MBeans can only be read here")
    if kind not in SERVED:
        raise JolokiaError(400, ILLEGAL, f"No type with name '{kind}' exists")


def bounded(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(names) > ATTRIBUTES_MAX:
        raise JolokiaError(400, ILLEGAL, f"{len(names)} attributes are named, {ATTRIBUTES_MAX} are allowed")
    return names


def text_in(data: Mapping[str, Any], name: str) -> str:
    value = data.get(name)
    if value is not None and not isinstance(value, str):
        raise JolokiaError(400, ILLEGAL, f"{name} is a text")
    return value or ""


def text_of(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def split_path(text: str) -> list[str]:
    """Parts between slashes; `!/` is a slash in a part, `!!` an exclamation mark."""
    parts, part, is_escaped = [], [], False
    for letter in text:
        if is_escaped:
            part.append(letter)
            is_escaped = False
        elif letter == ESCAPE:
            is_escaped = True
        elif letter == "/":
            parts.append("".join(part))
            part = []
        else:
            part.append(letter)
    parts.append("".join(part))
    return [each for each in parts if each]


def joined_path(parts: tuple[str, ...]) -> str:
    return "/".join(part.replace("!", "!!").replace("/", "!/") for part in parts)
