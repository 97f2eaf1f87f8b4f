"""Typed settings of a connector, task, transform or converter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from barnabas.connect.config.types import Password


class Settings(Mapping[str, Any]):
    """Typed values by name, defaults included. `raw` is what the user gave, unknown names included."""

    __slots__ = ("_values", "raw")

    def __init__(self, values: Mapping[str, Any], raw: Mapping[str, str | None] | None = None) -> None:
        self._values = dict(values)
        self.raw: dict[str, str | None] = dict(raw or {})

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Settings({self._values!r})"

    def text(self, name: str) -> str:
        """A text; a password in the clear; empty where there is none."""
        value = self._values[name]
        return value.value if isinstance(value, Password) else "" if value is None else str(value)

    def integer(self, name: str) -> int:
        return int(self._values[name])

    def decimal(self, name: str) -> float:
        return float(self._values[name])

    def flag(self, name: str) -> bool:
        return bool(self._values[name])

    def entries(self, name: str) -> list[str]:
        """The entries of a list; none where it is not set."""
        return list(self._values[name] or ())

    def prefixed(self, prefix: str) -> dict[str, str | None]:
        """The user's settings under a prefix, with the prefix removed."""
        return {
            name.removeprefix(prefix): value
            for name, value in self.raw.items()
            if name.startswith(prefix) and name != prefix
        }
