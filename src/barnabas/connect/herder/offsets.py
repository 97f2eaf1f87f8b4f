"""Offsets of sources by connector and source partition, as the offsets topic holds them.

In: records of the topic, or a file in standalone mode. Out: offsets. Keys are kept as the very bytes that
were read, so that a partition that an Apache worker wrote is overwritten and not doubled.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

Pair = tuple[dict[str, Any], dict[str, Any] | None]


def canonical(partition: Mapping[str, Any]) -> str:
    return json.dumps(partition, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


class Offsets:
    """All offsets that are known. `apply` never fails."""

    def __init__(self) -> None:
        self._found: dict[str, dict[str, tuple[bytes, dict[str, Any], dict[str, Any]]]] = {}

    def apply(self, key: bytes | None, value: bytes | None) -> None:
        try:
            connector, partition = json.loads(key or b"")
            offset = None if value is None else json.loads(value)
        except (ValueError, TypeError):
            return
        if not isinstance(connector, str) or not isinstance(partition, dict):
            return
        held = self._found.setdefault(connector, {})
        if not isinstance(offset, dict):
            held.pop(canonical(partition), None)
        else:
            held[canonical(partition)] = (key or b"", partition, offset)

    def read(self, connector: str, partition: Mapping[str, Any]) -> dict[str, Any] | None:
        found = self._found.get(connector, {}).get(canonical(partition))
        return None if found is None else dict(found[2])

    def of(self, connector: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        return [(dict(each[1]), dict(each[2])) for each in self._found.get(connector, {}).values()]

    def key(self, connector: str, partition: Mapping[str, Any]) -> bytes:
        """The key of a record: the bytes that were read, else Connect's form."""
        found = self._found.get(connector, {}).get(canonical(partition))
        if found is not None:
            return found[0]
        return json.dumps([connector, dict(partition)], separators=(",", ":"), ensure_ascii=False).encode()

    def records(self, connector: str, pairs: Iterable[Pair]) -> list[tuple[bytes, bytes | None]]:
        return [(self.key(connector, partition), value_of(offset)) for partition, offset in pairs]

    def everything(self) -> list[tuple[bytes, bytes]]:
        return [
            (key, value_of(offset) or b"")
            for held in self._found.values()
            for key, _, offset in held.values()
        ]


def value_of(offset: Mapping[str, Any] | None) -> bytes | None:
    if offset is None:
        return None
    return text_of(offset)


def text_of(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
