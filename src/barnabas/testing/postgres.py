"""A PostgreSQL server of its own for tests: Debian's programs, a data folder that is thrown away.

In: nothing. Out: a URL on loopback. `available()` says why there can be none. Runs as another user when the
tests run as root, which PostgreSQL refuses.
"""

from __future__ import annotations

import functools
import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType

from barnabas.testing.ports import free_ports

OTHER_USERS = ("postgres", "nobody")
START_S_MAX = 60


@functools.cache
def programs() -> Path | None:
    """The folder with initdb and pg_ctl; the newest version where there are several."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"), key=lambda path: int(path.parts[-3]))
    if found:
        return found[-1].parent
    on_path = shutil.which("pg_ctl")
    return Path(on_path).parent if on_path else None


def available() -> str | None:
    """None when a server can be started here, else the reason why not."""
    return None if programs() else "needs PostgreSQL (on Debian: apt install postgresql)"


class PostgresServer:
    """`with PostgresServer() as server: psycopg.connect(server.url)`."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="barnabas-postgres-"))
        self._data = self._folder / "data"
        self.port = free_ports(1)[0]
        self.user, self.password = "barnabas", "a secret"

    @property
    def url(self) -> str:
        return f"postgresql://{self.user}:{self.password.replace(' ', '%20')}@127.0.0.1:{self.port}/postgres"

    def __enter__(self) -> PostgresServer:
        secret = self._folder / "password"
        secret.write_text(self.password)
        if owner := self._owner():
            for path in (self._folder, secret):
                os.chown(path, owner.pw_uid, owner.pw_gid)
        self._run(
            "initdb", "-U", self.user, "-A", "scram-sha-256", "--pwfile", str(secret), "-E", "UTF8", "-N"
        )
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def start(self) -> None:
        options = f"-p {self.port} -k {self._folder} -c listen_addresses=127.0.0.1 -c fsync=off"
        log = str(self._folder / "log")
        self._run("pg_ctl", "-o", options, "-l", log, "-w", "-t", str(START_S_MAX), "start")

    def stop(self) -> None:
        """At once, as a crash would; `start` recovers."""
        self._run("pg_ctl", "-m", "immediate", "-w", "stop")

    def _run(self, program: str, *arguments: str) -> None:
        folder = programs()
        assert folder is not None
        owner = self._owner()
        done = subprocess.run(
            [str(folder / program), "-D", str(self._data), *arguments],
            user=owner.pw_uid if owner else None,
            group=owner.pw_gid if owner else None,
            extra_groups=[] if owner else None,
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE if program == "initdb" else subprocess.DEVNULL,
            text=True,
        )
        if done.returncode:
            raise RuntimeError(f"{program} ended with {done.returncode}: {done.stderr}")

    def _owner(self) -> pwd.struct_passwd | None:
        """Who runs the server in place of root."""
        if os.getuid() != 0:
            return None
        for name in OTHER_USERS:
            try:
                return pwd.getpwnam(name)
            except KeyError:
                continue
        raise RuntimeError("PostgreSQL does not run as root, and there is no other user")
