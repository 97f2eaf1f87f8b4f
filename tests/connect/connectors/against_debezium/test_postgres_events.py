"""Events of our PostgreSQL connector are those of Debezium's, from the same tables and statements."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from barnabas.pipeline.demo import postgres
from connect.connectors.against_debezium.comparing import differences, topics_of
from connect.connectors.against_debezium.postgres_cases import CASES, END, Case
from connect.connectors.against_debezium.postgres_runs import Own, Run
from connect.connectors.against_debezium.recording import Recording
from connect.connectors.against_debezium.running import Debezium, Written, running

RECORDED = Recording(Path(__file__).parent / "postgres_events.json.gz")


@pytest.fixture(scope="module")
def server() -> Iterator[postgres.Postgres]:
    if reason := postgres.available():
        pytest.skip(reason)
    with postgres.Postgres(password="a secret") as found:
        with psycopg.connect(found.dsn, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET wal_level = logical")
            for name in ("max_replication_slots", "max_wal_senders"):
                connection.execute(f"ALTER SYSTEM SET {name} = 100")
            connection.execute("ALTER SYSTEM SET max_connections = 300")
        found.stop()
        found.start()
        yield found


@pytest.fixture(scope="module")
def debezium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Debezium]:
    with running(tmp_path_factory.mktemp("debezium"), "postgres") as found:
        yield found


@pytest.mark.long
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_events_are_alike(server: postgres.Postgres, debezium: Debezium, case: Case) -> None:
    run = Run(server, case)
    worker = debezium.worker
    worker.create(run.prefix, run.config("peer"))
    debezium.wait(run.prefix, lambda: run.is_streaming("peer"))
    with ExitStack() as stack:
        stack.callback(worker.call, "DELETE", f"/connectors/{run.prefix}")
        own = Own(run)
        stack.callback(own.stop)
        own.until(lambda: run.is_streaming("own"))
        run.play(own.rest)
        theirs = debezium.until_end(run.prefix, END)
        RECORDED.keep(case.name, topics_of(theirs, is_recorded=True))
        own.until(own.has_end)
        own.rest()
    found = differences(topics_of(theirs), topics_of(Written().events(own.batches)))
    assert not found, "\n".join(found)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_events_are_those_that_debezium_sent(server: postgres.Postgres, case: Case) -> None:
    run = Run(server, case)
    with ExitStack() as stack:
        own = Own(run)
        stack.callback(own.stop)
        own.until(lambda: run.is_streaming("own"))
        run.play(own.rest)
        own.until(own.has_end)
        own.rest()
    found = differences(RECORDED.read(case.name), topics_of(Written().events(own.batches), is_recorded=True))
    assert not found, "\n".join(found)
