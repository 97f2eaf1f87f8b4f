"""FileStreamSink: each value becomes a line of a file, or of standard output.

The line is Java's `toString` of the value, as Apache Kafka writes it. A file is written to the disk before
offsets are committed, so nothing is lost; lines since the last commit may come twice after a crash, as there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import IO, Any, ClassVar

from barnabas.connect.config import ConfigDef
from barnabas.connect.connectors.files.java_text import lines_of
from barnabas.connect.data import Records
from barnabas.connect.plugins import ConnectError, Connector, SinkContext, SinkOffsets, SinkTask


class FileStreamSinkTask(SinkTask):
    def start(self, context: SinkContext) -> None:
        super().start(context)
        self._name = context.settings.text("file")
        self._file: IO[bytes] | None = None
        if not self._name:
            return
        try:
            self._file = open(self._name, "ab")  # noqa: PTH123, SIM115
        except OSError as error:
            raise ConnectError(
                f"Couldn't open or create file {self._name}: {error.strerror or error}"
            ) from error

    def put(self, records: Records) -> None:
        lines = lines_of(records.values)
        try:
            if self._file is None:
                sys.stdout.write(bytes(lines).decode(errors="replace"))
            else:
                self._file.write(lines)
        except OSError as error:
            raise ConnectError(f"{self._name or 'standard output'} cannot be written: {error}") from error

    def flush(self, offsets: SinkOffsets) -> SinkOffsets | None:
        try:
            if self._file is None:
                sys.stdout.flush()
            else:
                self._file.flush()
                os.fsync(self._file.fileno())
        except OSError as error:
            raise ConnectError(f"{self._name or 'standard output'} cannot be written: {error}") from error
        return None

    def stop(self) -> None:
        file = getattr(self, "_file", None)
        if file is not None:
            file.close()


class FileStreamSinkConnector(Connector):
    KIND = "sink"
    JAVA_NAMES = ("org.apache.kafka.connect.file.FileStreamSinkConnector",)
    CONFIG: ClassVar[ConfigDef] = ConfigDef().define(
        "file", "STRING", None, "HIGH", "The file to append to. Standard output if it is not set."
    )
    task = FileStreamSinkTask

    def alter_offsets(self, config: Mapping[str, str], offsets: Sequence[tuple[Any, Any]]) -> bool:
        """Any offset will do: the file does not tell which records it has."""
        return True
