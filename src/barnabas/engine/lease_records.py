"""Numbered records that only one writer can put: the one primitive that a lease needs of a place.

In: a folder, or the URL of an object store. Out: the newest record; `put`, which succeeds for one of several
writers of the same number. A folder uses hard links. An object store uses conditional puts (`If-None-Match`),
which S3, Google's and Azure's stores have. Does not know: what records mean.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Protocol

from barnabas.engine.places.object_store import open_store

KEPT = 100  # older records are deleted
NAME = re.compile(r"(\d{20})\.json$")


class Records(Protocol):
    def newest(self) -> tuple[int, bytes] | None:
        """The record with the highest number; None if there is none."""

    def put(self, number: int, data: bytes) -> bool:
        """Put a record; False if there is one of this number."""

    def forget(self, before: int) -> None:
        """Delete the records of lower numbers."""


def name_of(number: int) -> str:
    return f"{number:020}.json"


class FolderRecords:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def _numbers(self) -> list[int]:
        try:
            found = [NAME.search(path.name) for path in self._folder.iterdir()]
        except FileNotFoundError:
            return []
        return [int(match[1]) for match in found if match is not None]

    def newest(self) -> tuple[int, bytes] | None:
        number = max(self._numbers(), default=None)
        return None if number is None else (number, (self._folder / name_of(number)).read_bytes())

    def put(self, number: int, data: bytes) -> bool:
        self._folder.mkdir(parents=True, exist_ok=True)
        beside = self._folder / f"{number:020}.{os.getpid()}.{os.urandom(4).hex()}.new"
        with beside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(beside, self._folder / name_of(number))
        except FileExistsError:
            return False
        finally:
            beside.unlink()
        return True

    def forget(self, before: int) -> None:
        for number in self._numbers():
            if number < before:
                (self._folder / name_of(number)).unlink(missing_ok=True)


class ObjectRecords:
    """Records in an object store, as objects below a URL."""

    def __init__(self, url: str, settings: Mapping[str, str] | None = None) -> None:
        self._client, self._store, self._prefix = open_store(url, settings)

    def _path(self, number: int) -> str:
        return f"{self._prefix}/{name_of(number)}"

    def _numbers(self) -> list[int]:
        found: list[int] = []
        for page in self._client.list(self._store, prefix=self._prefix):
            matches = [NAME.search(str(each["path"])) for each in page]
            found += [int(match[1]) for match in matches if match is not None]
        return found

    def newest(self) -> tuple[int, bytes] | None:
        number = max(self._numbers(), default=None)
        if number is None:
            return None
        return number, bytes(self._client.get(self._store, self._path(number)).bytes())

    def put(self, number: int, data: bytes) -> bool:
        exists = import_module("obstore.exceptions").AlreadyExistsError
        try:
            self._client.put(self._store, self._path(number), data, mode="create", use_multipart=False)
        except exists:
            return False
        return True

    def forget(self, before: int) -> None:
        old = [self._path(number) for number in self._numbers() if number < before]
        if old:
            self._client.delete(self._store, old)
