"""The prompt in a terminal: several lines, completion, Ctrl-C and Ctrl-D; options and scripts."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.testing import Broker
from barnabas.testing.waiting import wait_until
from both_brokers import KEEPS_ALL
from sql.server.running import RunningServer, running

SHELL = [sys.executable, "-m", "barnabas.cli.main", "sql"]
COLOURS = re.compile(rb"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>]")


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with (
        Broker(overrides={**KEEPS_ALL, "group.initial.rebalance.delay.ms": 0}) as broker,
        running(broker.bootstrap, "prompt_") as found,
    ):
        found.wait_until_leading()
        found.ksql("CREATE STREAM pageviews (k STRING KEY, v INT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);")
        found.ksql("INSERT INTO pageviews (k, v) VALUES ('first', 1);")
        yield found


class Terminal:
    """A shell in a terminal of its own."""

    def __init__(self, url: str, home: Path) -> None:
        self._main, follower = pty.openpty()
        environment = {**os.environ, "TERM": "xterm", "HOME": str(home), "COLUMNS": "80", "LINES": "24",
                       "PROMPT_TOOLKIT_NO_CPR": "1"}  # fmt: skip
        self.process = subprocess.Popen(
            [*SHELL, url], stdin=follower, stdout=follower, stderr=follower, env=environment,
            start_new_session=True,
        )  # fmt: skip
        os.close(follower)
        self._seen = b""

    def type(self, text: str) -> None:
        os.write(self._main, text.encode())

    def sees(self, text: str) -> None:
        """Wait until a text is shown behind what was seen before."""

        def is_there() -> bool:
            if select.select([self._main], [], [], 0)[0]:
                try:
                    self._seen += os.read(self._main, 65536)
                except OSError:
                    pass
            return text.encode() in COLOURS.sub(b"", self._seen)

        wait_until(is_there, 60, lambda: COLOURS.sub(b"", self._seen).decode(errors="replace"))
        self._seen = COLOURS.sub(b"", self._seen).partition(text.encode())[2]

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._main)


@pytest.fixture
def terminal(server: RunningServer, tmp_path: Path) -> Iterator[Terminal]:
    found = Terminal(server.url, tmp_path)
    yield found
    found.close()


def test_a_person_works_at_the_prompt(terminal: Terminal, server: RunningServer, tmp_path: Path) -> None:
    terminal.sees("ksql>")
    terminal.type("SHOW\r")
    terminal.type("TYPES;\r")
    terminal.sees("Type Name")
    terminal.sees("ksql>")

    terminal.type("DESCRIBE pagev\t")
    terminal.sees("PAGEVIEWS")
    terminal.type(";\r")
    terminal.sees("(key)")
    terminal.sees("ksql>")

    terminal.type("SELECT * FROM pageviews EMIT CHANGES;\r")
    terminal.sees("first")
    os.kill(terminal.process.pid, signal.SIGINT)
    terminal.sees("Query terminated")
    terminal.sees("ksql>")
    wait_until(lambda: all(each.is_closed for each in server.engines[0].selects), 20)

    terminal.type("SELECT nothing FROM pageviews;\r")
    terminal.sees("       ^")
    terminal.sees("cannot be resolved")
    terminal.sees("ksql>")
    terminal.type("\x04")
    terminal.sees("Exiting")
    assert terminal.process.wait(30) == 0
    assert "SELECT nothing FROM pageviews;" in (tmp_path / ".barnabas-sql-history").read_text()


def run(*arguments: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*SHELL, *arguments], input=given or "", capture_output=True, text=True, timeout=120
    )


def test_options_run_statements_and_tell_by_the_status(server: RunningServer, tmp_path: Path) -> None:
    script = tmp_path / "q.sql"
    script.write_text("SELECT * FROM ${source} EMIT CHANGES LIMIT 1;")
    found = run(server.url, "--define", "source=pageviews", "--file", str(script), "--execute", "SHOW TYPES;")
    assert (found.returncode, found.stderr) == (0, "")
    assert "first" in found.stdout and "Type Name" in found.stdout

    select = "SELECT * FROM pageviews EMIT CHANGES;"
    limited = run(server.url, "--query-row-limit", "1", "--execute", select)
    assert (limited.returncode, "1 row" in limited.stdout) == (0, True)
    ended = run(server.url, "--query-timeout", "300", "--execute", select)
    assert (ended.returncode, "Query terminated" in ended.stdout) == (0, True), ended.stderr
    assert "no whole number above 0" in run(server.url, "--query-timeout", "0").stderr

    wrong = run(server.url, "--output", "json", given="DESCRIBE nobody;")
    assert wrong.returncode == 1
    assert '"statement_error"' in wrong.stdout
