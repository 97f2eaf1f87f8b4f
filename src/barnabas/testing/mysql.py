"""A MySQL server for a test: Debian's MariaDB with a temporary data folder.

Out: an address on loopback, and execution of statements with its own client. `available()` tells why it
cannot run. It runs as another user if the tests run as root.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from barnabas.testing.ports import free_ports
from barnabas.testing.waiting import wait_until

PROGRAMS = ("mariadbd", "mariadb-install-db", "mariadb")
PLACES = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"))
OTHER_USERS = ("mysql", "nobody")
START_S_MAX = 60.0


def program(name: str) -> str | None:
    return shutil.which(name, path=PLACES)


def available() -> str | None:
    """None if a server can run here, otherwise the reason."""
    missing = [name for name in PROGRAMS if program(name) is None]
    return f"needs {', '.join(missing)} (on Debian: apt install mariadb-server)" if missing else None


class MySqlServer:
    """`with MySqlServer() as server: server.execute("CREATE TABLE …")`; `url` is for JDBC."""

    def __init__(self, database: str = "shop", *options: str) -> None:
        """`options` are more arguments of the server, such as `--log-bin`."""
        self._options = options
        self._folder = Path(tempfile.mkdtemp(prefix="barnabas-mysql-"))
        self._process: subprocess.Popen[bytes] | None = None
        self.database = database
        self.port = free_ports(1)[0]
        self.user, self.password = "barnabas", "a secret"

    @property
    def url(self) -> str:
        return f"jdbc:mysql://127.0.0.1:{self.port}/{self.database}"

    def __enter__(self) -> Self:
        owner = other_user()
        if owner:
            shutil.chown(self._folder, owner)
        self._install(owner)
        self.start()
        self.execute_as_root(
            f"CREATE DATABASE {self.database}; CREATE USER {self.user}@'%' IDENTIFIED BY '{self.password}';"
            f" GRANT ALL ON {self.database}.* TO {self.user}@'%';"
            f" GRANT RELOAD, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {self.user}@'%'"
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _install(self, owner: str | None) -> None:
        command = [str(program("mariadb-install-db")), "--no-defaults", f"--datadir={self._folder / 'data'}"]
        command += ["--auth-root-authentication-method=normal", "--skip-test-db"]
        command += [f"--user={owner}"] if owner else []
        done = subprocess.run(command, capture_output=True, text=True, cwd=self._folder)
        if done.returncode:
            raise RuntimeError(f"mariadb-install-db ended with {done.returncode}: {done.stdout}{done.stderr}")

    def start(self) -> None:
        command = [str(program("mariadbd")), "--no-defaults", f"--datadir={self._folder / 'data'}"]
        command += [f"--port={self.port}", "--bind-address=127.0.0.1", f"--socket={self._socket}"]
        command += ["--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=16M"]
        command += self._options
        owner = other_user()
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command + ([f"--user={owner}"] if owner else []),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                start_new_session=True,
            )
        wait_until(self._answers, START_S_MAX, self._said)

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.terminate()
            process.wait(START_S_MAX)

    def execute(self, statements: str) -> str:
        """Execute statements with the server's own client, as the user. Returns its output, a line for each
        row."""
        given = ["-h127.0.0.1", f"-P{self.port}", f"-u{self.user}", f"-p{self.password}", self.database]
        return self._client(statements, *given)

    def execute_as_root(self, statements: str) -> str:
        return self._client(statements, f"--socket={self._socket}", "-uroot")

    def _client(self, statements: str, *given: str) -> str:
        command = [str(program("mariadb")), "--no-defaults", "--skip-column-names", *given, "-e", statements]
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode:
            raise RuntimeError(done.stderr.strip())
        return done.stdout

    @property
    def _socket(self) -> Path:
        return self._folder / "socket"

    def _answers(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise RuntimeError(self._said())
        try:
            self.execute_as_root("SELECT 1")
        except RuntimeError:
            time.sleep(0.1)
            return False
        return True

    def _said(self) -> str:
        return f"the server did not start: {(self._folder / 'log').read_text(errors='replace')[-1000:]}"


def other_user() -> str | None:
    """The user that runs the server in place of root."""
    if os.getuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in OTHER_USERS if name in names), None)
