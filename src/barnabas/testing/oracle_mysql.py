"""A real MySQL server for a test, of Debian's newest packages, with a temporary data folder.

The same faces as `barnabas.testing.mysql.MySqlServer`, which is a MariaDB. It runs as the user that the tests
run as.
"""

from __future__ import annotations

import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

from barnabas.testing import debian
from barnabas.testing.mysql import START_S_MAX, MySqlServer
from barnabas.testing.waiting import wait_until

PACKAGE = "mysql-server-core"
PROGRAM = "usr/sbin/mysqld"


def available() -> str | None:
    """None if a server can run here, otherwise the reason."""
    return debian.missing(PACKAGE)


class OracleMySql(MySqlServer):
    """`with OracleMySql() as server: server.execute("CREATE TABLE …")`; `url` is for JDBC."""

    def _command(self) -> list[str]:
        given = debian.command(PACKAGE, PROGRAM)
        messages = next(Path(given[-1]).parents[1].glob("share/mysql*/english")).parent
        return [*given, "--no-defaults", f"--datadir={self._folder / 'data'}",
                f"--lc-messages-dir={messages}", "--user=root"]  # fmt: skip

    def _install(self, owner: str | None) -> None:
        done = subprocess.run(
            [*self._command(), "--initialize-insecure"], capture_output=True, text=True, cwd=self._folder
        )
        if done.returncode:
            raise RuntimeError(f"mysqld --initialize ended with {done.returncode}: {done.stderr[-1000:]}")

    def start(self) -> None:
        command = [*self._command(), f"--port={self.port}", "--bind-address=127.0.0.1"]
        command += [
            f"--socket={self._socket}",
            "--mysqlx=OFF",
            "--secure-file-priv=",
            "--innodb-flush-log-at-trx-commit=0",
        ]
        command += ["--innodb-buffer-pool-size=64M", f"--pid-file={self._folder / 'pid'}", *self._options]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self._folder,
                start_new_session=True,
            )  # fmt: skip
        wait_until(self._answers, START_S_MAX, self._said)

    def execute(self, statements: str) -> str:
        return self._rows(statements, host="127.0.0.1", port=self.port, user=self.user,
                          password=self.password, database=self.database)  # fmt: skip

    def execute_as_root(self, statements: str) -> str:
        return self._rows(statements, unix_socket=str(self._socket), user="root")

    def _rows(self, statements: str, **address: Any) -> str:
        """Execute statements. Returns the rows of the last one, a line for each."""
        import pymysql

        try:
            with closing(pymysql.connect(autocommit=True, charset="utf8mb4", **address)) as connection:
                cursor = connection.cursor()
                for each in statements.split("; "):
                    cursor.execute(each)
                rows = cursor.fetchall()
        except pymysql.err.MySQLError as error:
            raise RuntimeError(str(error)) from error
        return "".join("\t".join(map(str, row)) + "\n" for row in rows)
