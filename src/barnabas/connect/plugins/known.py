"""A plugin as it is known before its module is imported: its kind, its place, the names that mean it.

Rooms of this package list theirs in a module `known` (`PLUGINS`, a sequence of `Known`); packages of others
declare entry points. Nothing here imports a plugin: a worker loads only what its connectors use.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from typing import Any

from barnabas import __version__
from barnabas.connect.plugins.errors import PluginLoadError


class Kind(StrEnum):
    """Kinds of plugins, in the order and with the words of `GET /connector-plugins`."""

    SINK = "sink"
    SOURCE = "source"
    TRANSFORMATION = "transformation"
    PREDICATE = "predicate"
    CONVERTER = "converter"
    HEADER_CONVERTER = "header_converter"


CONNECTORS = (Kind.SINK, Kind.SOURCE)
APACHE, APACHE_VERSION = "org.apache.kafka.", "4.3.1"
SUFFIXES = {  # what a short name may leave out
    Kind.SINK: ("Connector",),
    Kind.SOURCE: ("Connector",),
    Kind.TRANSFORMATION: ("Transformation",),
    Kind.PREDICATE: ("Predicate",),
    Kind.CONVERTER: ("Converter",),
    Kind.HEADER_CONVERTER: ("HeaderConverter", "Converter"),
}


@dataclass(frozen=True, slots=True)
class Known:
    """`target` is `package.module:Class`; `names` are classes of Java, the first of which users see."""

    kind: Kind
    target: str
    names: tuple[str, ...] = ()
    own_version: str = __version__

    @property
    def version(self) -> str:
        """The version of Apache Kafka for a plugin that stands for a class of Apache's, else its own."""
        return APACHE_VERSION if self.name.startswith(APACHE) else self.own_version

    @property
    def name(self) -> str:
        """The class as `GET /connector-plugins` shows it."""
        return self.names[0] if self.names else self.target.replace(":", ".")

    def load(self) -> Any:
        """The class. PluginLoadError says which package is missing."""
        module, _, attribute = self.target.partition(":")
        try:
            found: Any = import_module(module)
            for part in attribute.split("."):
                found = getattr(found, part)
        except Exception as error:
            raise PluginLoadError(
                f"{self.name} cannot be loaded from {self.target}: {type(error).__name__}: {error}"
            ) from error
        return found

    def spellings(self) -> set[str]:
        """Full names; the part behind the last dot; that without the suffix of its kind."""
        found = {self.target, self.target.replace(":", "."), *self.names}
        for full in [*self.names, self.target.replace(":", ".")]:
            simple = full.rpartition(".")[2]
            found.add(simple)
            found.update(simple.removesuffix(suffix) for suffix in SUFFIXES[self.kind])
        return found - {""}
