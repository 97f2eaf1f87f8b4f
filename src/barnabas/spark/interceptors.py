"""Interceptors: classes that see what tasks read and write, named by the option `interceptors`.

In: the option's text, settings (options that begin with `interceptor.`). Out: objects, which each task makes
anew. An interceptor that raises fails its task. Does not know: what interceptors do with what they see.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from barnabas.spark.basics.settings import ClientSettings, OptionError

if TYPE_CHECKING:
    import pyarrow as pa

    from barnabas.spark.basics.cluster import WorkerCluster
    from barnabas.spark.reading.fetcher import OffsetRange
    from barnabas.spark.writing.encoding import Encoded

OPTION = "interceptors"
SETTINGS = "interceptor."


class Reading(Protocol):
    """Sees one range of offsets of one partition."""

    def read(self, rows: pa.RecordBatch) -> None:
        """Some rows of the range, in order, with the columns that the interceptor asked for: timestamps are
        in microseconds, keys and values as the log has them."""

    def ended(self) -> None:
        """Every row of the range was read. Not called if the query stops before."""


class Writing(Protocol):
    """Sees the rows that one task writes."""

    def acknowledged(self, batch: Encoded, append_time_ms: int) -> None:
        """Rows that the brokers have. The time that the topic gave them is -1 if they have their own."""

    def rows(self) -> pa.Table | None:
        """Rows to write behind all others (columns topic, key and value), in the transaction of the task if
        it has one."""


class Interceptor(Protocol):
    """`Interceptor(settings)` with the options that begin with `interceptor.`, without that. ValueError says
    what is wrong with them."""

    def __init__(self, settings: Mapping[str, str], client: ClientSettings) -> None: ...

    @staticmethod
    def columns(settings: Mapping[str, str]) -> tuple[str, ...]:
        """The columns that a reading needs to see."""

    def reading(self, cluster: WorkerCluster, asked: OffsetRange) -> Reading: ...

    def writing(self, cluster: WorkerCluster) -> Writing: ...


@dataclass(frozen=True, slots=True)
class Interceptors:
    """The classes that a query names, with their settings: it travels to executors."""

    names: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that they need to see, each once."""
        wanted = (each for name in self.names for each in class_named(name).columns(dict(self.settings)))
        return tuple(dict.fromkeys(wanted))

    def make(self, client: ClientSettings) -> Sequence[Interceptor]:
        made = []
        for name in self.names:
            try:
                made.append(class_named(name)(dict(self.settings), client))
            except ValueError as error:
                raise OptionError(f"the option {OPTION}, {name}: {error}") from None
        return made


NO_INTERCEPTORS = Interceptors()


def interceptors_of(options: Mapping[str, str]) -> Interceptors:
    """From options with names in small letters. Settings without a class are refused."""
    names = tuple(each.strip() for each in options.get(OPTION, "").split(",") if each.strip())
    settings = {name[len(SETTINGS) :]: value for name, value in options.items() if name.startswith(SETTINGS)}
    if settings and not names:
        raise OptionError(f"the option {SETTINGS}{next(iter(settings))} needs the option {OPTION}")
    for name in names:
        class_named(name)
    return Interceptors(names, tuple(sorted(settings.items())))


def class_named(name: str) -> type[Interceptor]:
    """`package.module.Class`."""
    module, _, attribute = name.rpartition(".")
    try:
        found: type[Interceptor] = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise OptionError(f"the option {OPTION} names {name}, which cannot be imported: {error}") from None
    return found
