"""Files of HDFS over its REST API (WebHDFS): create, rename, read, list, delete.

In: paths, files that are open for reading. Out: what the cluster answers. Of several namenodes the active
one is asked. RetriableError where a server is away, busy or in safe mode, `HdfsRefused` where it refuses.
fsspec's client has no rename that replaces a file, and ignores renames that were not done. Does not know:
topics.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlsplit

import httpx

from barnabas.connect.connectors.objects.hdfs_address import HdfsPlace
from barnabas.connect.plugins import ConnectError, RetriableError
from barnabas.security.clients.client_security import client_tls
from barnabas.security.errors import SecuritySettingsError

CHUNK_BYTES = 1 << 20
TIMEOUT = httpx.Timeout(60.0, connect=10.0)
ATTEMPTS, PAUSE_S = 3, 0.2  # of one request while namenodes or datanodes change
# Refusals that come again. Others tell of a cluster that starts, moves or is full.
FINAL = (
    "AccessControlException",
    "AuthorizationException",
    "FileAlreadyExistsException",
    "IllegalArgumentException",
    "InvalidPathException",
    "ParentNotDirectoryException",
    "PathIsNotEmptyDirectoryException",
    "SecurityException",
    "UnsupportedOperationException",
)
ABSENT = "FileNotFoundException"


class HdfsRefused(ConnectError):
    """The cluster refuses; `exception` is the name of its error."""

    def __init__(self, exception: str, text: str) -> None:
        super().__init__(text)
        self.exception = exception


class WebHdfs:
    """One client of one task."""

    def __init__(
        self, place: HdfsPlace, tls: Mapping[str, str] | None = None, login: httpx.Auth | None = None
    ) -> None:
        """`login` proves who the user is; without it the cluster takes the name as it is given."""
        self._namenodes = list(place.namenodes)  # the one that answered last is the first
        self._names = {"user.name": place.user} if login is None else {}
        try:
            verify: Any = client_tls(tls) if tls else True
        except SecuritySettingsError as error:
            raise ConnectError(f"the settings barnabas.webhdfs.ssl.* are wrong: {error}") from error
        self._client = httpx.Client(
            verify=verify, timeout=TIMEOUT, trust_env=False, follow_redirects=False, auth=login
        )

    def create(self, path: str, file: Any) -> None:
        """Write a new file, or replace one, from the position of `file` on."""
        start = file.tell()
        length = file.seek(0, 2) - start

        def send() -> None:
            file.seek(start)
            where = self._data_address("PUT", path, "CREATE", overwrite="true")
            headers = {"content-type": "application/octet-stream", "content-length": str(length)}
            answer = self._sent("PUT", where, headers=headers, content=pieces(file))
            if answer.status_code not in (200, 201):
                raise refusal(answer, path)

        tried(send)

    def rename(self, path: str, to: str) -> None:
        """Rename a file at once, in place of one that is there."""
        answer = self._asked("PUT", path, "RENAME", destination=to, renameoptions="OVERWRITE")
        if answer.content and not answer.json().get("boolean", True):
            # HttpFS knows no options, and refuses where a file is
            self.delete(to)
            if not self._asked("PUT", path, "RENAME", destination=to).json().get("boolean", False):
                raise RetriableError(f"{path} in HDFS cannot be renamed to {to}: HDFS gives no reason")

    def make_folders(self, path: str) -> None:
        tried(lambda: self._asked("PUT", path, "MKDIRS"))

    def delete(self, path: str) -> None:
        """Delete a file if it is there."""
        tried(lambda: self._asked("DELETE", path, "DELETE"))

    def read(self, path: str, out: Any) -> None:
        """Write the content of a file into `out`; a connection that breaks is taken up where it ended."""
        done = 0

        def receive() -> None:
            nonlocal done
            where = self._data_address("GET", path, "OPEN", offset=str(done))
            try:
                with self._client.stream("GET", where) as answer:
                    if answer.status_code != 200:
                        answer.read()
                        raise refusal(answer, path)
                    for piece in answer.iter_raw(CHUNK_BYTES):
                        out.write(piece)
                        done += len(piece)
            except httpx.HTTPError as error:
                raise unreachable(where, error) from error

        tried(receive)

    def files(self, path: str, since_ms: int = 0) -> Iterator[str]:
        """Paths of all files below a folder, relative to it, that were written at that time or later. A
        folder that is not there has none."""
        folders = [""]
        while folders:
            folder = folders.pop()
            for each in self._entries(f"{path}/{folder}".rstrip("/")):
                name = f"{folder}/{each['pathSuffix']}".lstrip("/")
                if each["type"] == "DIRECTORY":
                    folders.append(name)
                elif each["modificationTime"] >= since_ms:
                    yield name

    def _entries(self, path: str) -> Iterator[Mapping[str, Any]]:
        after: dict[str, str] = {}
        while True:
            try:
                answer = tried(lambda: self._asked("GET", path or "/", "LISTSTATUS_BATCH", **after))
            except HdfsRefused as error:
                if error.exception == ABSENT:
                    return
                raise
            listing = answer.json()["DirectoryListing"]
            found = listing["partialListing"]["FileStatuses"]["FileStatus"]
            yield from found
            if not listing["remainingEntries"] or not found:
                return
            after["startAfter"] = found[-1]["pathSuffix"]

    # -- requests ------------------------------------------------------------------------------------------

    def _data_address(self, method: str, path: str, operation: str, **more: str) -> str:
        """The address of the bytes of a file, at a datanode that the namenode names."""
        answer = self._asked(method, path, operation, noredirect="true", **more)
        location = answer.headers.get("location") if answer.is_redirect else answer.json().get("Location")
        if not location:
            raise RetriableError(f"HDFS names no datanode for {path}")
        return str(location)

    def _asked(self, method: str, path: str, operation: str, **more: str) -> httpx.Response:
        """The response of the active namenode."""
        params = {"op": operation, **self._names, **more}
        failure: ConnectError | None = None
        for base in list(self._namenodes):
            try:
                answer = self._sent(method, f"{base}/webhdfs/v1{quote(path)}", params=params)
                if answer.is_success or answer.is_redirect:
                    self._namenodes.sort(key=lambda each: each != base)
                    return answer
                raise refusal(answer, path)
            except RetriableError as error:  # away, or not the active one
                failure = error if failure is None or "StandbyException" in str(failure) else failure
        assert failure is not None
        raise failure

    def _sent(self, method: str, url: str, **more: Any) -> httpx.Response:
        try:
            return self._client.request(method, url, **more)
        except httpx.HTTPError as error:
            raise unreachable(url, error) from error
        except (httpx.InvalidURL, UnicodeError, ValueError) as error:
            raise ConnectError(f"{url} is no valid address: {error}") from error

    def close(self) -> None:
        self._client.close()


def tried(send: Any) -> Any:
    """The result of a request that may be sent again, after a few attempts."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return send()
        except RetriableError:
            if attempt == ATTEMPTS:
                raise
            time.sleep(PAUSE_S * 2**attempt)
    raise AssertionError


def pieces(file: Any) -> Iterator[bytes]:
    while piece := file.read(CHUNK_BYTES):
        yield piece


def unreachable(url: str, error: Exception) -> RetriableError:
    host = urlsplit(url).netloc
    return RetriableError(
        f"HDFS at {host} cannot be reached: {error or type(error).__name__}. The HTTP ports of namenodes and"
        " datanodes must be open to the worker"
    )


def refusal(answer: httpx.Response, path: str) -> ConnectError:
    """The error of a response."""
    try:
        told = answer.json()["RemoteException"]
        name, text = str(told["exception"]), str(told["message"]).splitlines()[0]
    except (ValueError, KeyError, TypeError, IndexError):
        name, text = "", f"status {answer.status_code}"
    shown = f"HDFS refuses {answer.request.method} {path}: {f'{name}: ' if name else ''}{text}"
    if answer.status_code == 401:
        return HdfsRefused(name, f"{shown}. A cluster with Kerberos needs hdfs.authentication.kerberos=true")
    if name == "AccessControlException":
        shown += ". barnabas.hdfs.user names the user"
    if name == ABSENT or name in FINAL:
        return HdfsRefused(name, shown)
    return RetriableError(shown)
