"""Storage of the objects connectors' files: a folder, or a bucket of an object store.

In: names below the root, bytes. Out: files that appear as a whole or not at all. Does not know: formats.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from glob import escape
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from barnabas.connect.plugins import ConnectError, RetriableError
from barnabas.engine.places.object_store import NoRecords, open_store

TEMPORARY = "+tmp"
COPY_BYTES = 1 << 20
MEMORY_BYTES = 8 << 20  # of a file that is read; more goes to the local disk
RETRIES = (3, 0.2)  # of one request: how often, and seconds before the first
BACKOFF_S_MAX = 15.0


class Storage(Protocol):
    def put_file(self, name: str, file: Any) -> None:
        """Write or replace a file with the content of a local one that is open for reading."""

    def open(self, name: str) -> Any:
        """A file, open for reading. At most a few megabytes of it are in memory."""

    def names(self, prefix: str, since_ms: int = 0) -> list[str]:
        """Names below a folder, sorted, of files that were written at that time or later. Temporary files are
        left out."""

    def drop_unfinished(self, folder: str, beginning: str) -> None:
        """Delete temporary files, whose names begin so, of a task that was before: it cannot finish them."""

    def close(self) -> None:
        """End connections."""


class FolderStorage:
    def __init__(self, root: Path) -> None:
        self._root = root

    def put_file(self, name: str, file: Any) -> None:
        path = self._root / name
        top = name.split("/", 1)[0]
        beside = self._root / top / TEMPORARY / f"{path.name}.{os.getpid()}"
        try:
            beside.parent.mkdir(parents=True, exist_ok=True)
            path.parent.mkdir(parents=True, exist_ok=True)
            with beside.open("wb") as out:
                shutil.copyfileobj(file, out, COPY_BYTES)
                out.flush()
                os.fsync(out.fileno())
            beside.replace(path)
        except OSError as error:  # a full disk may have room again later
            beside.unlink(missing_ok=True)
            raise RetriableError(f"{path} cannot be written: {error.strerror or error}") from error

    def open(self, name: str) -> Any:
        try:
            return (self._root / name).open("rb")
        except OSError as error:
            raise RetriableError(f"{self._root / name} cannot be read: {error.strerror or error}") from error

    def names(self, prefix: str, since_ms: int = 0) -> list[str]:
        files = [each for each in (self._root / prefix).rglob("*") if each.is_file()]
        if since_ms:
            files = [each for each in files if each.stat().st_mtime_ns >= since_ms * 1_000_000]
        found = [each.relative_to(self._root) for each in files]
        return sorted(str(each) for each in found if TEMPORARY not in each.parts)

    def drop_unfinished(self, folder: str, beginning: str) -> None:
        for path in (self._root / folder.split("/", 1)[0] / TEMPORARY).glob(f"{escape(beginning)}*"):
            path.unlink(missing_ok=True)

    def close(self) -> None:
        """Nothing is open."""


class ObjectStorage:
    def __init__(
        self,
        url: str,
        settings: Mapping[str, str],
        part_bytes: int,
        options: Mapping[str, str],
        retries: tuple[int, float],
    ) -> None:
        self._url = url.rstrip("/")
        self._part_bytes = part_bytes
        count, pause_s = retries
        retry_config = {
            "max_retries": count,
            "backoff": {
                "init_backoff": timedelta(seconds=pause_s),
                "max_backoff": timedelta(seconds=max(pause_s, BACKOFF_S_MAX)),
                "base": 2,
            },
        }
        try:
            self._client, self._store, self._prefix = open_store(
                self._url, settings, retry_config=retry_config, **options
            )
        except NoRecords as error:
            raise ConnectError(str(error)) from None

    def _path(self, name: str) -> str:
        return f"{self._prefix}/{name}" if self._prefix else name

    def put_file(self, name: str, file: Any) -> None:
        """In parts of `s3.part.size`, as a multipart upload."""
        try:
            self._client.put(self._store, self._path(name), file, chunk_size=self._part_bytes)
        except Exception as error:
            raise unavailable(self._url, name, error) from error

    def open(self, name: str) -> Any:
        found = local_file()
        try:
            for piece in self._client.get(self._store, self._path(name)).stream(COPY_BYTES):
                found.write(piece)
        except Exception as error:
            found.close()
            raise unavailable(self._url, name, error) from error
        found.seek(0)
        return found

    def names(self, prefix: str, since_ms: int = 0) -> list[str]:
        cut = len(self._prefix) + 1 if self._prefix else 0
        since = datetime.fromtimestamp(since_ms / 1000, UTC)
        try:
            pages: Any = self._client.list(self._store, prefix=self._path(prefix))
            found = [each for page in pages for each in page if each["last_modified"] >= since]
            return sorted(str(each["path"])[cut:] for each in found)
        except Exception as error:
            raise unavailable(self._url, prefix, error) from error

    def drop_unfinished(self, folder: str, beginning: str) -> None:
        """Uploads that are not complete are no objects."""

    def close(self) -> None:
        """The client ends its connections itself."""


def local_file() -> Any:
    """A file of this machine: in memory while it is small."""
    return tempfile.SpooledTemporaryFile(MEMORY_BYTES, prefix="barnabas-objects-")


def unavailable(root: str, name: str, error: Exception) -> RetriableError:
    return RetriableError(f"{root}/{name} cannot be used: {' '.join(str(error).split())[:300]}")


def storage_at(
    url: str,
    settings: Mapping[str, str],
    part_bytes: int,
    options: Mapping[str, str] = MappingProxyType({}),
    retries: tuple[int, float] = RETRIES,
) -> Storage:
    """The storage at a folder, a `file://` URL or an object store's URL."""
    if "://" not in url or url.startswith("file://"):
        return FolderStorage(Path(url.removeprefix("file://")).absolute())
    return ObjectStorage(url, settings, part_bytes, options, retries)
