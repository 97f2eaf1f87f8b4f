"""ksqlDB's quickstart: the server, the engine on Spark and the shell together; a restart goes on.

On our broker, and with `--apache` on Apache Kafka too.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from barnabas.services.settings.service_settings import ServiceSettings
from barnabas.sql.execution.port import Engine
from barnabas.sql.server.engines import spark_engine
from barnabas.sql.server.settings.server_settings import ServerSettings
from barnabas.sql.shell.display import Display
from barnabas.sql.shell.server_client import ServerClient
from barnabas.sql.shell.shell import Shell
from barnabas.testing import Broker
from barnabas.testing.waiting import wait_until
from both_brokers import KEEPS_ALL, parametrize_broker
from spark_sessions import sql_session
from sql.server.running import RunningServer, running

WAIT_S = 180
RIDERS = (
    ("c2309eec", 37.7877, -122.4205),
    ("18f4ea86", 37.3903, -122.0643),
    ("4ab5cbad", 37.3952, -122.0813),
    ("8b6eae59", 37.3944, -122.0813),
    ("4a7c7b41", 37.4049, -122.0822),
    ("4ddad000", 37.7857, -122.4011),
)
STATEMENTS = """
CREATE STREAM riderLocations (profileId VARCHAR, latitude DOUBLE, longitude DOUBLE)
  WITH (kafka_topic='locations', value_format='json', partitions=1);
CREATE TABLE currentLocation AS
  SELECT profileId, LATEST_BY_OFFSET(latitude) AS la, LATEST_BY_OFFSET(longitude) AS lo
  FROM riderLocations GROUP BY profileId EMIT CHANGES;
CREATE TABLE ridersNearMountainView AS
  SELECT ROUND(GEO_DISTANCE(la, lo, 37.4133, -122.1162), -1) AS distanceInMiles,
         COLLECT_LIST(profileId) AS riders, COUNT(*) AS count
  FROM currentLocation GROUP BY ROUND(GEO_DISTANCE(la, lo, 37.4133, -122.1162), -1);
"""
NEAR = (
    "SELECT * FROM riderLocations"
    " WHERE GEO_DISTANCE(latitude, longitude, 37.4133, -122.1162) <= 5 EMIT CHANGES LIMIT 3;"
)
pytestmark = pytest.mark.timeout(900)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    parametrize_broker(metafunc)


@pytest.fixture(scope="module")
def broker(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "apache":
        yield request.getfixturevalue("apache_kafka").bootstrap
        return
    with Broker(overrides={**KEEPS_ALL, "group.initial.rebalance.delay.ms": 0}, in_process=False) as ours:
        yield ours.bootstrap


@pytest.fixture(scope="module")
def spark() -> Any:
    """The session that all tests of this process share."""
    return sql_session()


def served(broker: str, spark: Any, folder: Path) -> AbstractContextManager[RunningServer]:
    def make_engine(settings: ServiceSettings, server: ServerSettings) -> Engine:
        return spark_engine(settings, server, spark)

    given = {"ksql.streams.state.dir": str(folder), "ksql.streams.auto.offset.reset": "earliest"}
    return running(broker, "quickstart_", make=make_engine, **given)


def shown(server: RunningServer, text: str) -> str:
    out = io.StringIO()
    shell = Shell(ServerClient(server.url), Display(out, is_terminal=False))
    shell.run(text)
    shell.client.close()
    return out.getvalue()


def test_the_quickstart_gives_its_published_results_and_a_restart_goes_on(
    broker: str, spark: Any, tmp_path: Path
) -> None:
    with served(broker, spark, tmp_path) as server:
        server.wait_until_leading()
        assert "Created query with ID CTAS_CURRENTLOCATION_1" in shown(server, STATEMENTS)
        for rider, latitude, longitude in RIDERS:
            shown(server, f"INSERT INTO riderLocations VALUES ('{rider}', {latitude}, {longitude});")
        near = [row[0] for row in server.rows(NEAR)]
        assert near == ["4ab5cbad", "8b6eae59", "4a7c7b41"]
        question = "SELECT * FROM ridersNearMountainView WHERE distanceInMiles <= 10;"
        expected = [[0.0, ["4ab5cbad", "8b6eae59", "4a7c7b41"], 3], [10.0, ["18f4ea86"], 1]]
        wait_until(lambda: sorted(server.rows(question)) == expected, WAIT_S)

    with served(broker, spark, tmp_path) as server:
        shown(server, "INSERT INTO riderLocations VALUES ('4ab5cbad', 37.7857, -122.4011);")
        moved = [[0.0, ["8b6eae59", "4a7c7b41"], 2], [10.0, ["18f4ea86"], 1]]
        wait_until(lambda: sorted(server.rows(question)) == moved, WAIT_S)
        assert "RUNNING:1" in shown(server, "SHOW QUERIES;")
