"""Clients of the schema registry: one for each process and each set of properties.

In: properties as text. Out: a client; errors told apart: a registry that does not answer, and one that says
no. Does not know: formats.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from barnabas.plans.serdes import RegistryAway
from barnabas.schemas.client.errors import RegistryError
from barnabas.schemas.client.faces import SchemaRegistryClient
from barnabas.sql.errors import SqlError

T = TypeVar("T")
PREFIX = "ksql.schema.registry."
URL = f"{PREFIX}url"
_clients: dict[RegistryPlace, SchemaRegistryClient] = {}
_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class RegistryPlace:
    """Properties of a registry's client, as they travel to executors. Empty: there is no registry."""

    properties: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> RegistryPlace:
        """From a server's settings: those that begin with `ksql.schema.registry.`."""
        found = {
            name.removeprefix(PREFIX): value for name, value in settings.items() if name.startswith(PREFIX)
        }
        return cls(tuple(sorted(found.items()))) if found.get("url") else cls()

    def __bool__(self) -> bool:
        return bool(self.properties)

    def client(self) -> SchemaRegistryClient:
        if not self.properties:
            raise SqlError(
                f"This format needs a schema registry: set {URL} in the server's properties, or use JSON"
            )
        with _lock:
            found = _clients.get(self)
            if found is None:
                conf: dict[str, Any] = dict(self.properties)
                found = _clients[self] = SchemaRegistryClient(conf)
            return found


def asked(question: Callable[[], T]) -> T:
    """The registry's response. RegistryAway where it does not answer, RegistryError where it says no."""
    try:
        return question()
    except RegistryError as error:
        if error.is_away:
            raise RegistryAway(f"the schema registry does not answer: {error}") from error
        raise
