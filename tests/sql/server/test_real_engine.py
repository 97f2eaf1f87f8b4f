"""Requests against the engine on brokers: what no engine in memory knows. No query here needs Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from barnabas.services.settings.service_settings import ServiceSettings
from barnabas.sql.execution.port import Engine
from barnabas.sql.server.engines import spark_engine
from barnabas.sql.server.settings.server_settings import ServerSettings
from barnabas.testing.waiting import wait_until
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


@pytest.mark.long
def test_a_query_on_spark_is_measured_on_the_page_of_its_node(
    broker: str, service_id: str, tmp_path: Path
) -> None:
    pytest.importorskip("pyspark", reason="needs the extra `spark`")

    def make_engine(settings: ServiceSettings, server: ServerSettings) -> Engine:
        return spark_engine(settings, server)

    given = {
        "ksql.streams.state.dir": str(tmp_path),
        "ksql.streams.auto.offset.reset": "earliest",
        "ksql.spark.spark.master": "local[1]",
    }
    with running(broker, service_id, make=make_engine, **given) as server:
        server.wait_until_leading()
        topic = "KAFKA_TOPIC='w', PARTITIONS=1, VALUE_FORMAT='JSON'"
        server.ksql(f"CREATE STREAM words (k STRING KEY, v INT) WITH ({topic});")
        server.ksql("CREATE TABLE counts AS SELECT k, COUNT(*) AS n FROM words GROUP BY k;")
        for number in range(3):
            server.ksql(f"INSERT INTO words VALUES ('a', {number});")

        def shown() -> dict[str, float]:
            families = text_string_to_metric_families(server.http.get("/metrics").text)
            samples = [sample for family in families for sample in family.samples]
            return {
                each.name: each.value for each in samples if "CTAS_COUNTS" in each.labels.get("query", "")
            }

        wait_until(lambda: shown().get("barnabas_sql_query_records_in_total") == 3, seconds=120)
        found = shown()
        assert found["kafka_streams_stream_task_metrics_process_total"] == 3
        assert found["kafka_streams_stream_thread_metrics_commit_latency_max"] > 0
        assert found["barnabas_sql_query_lag"] == 0
