"""Requests against the engine on brokers: what no engine in memory knows. No query here needs Spark."""

from __future__ import annotations

from pathlib import Path

from barnabas.services.settings.service_settings import ServiceSettings
from barnabas.sql.execution.port import Engine
from barnabas.sql.server.engines import spark_engine
from barnabas.sql.server.settings.server_settings import ServerSettings
from sql.server.running import running

TWO_OVER_ONE_TOPIC = """
CREATE STREAM raw (ts STRING, v INT) WITH (KAFKA_TOPIC='raw', VALUE_FORMAT='JSON', PARTITIONS=1);
CREATE STREAM timed (ts STRING, v INT)
  WITH (KAFKA_TOPIC='raw', VALUE_FORMAT='JSON', TIMESTAMP='ts', TIMESTAMP_FORMAT='yyyy-MM-dd');
INSERT INTO raw VALUES ('2020-01-02', 1);
"""


def test_a_statement_sees_the_topic_that_one_before_it_creates(
    broker: str, service_id: str, tmp_path: Path
) -> None:
    def make_engine(settings: ServiceSettings, server: ServerSettings) -> Engine:
        return spark_engine(settings, server)

    given = {"ksql.streams.state.dir": str(tmp_path), "ksql.streams.auto.offset.reset": "earliest"}
    with running(broker, service_id, make=make_engine, **given) as server:
        server.wait_until_leading()
        missing = TWO_OVER_ONE_TOPIC.replace("'raw'", "'other'").split(";")[1] + ";"
        assert "Topic 'other' does not exist" in server.refused(missing)["message"]
        assert len(server.ksql(TWO_OVER_ONE_TOPIC)) == 2
        assert server.rows("SELECT ROWTIME, v FROM timed;") == [[1_577_923_200_000, 1]]
