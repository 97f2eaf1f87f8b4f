"""Events of our MySQL and MariaDB connectors are those of Debezium's, from the same tables and statements."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from barnabas.testing import mysql, oracle_mysql
from connect.connectors.against_debezium.comparing import differences, topics_of
from connect.connectors.against_debezium.mysql_cases import CASES
from connect.connectors.against_debezium.mysql_runs import Own, Run
from connect.connectors.against_debezium.postgres_cases import END, Case
from connect.connectors.against_debezium.recording import Recording
from connect.connectors.against_debezium.running import Debezium, Written, running

HERE = Path(__file__).parent
RECORDED = {kind: Recording(HERE / f"{kind}_events.json.gz") for kind in ("mysql", "mariadb")}
OPTIONS = ("--log-bin=log", "--server-id=1", "--binlog-format=ROW", "--sync-binlog=0",
           "--default-time-zone=+00:00")  # fmt: skip
GTIDS = ("--gtid-mode=ON", "--enforce-gtid-consistency=ON")


@pytest.fixture(scope="module", params=["mariadb", pytest.param("mysql", marks=pytest.mark.long)])
def kind(request: Any) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def server(kind: str) -> Iterator[mysql.MySqlServer]:
    if reason := (mysql if kind == "mariadb" else oracle_mysql).available():
        pytest.skip(reason)
    made = mysql.MySqlServer("shop", *OPTIONS) if kind == "mariadb" else oracle_mysql.OracleMySql(
        "shop", *OPTIONS, *GTIDS)  # fmt: skip
    with made as found:
        yield found


@pytest.fixture(scope="module")
def debezium(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Debezium]:
    with running(tmp_path_factory.mktemp("debezium"), kind) as found:
        yield found


@pytest.mark.long
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_events_are_alike(server: mysql.MySqlServer, debezium: Debezium, case: Case, kind: str) -> None:
    run = Run(server, case, kind)
    worker = debezium.worker
    before = run.readers()
    worker.create(run.prefix, run.config("peer"))
    debezium.wait(run.prefix, lambda: bool(run.readers() - before))
    with ExitStack() as stack:
        stack.callback(worker.call, "DELETE", f"/connectors/{run.prefix}")
        own = Own(run)
        stack.callback(own.stop)
        own.until(own.is_streaming)
        run.play(own.rest)
        theirs = debezium.until_end(run.prefix, END)
        RECORDED[kind].keep(case.name, topics_of(theirs, is_recorded=True))
        own.until(own.has_end)
        own.rest()
    found = differences(topics_of(theirs), topics_of(Written().events(own.batches)))
    assert not found, "\n".join(found)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_events_are_those_that_debezium_sent(server: mysql.MySqlServer, case: Case, kind: str) -> None:
    run = Run(server, case, kind)
    with ExitStack() as stack:
        own = Own(run)
        stack.callback(own.stop)
        own.until(own.is_streaming)
        run.play(own.rest)
        own.until(own.has_end)
        own.rest()
    found = differences(
        RECORDED[kind].read(case.name), topics_of(Written().events(own.batches), is_recorded=True)
    )
    assert not found, "\n".join(found)
