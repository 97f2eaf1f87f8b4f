"""Files that are being made: in memory while they are small, on the local disk when they grow.

In: records of one folder, piece by piece. Out: a file that is given to the storage as a whole, and can be
given again where the storage was away. Does not know: names, offsets.
"""

from __future__ import annotations

import io
import tempfile
from typing import Any

from barnabas.connect.connectors.objects.cutting import OpenFile
from barnabas.connect.connectors.objects.formats import FileEncoder, Format
from barnabas.connect.connectors.objects.storage import Storage
from barnabas.connect.data import Column
from barnabas.connect.plugins import ConnectError

MEMORY_BYTES = 8 << 20  # of one open file; more goes to the disk
ROW_BYTES = 4096  # the estimate for a row without a schema


class Spool:
    """One file of a format."""

    def __init__(self, form: Format, *, is_large: bool) -> None:
        self._form = form
        self._out: Any = (
            tempfile.TemporaryFile(prefix="barnabas-objects-") if is_large else io.BytesIO()  # noqa: SIM115
        )
        self._encoder: FileEncoder | None = None
        self._is_complete = False

    def write(self, column: Column) -> None:
        try:
            if self._encoder is None:
                self._encoder = FileEncoder(self._form, column.schema, self._out)
            self._encoder.write(column)
        except OSError as error:
            raise ConnectError(  # a part of the piece may be there: the group must begin again
                f"a temporary file in {tempfile.gettempdir()} cannot be written: {error.strerror or error}"
            ) from error

    def send(self, storage: Storage, name: str) -> None:
        """Complete the file and store it. It can be sent again."""
        if not self._is_complete and self._encoder is not None:
            self._encoder.close()
            self._is_complete = True
        self._out.seek(0)
        storage.put_file(name, self._out)

    def close(self) -> None:
        self._out.close()


def is_large(file: OpenFile) -> bool:
    """Whether records of a file that wait in memory should be written out."""
    size = sum(
        len(each) * ROW_BYTES if each.values.schema is None else int(each.values.data.nbytes)
        for each in file.waiting
    )
    return size > MEMORY_BYTES
