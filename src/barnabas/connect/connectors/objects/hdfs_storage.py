"""The storage of files in HDFS: a file is written under a temporary name and renamed when it is complete.

In: names below the root. Out: files that appear as a whole or not at all. Does not know: formats.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

import httpx

from barnabas.connect.connectors.objects.hdfs_address import HdfsPlace
from barnabas.connect.connectors.objects.storage import TEMPORARY, local_file
from barnabas.connect.connectors.objects.webhdfs import ABSENT, HdfsRefused, WebHdfs
from barnabas.connect.plugins import RetriableError


class HdfsStorage:
    def __init__(
        self, place: HdfsPlace, tls: Mapping[str, str] | None = None, login: httpx.Auth | None = None
    ) -> None:
        self._root = place.root.rstrip("/")
        self._hdfs = WebHdfs(place, tls, login)
        self._folders: set[str] = set()  # that are made already

    def put_file(self, name: str, file: Any) -> None:
        folder, _, base = name.rpartition("/")
        top = name.split("/", 1)[0]
        beside = f"{self._root}/{top}/{TEMPORARY}/{base}.{uuid.uuid4().hex}"
        self._hdfs.create(beside, file)  # makes its folder
        if folder not in self._folders:
            self._hdfs.make_folders(f"{self._root}/{folder}")
            self._folders.add(folder)
        try:
            self._hdfs.rename(beside, f"{self._root}/{name}")
        except HdfsRefused as error:
            self._folders.discard(folder)
            if error.exception != ABSENT:
                raise
            # The folder is gone, or another task owns the partition now and deleted the file.
            raise RetriableError(str(error)) from error

    def drop_unfinished(self, folder: str, beginning: str) -> None:
        """Delete temporary files whose names begin so: a task that was before this one left them, or still
        writes them, and cannot finish then."""
        beside = f"{self._root}/{folder.split('/', 1)[0]}/{TEMPORARY}"
        for name in list(self._hdfs.files(beside)):
            if name.startswith(beginning):
                self._hdfs.delete(f"{beside}/{name}")

    def open(self, name: str) -> Any:
        found = local_file()
        try:
            self._hdfs.read(f"{self._root}/{name}", found)
        except BaseException:
            found.close()
            raise
        found.seek(0)
        return found

    def names(self, prefix: str, since_ms: int = 0) -> list[str]:
        below = f"{prefix}/" if prefix else ""
        found = [
            f"{below}{each}" for each in self._hdfs.files(f"{self._root}/{prefix}".rstrip("/"), since_ms)
        ]
        return sorted(name for name in found if TEMPORARY not in name.split("/"))

    def close(self) -> None:
        self._hdfs.close()
