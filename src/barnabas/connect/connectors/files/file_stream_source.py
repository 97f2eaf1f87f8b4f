"""FileStreamSource: the lines of a file, or of standard input, become records of a topic.

Offsets are Apache Kafka's: `{"filename": …}` -> `{"position": …}`. Apache counts decoded characters and skips
bytes, so it loses its place after text that is not ASCII. The offsets here have `bytes` beside `position` as
soon as the two differ, and `bytes` wins.
"""

from __future__ import annotations

import logging
import select
import sys
import time
from collections.abc import Mapping, Sequence
from typing import IO, Any, ClassVar

import pyarrow as pa

from barnabas.connect.config import ConfigDef, non_empty
from barnabas.connect.connectors.files.lines import LineCutter, Lines, LineTooLong
from barnabas.connect.data import STRING, Column, Records
from barnabas.connect.plugins import ConnectError, Connector, SourceContext, SourceTask

LOG = logging.getLogger(__name__)
READ_BYTES = 4 << 20
FILENAME, POSITION, BYTES = "filename", "position", "bytes"


class FileStreamSourceTask(SourceTask):
    """Reads one file from its position on, and waits for more at its end."""

    def start(self, context: SourceContext) -> None:
        super().start(context)
        self._name = context.settings.text("file") or None
        self._topic = context.settings.text("topic")
        self._lines_max = max(1, context.settings.integer("batch.size"))  # as Apache: a line at least
        self._partition = {FILENAME: self._name}
        self._file: IO[bytes] | None = None
        self._cutter = LineCutter()
        [stored] = context.offsets.read([self._partition]) if self._name else [None]
        stored = stored or {}
        self._chars = whole(stored.get(POSITION, 0))
        self._bytes = whole(stored.get(BYTES, self._chars))
        self._warned = False

    def poll(self) -> Records | None:
        while not self.context.stopping.is_set():
            found = self._cutter.pop(self._lines_max)
            if found is not None:
                return self._records(found)
            file = self._opened()
            if file is not None and not self._name and not self._has_input(file):
                return None
            piece = b"" if file is None else file.read(READ_BYTES)
            if not piece:
                self.context.stopping.wait(self.context.poll_seconds)
                return None
            try:
                self._cutter.feed(piece)
            except LineTooLong as error:
                raise ConnectError(f"{self._name}, byte {self._bytes}: {error}") from None
        return None

    def _opened(self) -> IO[bytes] | None:
        if self._file is None and self._name is None:
            self._file = open(sys.stdin.fileno(), "rb", buffering=0, closefd=False)  # noqa: SIM115
        elif self._file is None:
            try:
                self._file = open(str(self._name), "rb", buffering=0)  # noqa: PTH123, SIM115
                self._file.seek(self._bytes)
            except FileNotFoundError:
                if not self._warned:
                    LOG.warning("Couldn't find file %s for FileStreamSourceTask, waiting for it", self._name)
                    self._warned = True
            except OSError as error:
                raise ConnectError(f"{self._name} cannot be read: {error.strerror or error}") from error
        return self._file

    def _has_input(self, file: IO[bytes]) -> bool:
        """Whether a read of standard input returns at once, after some waiting: a stop cannot end a read."""
        return bool(select.select([file], [], [], self.context.poll_seconds)[0])

    def _records(self, lines: Lines) -> Records:
        self._bytes += lines.byte_count
        self._chars += lines.char_count
        offset = {POSITION: self._chars}
        if self._bytes != self._chars:
            offset[BYTES] = self._bytes
        count = len(lines.texts)
        now = pa.repeat(pa.scalar(int(time.time() * 1000), pa.int64()), count)
        positions = [] if self._name is None else [(dict(self._partition), offset)]
        return Records.of(self._topic, Column(STRING, lines.texts), timestamps=now, positions=positions)

    def stop(self) -> None:
        file = getattr(self, "_file", None)
        if file is not None:
            file.close()


def whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ConnectError(
            f"the stored position of the file is {value!r}: it must be a whole number, 0 or more"
        )
    return value


class FileStreamSourceConnector(Connector):
    KIND = "source"
    JAVA_NAMES = ("org.apache.kafka.connect.file.FileStreamSourceConnector",)
    CONFIG: ClassVar[ConfigDef] = (
        ConfigDef()
        .define("file", "STRING", None, "HIGH", "The file to read. Standard input if it is not set.")
        .define("topic", "STRING", importance="HIGH", doc="The topic of the records.", validator=non_empty())
        .define("batch.size", "INT", 2000, "LOW", "How many lines one poll returns at most.")
    )
    task = FileStreamSourceTask

    def exactly_once_support(self, config: Mapping[str, str]) -> bool:
        """A file can be read again from a position, standard input cannot."""
        return bool(config.get("file"))

    def alter_offsets(self, config: Mapping[str, str], offsets: Sequence[tuple[Any, Any]]) -> bool:
        if not config.get("file"):
            raise ConnectError("Offsets cannot be modified if the 'file' configuration is unspecified.")
        for partition, offset in offsets:
            if not isinstance(partition, Mapping) or FILENAME not in partition:
                raise ConnectError("Partition objects should contain the key 'filename'")
            if offset is None:
                continue
            if not isinstance(offset, Mapping) or POSITION not in offset:
                raise ConnectError("Offset objects should either be null or contain the key 'position'")
            position = offset[POSITION]
            if isinstance(position, bool) or not isinstance(position, int):
                raise ConnectError(
                    "The value for the 'position' key in the offset is expected to be a Long value"
                )
            if position < 0:
                raise ConnectError(
                    "The value for the 'position' key in the offset should be a non-negative value"
                )
        return True
