"""State stores as values, and the port through which a task keeps their bytes.

In: names, kinds, formats, how long windows are kept. Out: definitions that a plan holds. A task keeps
*pages*: a few bytes under a key of bytes; it reads a page once and writes it once in a batch
(`interpreter`). Does not know: how pages are laid out, where they lie.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from barnabas.plans.serdes import Serde


class StoreKind(Enum):
    """The kind of value that a store keeps under a key."""

    KEY_VALUE = "key value"  # plain values: stores of processors
    TIMESTAMPED = "timestamped key value"  # a value with its timestamp: tables
    WINDOWED_TABLE = "windowed table"  # the same, with a window in the key: views of such tables
    VERSIONED = "versioned key value"  # the versions of a value, by time
    WINDOW = "window"  # a value with its timestamp for each window start
    JOIN_WINDOW = "join window"  # records of one side of a join, by time
    SESSION = "session"  # a value for each session
    SUPPRESS = "suppress buffer"  # changes that wait, by time
    OUTER_JOIN = "outer join"  # records of both sides that found no match yet, by time
    JOIN_BUFFER = "join buffer"  # stream records that wait for a versioned table
    SUBSCRIPTIONS = "foreign-key subscriptions"  # by foreign key, then by key


@dataclass(frozen=True, slots=True)
class StoreSpec:
    """A store of a plan. `source_topic` is set where a topic that exists anyway serves as the changelog of a
    table. `right_serde` is the format of the right side's values in a store of an outer join. `page_ms`: the
    time that one page of a key covers in stores of windows, sessions and joins; 0: all that a key has."""

    name: str
    kind: StoreKind
    key_serde: Serde | None = None
    value_serde: Serde | None = None
    retention_ms: int = 0
    window_size_ms: int = 0
    history_ms: int = 0
    is_logged: bool = True
    log_config: Mapping[str, str] = field(default_factory=dict)
    source_topic: str | None = None
    is_global: bool = False
    right_serde: Serde | None = None
    page_ms: int = 0

    def changelog_topic(self, application_id: str) -> str | None:
        """The topic that gets every change: Kafka Streams' name."""
        if self.source_topic is not None:
            return self.source_topic
        return f"{application_id}-{self.name}-changelog" if self.is_logged else None


class StateBackend(Protocol):
    """The pages of a task: bytes by store and key. One task owns one backend.

    `range` is in the order of the keys' bytes, `last` not included; a task asks for it only on behalf of
    processors that read ranges of their stores and for interactive reads, never while it runs other
    operators.
    """

    def get(self, store: str, key: bytes) -> bytes | None: ...

    def get_many(self, store: str, keys: Sequence[bytes]) -> list[bytes | None]: ...

    def put(self, store: str, key: bytes, page: bytes) -> None: ...

    def put_many(self, store: str, pages: Iterable[tuple[bytes, bytes]]) -> None: ...

    def delete(self, store: str, key: bytes) -> None: ...

    def range(self, store: str, first: bytes | None, last: bytes | None) -> Iterator[tuple[bytes, bytes]]: ...


class MemoryBackend:
    """Pages in a dict: for tests, and for tasks whose state lives as long as they do."""

    def __init__(self) -> None:
        self.pages: dict[tuple[str, bytes], bytes] = {}

    def get(self, store: str, key: bytes) -> bytes | None:
        return self.pages.get((store, key))

    def get_many(self, store: str, keys: Sequence[bytes]) -> list[bytes | None]:
        return [self.pages.get((store, key)) for key in keys]

    def put(self, store: str, key: bytes, page: bytes) -> None:
        self.pages[store, key] = page

    def put_many(self, store: str, pages: Iterable[tuple[bytes, bytes]]) -> None:
        self.pages.update(((store, key), page) for key, page in pages)

    def delete(self, store: str, key: bytes) -> None:
        self.pages.pop((store, key), None)

    def range(self, store: str, first: bytes | None, last: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        found = sorted(
            (key, page)
            for (name, key), page in self.pages.items()
            if name == store and (first is None or key >= first) and (last is None or key < last)
        )
        return iter(found)
