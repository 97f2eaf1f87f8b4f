"""Responses by id, kept as bytes: most requests ask for the same few schemas.

In: a version and the form of its response. Out: the bytes of the response, if they were made before. An entry
belongs to one `Version`, which is replaced when anything about it changes.
Does not know: how responses are made.
"""

from __future__ import annotations

from collections import OrderedDict

from barnabas.registry.state.model import Version

COUNT_MAX = 20_000
BYTES_MAX = 32 << 20


class BodyCache:
    """The least recently used leave first. Used by the event loop alone."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[Version, str], bytes] = OrderedDict()
        self._bytes = 0

    def get(self, version: Version, form: str) -> bytes | None:
        key = (version, form)
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
        return found

    def put(self, version: Version, form: str, body: bytes) -> None:
        if len(body) > BYTES_MAX // 8:
            return
        earlier = self._kept.pop((version, form), b"")
        self._kept[(version, form)] = body
        self._bytes += len(body) - len(earlier)
        while len(self._kept) > COUNT_MAX or self._bytes > BYTES_MAX:
            _, dropped = self._kept.popitem(last=False)
            self._bytes -= len(dropped)
