"""Equipment of a job's pieces on executors: the chain of transforms and converters, clients, a report.

In: settings that travelled from the driver. Out: objects of this process; those that are expensive to make
are kept for the next piece. Does not know: sources, sinks.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from threading import Event

from barnabas.connect.jobs.reports import Report
from barnabas.connect.plugins import Plugins
from barnabas.connect.tasks.auditing import has_sums
from barnabas.connect.tasks.chain import Chain
from barnabas.connect.tasks.dead_letters import NAME as DEAD_LETTER_TOPIC
from barnabas.connect.tasks.dead_letters import DeadLetterQueue
from barnabas.connect.tasks.errors import ErrorHandler, ErrorSettings
from barnabas.connect.tasks.job_parts import TaskParts
from barnabas.connect.tasks.progress import Progress

CONVERTERS = ("key.converter", "value.converter", "header.converter")


@lru_cache(8)
def plugins_in(folders: tuple[str, ...]) -> Plugins:
    return Plugins(folders)


@dataclass(frozen=True)
class Piece:
    """The settings of a task as executors need them. Passwords are among them, so no repr shows them."""

    connector: str
    task: int
    kind: str
    config: Mapping[str, str] = field(repr=False)
    converters: Mapping[str, str] = field(repr=False)  # of the worker
    folders: tuple[str, ...]  # of `plugin.path`
    producer: Mapping[str, str] = field(repr=False)  # properties
    has_sums: bool = False  # of what records hold, for the audit

    @classmethod
    def of(cls, parts: TaskParts, kind: str, producer: Mapping[str, str]) -> Piece:
        converters = {name: text for name, text in parts.worker.items() if name.startswith(CONVERTERS)}
        folders = parts.plugins.folders
        config, sums = dict(parts.config), has_sums(parts.worker)
        return cls(parts.connector, parts.task, kind, config, converters, folders, dict(producer), sums)

    def open(self) -> OpenPiece:
        return OpenPiece(self)


class OpenPiece:
    """A piece at work. `close` ends its clients."""

    def __init__(self, piece: Piece) -> None:
        from pyspark import TaskContext

        context = TaskContext.get()
        self.number = 0 if context is None else context.partitionId()
        self.is_first_attempt = context is None or not (context.attemptNumber() or stage_attempt(context))
        self.progress = Progress(piece.connector, piece.task, piece.kind)
        self.dead_letters = None
        if piece.kind == "sink" and piece.config.get(DEAD_LETTER_TOPIC, "").strip():
            self.dead_letters = DeadLetterQueue(piece.config, piece.producer, self.progress, Event())
        errors = ErrorHandler(ErrorSettings.of(piece.config), self.progress, Event(), self.dead_letters)
        self.chain = Chain.of(piece.converters, piece.config, plugins_in(piece.folders), errors)

    def report(self) -> Report:
        return Report.of(self.progress, socket.gethostname(), self.number)

    def close(self) -> None:
        self.chain.close()
        if self.dead_letters is not None:
            self.dead_letters.close()


def stage_attempt(context: object) -> int:
    """The attempt number of the whole stage; 0 if Spark does not tell."""
    found = getattr(context, "stageAttemptNumber", None)
    return int(found()) if callable(found) else 0
