"""The jobs of `docs/connect-examples.md`, posted to a cluster of three workers as the page has them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.stores import java_servers

from barnabas.testing import Broker
from connect.connectors.jdbc_servers import Database, running
from connect.records_of import records_of
from connect.running.workers import Workers, running_workers
from connect.worker_processes import STRING

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
PAGE = Path(__file__).parents[3] / "docs" / "connect-examples.md"
AS_ON_THE_PAGE = {
    "key__converter": STRING,
    "config__providers": "file",
    "config__providers__file__class": "org.apache.kafka.common.config.provider.FileConfigProvider",
}


def bodies() -> dict[str, dict[str, Any]]:
    """The bodies of POST on the page, by the connector's name."""
    found = [json.loads(each) for each in re.findall(r"```json\n(.*?)```", PAGE.read_text(), re.DOTALL)]
    return {each["name"]: each for each in found}


def posted(workers: Workers, name: str, **changed: str) -> dict[str, str]:
    """Post a body of the page with addresses of this test."""
    body = bodies()[name]
    config = body["config"] | {key.replace("_", "."): text for key, text in changed.items()}
    workers.create(name, config)
    workers.done(lambda: set(workers.states(name)[1:]) == {"RUNNING"}, name)
    return dict(config)


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    with (
        Broker() as broker,
        running_workers(tmp_path_factory.mktemp("course"), broker.bootstrap, **AS_ON_THE_PAGE) as found,
    ):
        yield found


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    with running("postgresql", tmp_path_factory.mktemp("fleet")) as found:
        found.sql(
            "CREATE TABLE drivers (id BIGINT PRIMARY KEY, name TEXT NOT NULL,"
            " updated_at TIMESTAMP NOT NULL DEFAULT (now() AT TIME ZONE 'UTC'))",
            "INSERT INTO drivers (id, name) VALUES (1, 'Ada'), (2, 'Bela')",
        )
        yield found


def test_the_driver_connector_follows_its_table(workers: Workers, fleet: Database, tmp_path: Path) -> None:
    secrets = tmp_path / "secrets"
    secrets.write_text(f"fleet={fleet.password}\n")
    reference = f"${{file:{secrets}:fleet}}"
    more = {"connection_user": fleet.user, "connection_password": reference, "connection_url": fleet.url}
    posted(workers, "Driver-Connector", **more)

    def drivers() -> list[tuple[str, str]]:
        records = records_of(workers.bootstrap, "fleet-drivers")
        return [
            ((key or b"").decode(), json.loads(text or b"")["payload"]["name"]) for key, _, text in records
        ]

    workers.done(lambda: drivers() == [("1", "Ada"), ("2", "Bela")])
    assert workers.call("GET", "/connectors/Driver-Connector/config")["connection.password"] == reference
    assert fleet.password not in workers.said()
    workers.owner("Driver-Connector").kill()
    workers.done(lambda: workers.states("Driver-Connector") == ["RUNNING", "RUNNING"])
    fleet.sql(
        "UPDATE drivers SET name = 'Ada L.', updated_at = now() AT TIME ZONE 'UTC' WHERE id = 1",
        "INSERT INTO drivers (id, name) VALUES (3, 'Cleo')",
    )
    workers.done(lambda: sorted(drivers()[2:]) == [("1", "Ada L."), ("3", "Cleo")])


def test_a_logger_writes_folders_by_hour(workers: Workers, tmp_path: Path) -> None:
    workers.revive()
    log, data = tmp_path / "app.log", tmp_path / "data"
    log.write_text("")
    posted(workers, "Logger", file=str(log))
    posted(workers, "Log-Files", hdfs_url=f"file://{data}", flush_size="10")
    for part in range(3):
        with log.open("a") as file:
            file.write("".join(f"{part * 20 + n} INFO something happened\n" for n in range(20)))
        if part == 1:
            workers.owner("Log-Files").kill()
        if part == 2:
            log.rename(tmp_path / "app.log.1")
    wanted = list(range(60))
    workers.done(lambda: numbers(data) == wanted, "all lines in files")
    folders = {path.parent.relative_to(data).as_posix() for path in data.rglob("*.txt")}
    assert all(
        re.fullmatch(r"topics/app-log/year=\d{4}/month=\d\d/day=\d\d/hour=\d\d", each) for each in folders
    )


def numbers(data: Path) -> list[int]:
    return sorted(
        int(line.split()[0]) for each in data.rglob("*.txt") for line in each.read_text().splitlines()
    )


def test_a_logger_fills_a_table_of_cassandra(workers: Workers, tmp_path: Path) -> None:
    """The topic of the logger before, beside its files; the worker of the sink is killed."""
    reason = java_servers.CASSANDRA.available()
    if reason is not None:
        pytest.skip(f"no Cassandra: {reason}")
    from cassandra.cluster import Cluster

    workers.revive()
    with java_servers.Cassandra() as node:
        port = node.port
        cluster = Cluster(["127.0.0.1"], port=port, connect_timeout=60)
        session = cluster.connect()
        session.default_timeout = 60
        try:
            session.execute(
                "CREATE KEYSPACE logs WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
            )
            session.execute(
                "CREATE TABLE logs.lines (part int, at bigint, line text, PRIMARY KEY (part, at))"
            )
            posted(workers, "Log-Rows", contactPoints="127.0.0.1", port=str(port))
            workers.owner("Log-Rows").kill()
            wanted = [
                (offset, (value or b"").decode())
                for _, offset, value in records_of(workers.bootstrap, "app-log")
            ]
            assert len(wanted) >= 60
            query = "SELECT at, line FROM logs.lines WHERE part = 0"
            workers.done(
                lambda: [tuple(row) for row in session.execute(query)] == wanted, "all lines in rows"
            )
            workers.call("DELETE", "/connectors/Log-Rows")
        finally:
            cluster.shutdown()
