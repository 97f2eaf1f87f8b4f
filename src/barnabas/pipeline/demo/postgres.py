"""A PostgreSQL server of our own, on a free port of this machine, for the demo and for tests.

In: a folder, or None for a temporary one. Out: a running server with one database and one user, or the
reason why it cannot run. PostgreSQL refuses to run as root, so for root it runs as another user, who gets
the folder.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

from barnabas.pipeline.demo.ports import free_port

USERS = ("postgres", "nobody")
START_S_MAX = 60.0
LOOK_S = 0.1
SYSTEM = Path("/usr/lib/postgresql")


class NoPostgres(Exception):
    """No server can be started; the message says why."""


def programs() -> Path | None:
    """The folder of the newest `initdb` and `postgres`."""
    found = shutil.which("initdb")
    if found is not None and shutil.which("postgres"):
        return Path(found).parent
    versions = [path.parent for path in SYSTEM.glob("*/bin/initdb")]
    return max(versions, key=lambda path: float(path.parent.name), default=None)


def available() -> str | None:
    """Why no server can run; None if it can."""
    return None if programs() else "needs PostgreSQL (on Debian: apt install postgresql)"


class Postgres:
    """`with Postgres(folder) as server:`; `url` is for JDBC, `dsn` for psycopg."""

    def __init__(self, folder: Path | None = None, database: str = "shop", password: str = "") -> None:
        self._temporary = Path(tempfile.mkdtemp(prefix="barnabas-postgres-")) if folder is None else None
        self.folder = self._temporary or folder or Path()
        self.database = database
        self.user = "barnabas"
        self.password = password or secrets.token_hex(8)
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"jdbc:postgresql://127.0.0.1:{self.port}/{self.database}"

    @property
    def dsn(self) -> str:
        return f"postgresql://{self.user}:{quote(self.password)}@127.0.0.1:{self.port}/{self.database}"

    @property
    def pid(self) -> int:
        assert self._process is not None, "the server was not started"
        return self._process.pid

    def start(self) -> Self:
        found = programs()
        if found is None:
            raise NoPostgres("PostgreSQL is not installed (on Debian: apt install postgresql)")
        user = None if os.geteuid() else another_user()
        data = self.folder / "data"
        if not data.exists():
            self._make(found, data, user)
        self.port = self.port or free_port()
        self._process = subprocess.Popen(
            [
                *(str(found / "postgres"), "-D", str(data), "-p", str(self.port)),
                *("-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={self.folder}"),
                *("-c", "fsync=off"),  # the data is temporary
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            user=user,
            start_new_session=True,  # Ctrl-C must not reach the server
        )
        self._wait()
        return self

    def _make(self, found: Path, data: Path, user: str | None) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        words = self.folder / "password"
        words.write_text(self.password)
        words.chmod(0o600)
        if user is not None:
            for path in (self.folder, words):
                shutil.chown(path, user)
        command = [str(found / "initdb"), "-D", str(data), "-U", self.user, "-N", "-E", "UTF8"]
        command += ["-A", "scram-sha-256"]
        try:
            done = subprocess.run(
                [*command, f"--pwfile={words}"], capture_output=True, text=True, user=user, cwd=self.folder
            )
        except OSError as error:
            raise NoPostgres(f"initdb cannot be run: {error}") from error
        words.unlink()
        if done.returncode != 0:
            raise NoPostgres(f"initdb failed: {done.stderr.strip()}")

    def _wait(self) -> None:
        import psycopg

        assert self._process is not None
        deadline = time.monotonic() + START_S_MAX
        server = self.dsn.removesuffix(self.database) + "postgres"
        while True:
            try:
                with psycopg.connect(server, autocommit=True, connect_timeout=5) as connection:
                    names = connection.execute("SELECT datname FROM pg_database").fetchall()
                    if (self.database,) not in names:
                        connection.execute(f'CREATE DATABASE "{self.database}"')
                    return
            except psycopg.OperationalError as error:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    self.stop()
                    raise NoPostgres(f"the server did not start: {error}") from error
                time.sleep(LOOK_S)

    def stop(self) -> None:
        """Stop at once, without waiting for clients."""
        process, self._process = self._process, None
        if process is not None and process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGINT)
            process.wait(START_S_MAX)

    def close(self) -> None:
        """Stop the server, and delete its temporary folder."""
        self.stop()
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def another_user() -> str:
    """A user that is not root."""
    names = {entry.pw_name for entry in pwd.getpwall()}
    found = next((name for name in USERS if name in names), None)
    if found is None:
        raise NoPostgres("PostgreSQL does not run as root, and there is no user `postgres` or `nobody`")
    return found
