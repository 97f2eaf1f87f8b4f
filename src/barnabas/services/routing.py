"""Finds the route of a path, segment by segment.

In: routes, then a method and the path as it was sent. Out: the route with its parameters, or ApiError (400,
404, 405). Segments are decoded one by one, so a parameter may hold an encoded slash. Words win over
parameters, whatever the order of the routes. A slash at the end does not matter.
Does not know: endpoints, callers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import unquote_to_bytes

from barnabas.services.errors import ApiError
from barnabas.services.routes import AnyRoute, ServiceRoute

WEB_SOCKET = "WEBSOCKET"
PATH_LENGTH_MAX = 16 * 1024
SEGMENTS_MAX = 64
KINDS = ("", "str", "int", "path")


class Place:
    """A node of the tree of segments."""

    __slots__ = ("named", "rest", "routes", "words")

    def __init__(self) -> None:
        self.words: dict[str, Place] = {}
        self.named: Place | None = None  # behind a parameter
        self.rest: dict[str, Leaf] = {}  # routes whose last parameter takes all segments that are left
        self.routes: dict[str, Leaf] = {}  # by method


class Leaf:
    __slots__ = ("names", "numbers", "route")

    def __init__(self, route: AnyRoute, names: tuple[str, ...], numbers: frozenset[str]) -> None:
        self.route = route
        self.names = names
        self.numbers = numbers  # parameters that are whole numbers


class RouteTable:
    def __init__(self, routes: Iterable[AnyRoute]) -> None:
        self._root = Place()
        for route in routes:
            self._add(route)

    def find(self, method: str, raw_path: bytes) -> tuple[AnyRoute, dict[str, Any]]:
        """The route and its parameters. ApiError says why there is none."""
        path = raw_path.decode("latin-1")
        segments = path.strip("/").split("/") if path.strip("/") else []
        if len(raw_path) > PATH_LENGTH_MAX or len(segments) > SEGMENTS_MAX:
            raise ApiError(414, 414, f"HTTP 414 URI Too Long: the path has {len(raw_path)} characters")
        values = [decoded(each) for each in segments]
        allowed: set[str] = set()
        found = search(self._root, values, method, allowed)
        if found is not None:
            return found
        if allowed - {WEB_SOCKET} and method != WEB_SOCKET:
            methods = ", ".join(sorted(allowed - {WEB_SOCKET}))
            raise ApiError(
                405, 405, f"HTTP 405 Method Not Allowed: this path takes {methods}", {"allow": methods}
            )
        raise ApiError(404, 404, f"HTTP 404 Not Found: nothing is served at {shown(path)}")

    def _add(self, route: AnyRoute) -> None:
        place = self._root
        names: list[str] = []
        numbers: set[str] = set()
        segments = [each for each in route.path.split("/") if each]
        methods = route.methods or () if isinstance(route, ServiceRoute) else (WEB_SOCKET,)
        for index, segment in enumerate(segments):
            if "{" not in segment:
                place = place.words.setdefault(segment, Place())
                continue
            name, kind = parameter(route.path, segment)
            names.append(name)
            if kind == "path":
                if index != len(segments) - 1:
                    raise ValueError(f"{route.path}: only the last parameter may be a path")
                self._put(place.rest, methods, Leaf(route, tuple(names), frozenset(numbers)))
                return
            if kind == "int":
                numbers.add(name)
            if place.named is None:
                place.named = Place()
            place = place.named
        self._put(place.routes, methods, Leaf(route, tuple(names), frozenset(numbers)))

    def _put(self, routes: dict[str, Leaf], methods: Iterable[str], leaf: Leaf) -> None:
        for method in methods:
            if method in routes:
                raise ValueError(f"{method} {leaf.route.path} and {routes[method].route.path} are the same")
            routes[method] = leaf


def parameter(path: str, segment: str) -> tuple[str, str]:
    name, _, kind = segment[1:-1].partition(":")
    if segment[0] != "{" or segment[-1] != "}" or not name.isidentifier() or kind not in KINDS:
        raise ValueError(f"{path}: {segment} is neither a word nor one parameter in braces")
    return name, kind


def search(
    place: Place,
    values: Sequence[str],
    method: str,
    allowed: set[str],
    index: int = 0,
    given: tuple[str, ...] = (),
) -> tuple[AnyRoute, dict[str, Any]] | None:
    """The first place below this one with a route for the method. `allowed` gets the methods of others."""
    if index == len(values):
        return leaf_of(place.routes, method, given, allowed)
    value = values[index]
    word = place.words.get(value)
    found = None
    if word is not None:
        found = search(word, values, method, allowed, index + 1, given)
    if found is None and value and place.named is not None:
        found = search(place.named, values, method, allowed, index + 1, (*given, value))
    if found is None and place.rest:
        found = leaf_of(place.rest, method, (*given, "/".join(values[index:])), allowed)
    return found


def leaf_of(
    routes: dict[str, Leaf], method: str, given: tuple[str, ...], allowed: set[str]
) -> tuple[AnyRoute, dict[str, Any]] | None:
    leaf = routes.get(method)
    if leaf is None:
        allowed.update(routes)
        return None
    found: dict[str, Any] = dict(zip(leaf.names, given, strict=True))
    for name in leaf.numbers:
        text = found[name]
        if not (text.isascii() and text.isdigit() and len(text) <= 19):
            return None
        found[name] = int(text)
    return leaf.route, found


def decoded(segment: str) -> str:
    if "%" not in segment:
        return segment
    try:
        return unquote_to_bytes(segment).decode()
    except UnicodeDecodeError:
        raise ApiError(400, 400, f"the path has bytes that are not UTF-8: {shown(segment)}") from None


def shown(path: str) -> str:
    """A path for a message: short, and without characters that a terminal obeys."""
    text = path if path.isprintable() else repr(path)
    return text if len(text) <= 200 else f"{text[:200]}…"
