"""Errors that connectors raise, and what the runtime makes of each.

A `RetriableError` is tried again after a pause; any other error fails the task, or follows `errors.tolerance`
where it belongs to one record. Does not know: tasks, records.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class ConnectError(Exception):
    """Something that a connector cannot do; the message says what is wrong and what would be right."""


class RetriableError(ConnectError):
    """An error that may pass in a moment: the system behind the connector is away, busy or locked."""


class FencedError(ConnectError):
    """Another task has taken over this task's transactional id: this one must end."""


class UnknownPluginError(ConnectError):
    """No plugin has this name; `known` are the names that would be right."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        self.kind = kind
        self.name = name
        self.known: Sequence[str] = sorted(known)
        super().__init__(f"no {kind} is called {name!r}; known are: {', '.join(self.known) or 'none at all'}")


class PluginLoadError(ConnectError):
    """A plugin is known by name, but its module cannot be imported."""
