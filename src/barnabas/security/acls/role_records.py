"""Bindings as records of a compacted topic: the key is the binding, an empty value removes it.

In: keys and values. Out: bindings. A record that is none of ours is left out: everybody who may write to the
topic could otherwise stop every broker from reading it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from barnabas.security.acls.roles import Binding

BINDINGS_MAX = 10_000
KEY_BYTES_MAX = 4096
PRESENT = b"1"


def key_of(binding: Binding) -> bytes:
    """The same bytes for equal bindings: compaction compares keys."""
    fields = [binding.principal, binding.role, binding.resource, binding.name, binding.is_prefix]
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()


def binding_of(key: bytes | None) -> Binding | None:
    if key is None or len(key) > KEY_BYTES_MAX:
        return None
    try:
        fields = json.loads(key)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, list) or len(fields) != 5:
        return None
    principal, role, resource, name, is_prefix = fields
    if not all(isinstance(each, str) for each in fields[:4]) or not isinstance(is_prefix, bool):
        return None
    return Binding(principal, role, resource, name, is_prefix)


class Bindings:
    """The bindings that a topic holds, as far as it was read."""

    def __init__(self) -> None:
        self._present: dict[Binding, None] = {}

    def __iter__(self) -> Iterator[Binding]:
        return iter(sorted(self._present))

    def __len__(self) -> int:
        return len(self._present)

    def apply(self, records: Iterable[tuple[bytes | None, bytes | None]]) -> list[tuple[Binding, bool]]:
        """Take in records in their order. Returns the bindings that changed, and whether each is present."""
        changes: list[tuple[Binding, bool]] = []
        for key, value in records:
            binding = binding_of(key)
            if binding is None:
                continue
            is_present = bool(value)
            if is_present == (binding in self._present):
                continue
            if not is_present:
                del self._present[binding]
            elif len(self._present) < BINDINGS_MAX:
                self._present[binding] = None
            else:
                continue
            changes.append((binding, is_present))
        return changes
