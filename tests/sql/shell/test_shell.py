"""The shell against a server: statements, results, own commands, errors with a caret, the session."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.sql.shell.display import Display
from barnabas.sql.shell.server_client import ServerClient
from barnabas.sql.shell.shell import Failed, Leave, Shell
from barnabas.testing import Broker
from both_brokers import KEEPS_ALL
from sql.server.running import RunningServer, running


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with (
        Broker(overrides={**KEEPS_ALL, "group.initial.rebalance.delay.ms": 0}) as broker,
        running(broker.bootstrap, "shell_") as found,
    ):
        found.wait_until_leading()
        found.ksql("CREATE STREAM s (k STRING KEY, v INT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);")
        found.ksql("INSERT INTO s (k, v) VALUES ('a', 1); INSERT INTO s (k, v) VALUES ('b', NULL);")
        yield found


class Typed:
    """A shell, and what it shows."""

    def __init__(self, url: str) -> None:
        self._out = io.StringIO()
        self.shell = Shell(ServerClient(url), Display(self._out, is_terminal=False))

    def __call__(self, text: str) -> str:
        self._out.seek(0)
        self._out.truncate()
        try:
            self.shell.run(text)
        except Failed:
            pass
        return self._out.getvalue()


@pytest.fixture
def typed(server: RunningServer) -> Iterator[Typed]:
    found = Typed(server.url)
    yield found
    found.shell.display.spool(None)
    found.shell.client.close()


def test_listings_are_tables(typed: Typed) -> None:
    shown = typed("SHOW STREAMS;")
    assert "Stream Name" in shown and "| S " in shown.replace("|  ", "| ")
    assert "primary key" not in typed("DESCRIBE s;")
    assert "VARCHAR(STRING) (key)" in typed("DESCRIBE s;")
    assert "Stream created" in typed("CREATE STREAM x (v INT) WITH (KAFKA_TOPIC='x');")
    assert "RUNNING:1" in typed("CREATE STREAM y AS SELECT * FROM x; SHOW QUERIES;")
    for each in ("SHOW TOPICS;", "SHOW PROPERTIES;", "SHOW FUNCTIONS;", "DESCRIBE FUNCTION abs;",
                 "EXPLAIN SELECT * FROM s EMIT CHANGES;", "DESCRIBE x EXTENDED;"):  # fmt: skip
        assert '"@type"' not in typed(each), each


def test_rows_of_a_query_come_in_a_table(typed: Typed) -> None:
    typed("CLI COLUMN-WIDTH 5")
    assert typed("SELECT * FROM s EMIT CHANGES LIMIT 2;").splitlines() == [
        "+-------+-------+",
        "| K     | V     |",
        "+-------+-------+",
        "| a     | 1     |",
        "| b     | null  |",
        "+-------+-------+",
        "Query terminated: 2 rows",
    ]


def test_json_output_can_be_read_by_programs(typed: Typed) -> None:
    typed("OUTPUT JSON")
    assert json.loads(typed("SHOW STREAMS;"))["@type"] == "streams"
    head, *rows = [json.loads(line) for line in typed("SELECT * FROM s;").splitlines()]
    assert (head["header"]["columnNames"], rows) == (["K", "V"], [["a", 1], ["b", None]])
    assert json.loads(typed("SELEC;"))["@type"] == "statement_error"


def test_an_error_has_a_caret_under_its_place(typed: Typed) -> None:
    lines = typed("SELECT k,\n  nobody FROM s EMIT CHANGES;").splitlines()
    assert lines[:2] == ["  nobody FROM s EMIT CHANGES", "  ^"]
    assert "line 2, column 3" in lines[2]
    assert typed("SELECT * FORM s;").splitlines()[1] == "         ^"


def test_the_session_keeps_properties_and_variables(typed: Typed) -> None:
    assert "Successfully changed" in typed("SET 'auto.offset.reset'='earliest';")
    assert "SESSION" in typed("SHOW PROPERTIES;")
    assert "Unknown property" in typed("SET 'nonsense'='1';")
    assert "unset" in typed("UNSET 'auto.offset.reset';")
    typed("DEFINE source = 's';")
    assert "s" in typed("SHOW VARIABLES;")
    assert "Query terminated: 2 rows" in typed("SELECT * FROM ${source};")
    typed("UNDEFINE source;")
    assert "not defined" in typed("SELECT * FROM ${source};")


def test_scripts_run_and_spool_writes(typed: Typed, tmp_path: Path) -> None:
    script, spool = tmp_path / "all.sql", tmp_path / "out.txt"
    script.write_text("-- two statements\nSHOW TYPES;\nSHOW STREAMS;\n")
    typed(f"SPOOL '{spool}';")
    shown = typed(f"RUN SCRIPT '{script}';")
    typed("SPOOL OFF;")
    assert "Type Name" in shown and "Stream Name" in shown
    assert "ksql> SHOW TYPES;" in spool.read_text() and "Stream Name" in spool.read_text()
    script.write_text(f"RUN SCRIPT '{script}';")
    assert "times deep" in typed(f"@{script}")
    assert "cannot be read" in typed("@/nowhere/nothing.sql")


def test_own_commands_need_no_semicolon(typed: Typed, server: RunningServer) -> None:
    assert "CREATE STREAM AS SELECT" in typed("help")
    assert "TERMINATE query_id" in typed("HELP terminate")
    assert server.url in typed("server")
    assert "Server version" in typed("version")
    assert "cannot be reached" in typed("server http://127.0.0.1:1")
    assert server.url in typed("server")
    assert "OFF" in typed("request-pipelining")
    assert "ON" in typed("request-pipelining on")
    with pytest.raises(Leave):
        typed("exit;")


def test_a_text_is_complete_at_its_semicolon(typed: Typed) -> None:
    complete = typed.shell.is_complete
    assert complete("SHOW STREAMS;") and complete("help") and complete("")
    assert (
        not complete("SELECT *\nFROM s") and not complete("SELECT 'a;") and not complete("SHOW TYPES; SELECT")
    )
    assert complete("-- a comment")


def test_statements_before_a_wrong_one_run(typed: Typed) -> None:
    shown = typed("SHOW TYPES; DESCRIBE nobody; SHOW STREAMS;")
    assert "Type Name" in shown and "NOBODY does not exist" in shown and "Stream Name" not in shown
