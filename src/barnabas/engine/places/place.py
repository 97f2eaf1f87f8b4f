"""Small files of the engine, kept beside the data, so that every host can read them.

In: a folder, or the URL of an object store. Out: files by name (`catalogue/shop/batch.json`), each replaced
as a whole: a reader sees the old file or the new one. Writers of one file must be kept apart by others, for
example by a lease. Does not know: what is in the files.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from barnabas.engine.places.object_store import open_store

FILE_URL = "file://"
FILES_MAX = 10_000  # a listing of more is cut off


class PlaceUnavailable(Exception):
    """A file beside the data cannot be read or written; the message says which and why."""


class Place(Protocol):
    """Files below one folder or URL. All calls raise PlaceUnavailable if the place does not answer."""

    @property
    def root(self) -> str:
        """The folder or URL."""

    def read(self, name: str) -> bytes | None:
        """The content of a file; None if there is none."""

    def write(self, name: str, data: bytes) -> None:
        """Write a file, or replace it as a whole."""

    def delete(self, name: str) -> None:
        """Delete a file, if there is one."""

    def delete_all(self, folder: str) -> int:
        """Delete all files below a folder; how many there were."""

    def names(self, folder: str) -> list[str]:
        """The names of all files below a folder, sorted, at most FILES_MAX."""


class FolderPlace:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def root(self) -> str:
        return str(self._folder)

    def read(self, name: str) -> bytes | None:
        try:
            return (self._folder / name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise unavailable(self.root, name, error) from error

    def write(self, name: str, data: bytes) -> None:
        path = self._folder / name
        beside = path.with_name(f".{path.name}.{os.getpid()}.new")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            beside.write_bytes(data)
            beside.replace(path)
        except OSError as error:
            raise unavailable(self.root, name, error) from error

    def delete(self, name: str) -> None:
        try:
            (self._folder / name).unlink(missing_ok=True)
        except OSError as error:
            raise unavailable(self.root, name, error) from error

    def delete_all(self, folder: str) -> int:
        path = self._folder / folder
        try:
            count = sum(each.is_file() for each in path.rglob("*"))
            if path.exists():
                shutil.rmtree(path)
        except OSError as error:
            raise unavailable(self.root, folder, error) from error
        return count

    def names(self, folder: str) -> list[str]:
        found: list[str] = []
        for path in (self._folder / folder).rglob("*"):
            if not path.name.startswith(".") and path.is_file():
                found.append(str(path.relative_to(self._folder)))
            if len(found) >= FILES_MAX:
                break
        return sorted(found)


class ObjectPlace:
    """Files as objects below a URL."""

    def __init__(self, url: str, settings: Mapping[str, str] | None = None) -> None:
        self._url = url.rstrip("/")
        self._client, self._store, self._prefix = open_store(self._url, settings)

    @property
    def root(self) -> str:
        return self._url

    def _path(self, name: str) -> str:
        return f"{self._prefix}/{name}" if self._prefix else name

    def read(self, name: str) -> bytes | None:
        try:
            return bytes(self._client.get(self._store, self._path(name)).bytes())
        except FileNotFoundError:
            return None
        except Exception as error:
            raise unavailable(self.root, name, error) from error

    def write(self, name: str, data: bytes) -> None:
        try:
            self._client.put(self._store, self._path(name), data, use_multipart=False)
        except Exception as error:
            raise unavailable(self.root, name, error) from error

    def delete(self, name: str) -> None:
        try:
            self._client.delete(self._store, self._path(name))
        except FileNotFoundError:
            return
        except Exception as error:
            raise unavailable(self.root, name, error) from error

    def delete_all(self, folder: str) -> int:
        count = 0
        try:
            for page in self._client.list(self._store, prefix=self._path(folder)):
                paths = [str(each["path"]) for each in page]
                self._client.delete(self._store, paths)
                count += len(paths)
        except Exception as error:
            raise unavailable(self.root, folder, error) from error
        return count

    def names(self, folder: str) -> list[str]:
        found: list[str] = []
        cut = len(self._prefix) + 1 if self._prefix else 0
        try:
            for page in self._client.list(self._store, prefix=self._path(folder)):
                found += [str(each["path"])[cut:] for each in page]
                if len(found) >= FILES_MAX:
                    break
        except Exception as error:
            raise unavailable(self.root, folder, error) from error
        return sorted(found)[:FILES_MAX]


def place_at(root: str, settings: Mapping[str, str] | None = None) -> Place:
    """The place at a folder or URL; `settings` are those of Spark for the object store."""
    if "://" not in root or root.startswith(FILE_URL):
        return FolderPlace(Path(root.removeprefix(FILE_URL)).expanduser().absolute())
    return ObjectPlace(root, settings)


def unavailable(root: str, name: str, error: Exception) -> PlaceUnavailable:
    text = " ".join(str(error).split())[:300]
    return PlaceUnavailable(f"{root}/{name} cannot be used: {text}")
