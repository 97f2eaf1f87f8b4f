"""Handlers of log lines: to standard error, or to files that are rolled and bounded, as Kafka's are split.

In: records of Python's `logging`, from any thread. Out: `server.log`, `controller.log`, `state-change.log`,
`kafka-request.log`, `kafka-authorizer.log` and `log-cleaner.log` in a folder. A thread writes the files, so
that the event loop does not wait for the disk. It has a queue of bounded length: lines that do not fit are
counted, and the count is a line. Does not know: levels.
"""

from __future__ import annotations

import contextlib
import copy
import logging
import queue
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from logging.handlers import QueueHandler, QueueListener, RotatingFileHandler
from pathlib import Path

from barnabas.broker.log_lines.forms import TEXT, formatter
from barnabas.broker.log_lines.names import FILES, SERVER, file_of

TRACEBACKS = logging.Formatter()
LINES_MAX = 10_000  # that wait for the thread
log = logging.getLogger("barnabas")


@dataclass(frozen=True, slots=True)
class Places:
    """The destination of lines, and their form."""

    folder: Path | None = None  # None: standard error
    form: str = TEXT
    bytes_max: int = 100 << 20  # of a file before it is rolled
    files_max: int = 10  # that are kept of each, the open one included


class BoundedQueueHandler(QueueHandler):
    """Drops lines when the thread cannot keep up with them."""

    def __init__(self, lines: queue.Queue[logging.LogRecord]) -> None:
        super().__init__(lines)
        self.dropped = 0

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        """Make the text here, where its arguments are as they were; a traceback stays apart."""
        made = copy.copy(record)
        made.msg, made.args = record.getMessage(), None
        if record.exc_info:
            made.exc_text = TRACEBACKS.formatException(record.exc_info)
            made.exc_info = None
        return made

    def enqueue(self, record: logging.LogRecord) -> None:
        try:
            self.queue.put_nowait(record)
        except queue.Full:
            self.dropped += 1
            return
        if self.dropped:
            dropped, self.dropped = self.dropped, 0
            log.warning("%d lines were not written: the disk of the log files is too slow", dropped)


class SplitHandler(logging.Handler):
    """Gives each record to the file of its logger."""

    def __init__(self, places: Places) -> None:
        super().__init__()
        assert places.folder is not None
        places.folder.mkdir(parents=True, exist_ok=True)
        form = formatter(places.form)
        self._files: dict[str, RotatingFileHandler] = {}
        for name in (SERVER, *FILES):
            handler = RotatingFileHandler(
                places.folder / f"{name}.log",
                maxBytes=places.bytes_max,
                backupCount=max(places.files_max - 1, 1),
                encoding="utf-8",
                delay=True,
            )
            handler.setFormatter(form)
            self._files[name] = handler

    def emit(self, record: logging.LogRecord) -> None:
        self._files[file_of(record.name)].handle(record)

    def close(self) -> None:
        for handler in self._files.values():
            handler.close()
        super().close()


@contextlib.contextmanager
def writing(places: Places) -> Iterator[None]:
    """Write the lines of all loggers there until the end of the context. OSError: the folder cannot be
    made."""
    root = logging.getLogger()
    before = list(root.handlers)
    for handler in before:
        root.removeHandler(handler)
    if places.folder is None:
        stream = logging.StreamHandler(sys.stderr)
        stream.setFormatter(formatter(places.form))
        root.addHandler(stream)
        try:
            yield
        finally:
            root.removeHandler(stream)
            root.handlers[:] = before
        return
    files = SplitHandler(places)
    lines: queue.Queue[logging.LogRecord] = queue.Queue(LINES_MAX)
    handler = BoundedQueueHandler(lines)
    listener = QueueListener(lines, files)
    root.addHandler(handler)
    listener.start()
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.handlers[:] = before
        listener.stop()
        files.close()
