"""FerretDB on loopback: a server of MongoDB's protocol with logins and ordered bulk writes, over SQLite.

No package registry has its program: it is taken from the search path or from BARNABAS_FERRETDB. It must be of
version 1.x: later ones have no SQLite.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from tests.stores.java_servers import START_S_MAX, Restartable, answers

from barnabas.testing.ports import free_ports
from barnabas.testing.waiting import wait_until

USER, PASSWORD = "barnabas", "secret"


def program() -> str | None:
    return os.environ.get("BARNABAS_FERRETDB") or shutil.which("ferretdb")


def available() -> str | None:
    """None if it can run here, otherwise the reason."""
    return None if program() else "needs FerretDB 1.x as ferretdb on the path or in BARNABAS_FERRETDB"


class FerretDb(Restartable):
    """Clients log in with SCRAM as `barnabas`. `tls` are the files of the server's certificate, its key and
    the authority of clients' certificates. `stop` kills it."""

    def __init__(self, tls: tuple[str, str, str] | None = None) -> None:
        super().__init__()
        self.port, self.tls_port = free_ports(2)
        self._tls = tls

    def uri(self, login: str = f"{USER}:{PASSWORD}@") -> str:
        port = self.tls_port if self._tls else self.port
        return f"mongodb://{login}127.0.0.1:{port}/?directConnection=true" + (
            "&authSource=admin" if login else ""
        )

    @contextmanager
    def run(self) -> Iterator[None]:
        (self.home / "data").mkdir(exist_ok=True)
        given = {
            "handler": "sqlite",
            "sqlite-url": f"file:{self.home}/data/",
            "listen-addr": f"127.0.0.1:{self.port}",
            "debug-addr": "-",
            "telemetry": "disable",
            "state-dir": str(self.home),
            "setup-database": "admin",
            "setup-username": USER,
            "setup-password": PASSWORD,
        }
        if self._tls is not None:
            certificate, key, authority = self._tls
            given |= {
                "listen-tls": f"127.0.0.1:{self.tls_port}",
                "listen-tls-cert-file": certificate,
                "listen-tls-key-file": key,
                "listen-tls-ca-file": authority,
            }
        command = [program() or "ferretdb", *(f"--{name}={value}" for name, value in given.items())]
        log = self.home / "log.txt"
        with log.open("ab") as output:
            process = subprocess.Popen(
                [*command, "--test-enable-new-auth"], stdout=output, stderr=output, cwd=self.home
            )
        try:
            wait_until(lambda: process.poll() is not None or answers(self.port), START_S_MAX)
            assert process.poll() is None, log.read_text()[-3000:]
            yield
        finally:
            process.kill()
            process.wait()
