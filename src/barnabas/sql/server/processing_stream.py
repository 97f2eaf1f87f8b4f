"""The stream over the processing log, which a server creates on request (ksqlDB's
`ksql.logging.processing.stream.auto.create`).

In: settings, whether the topic exists. Out: the statement. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.sql.syntax.printing import name_text, string_text

CREATES = "ksql.logging.processing.stream.auto.create"
NAME = "ksql.logging.processing.stream.name"
TOPIC = "ksql.logging.processing.topic.name"
PARTITIONS = "ksql.logging.processing.topic.partitions"
PLACE = "`topic` STRING, `partition` INT, `offset` BIGINT"
COLUMNS = f"""logger STRING, level STRING, time BIGINT, message STRUCT<
  type INT,
  deserializationError STRUCT<
    target STRING, errorMessage STRING, recordB64 STRING, cause ARRAY<STRING>, {PLACE}>,
  recordProcessingError STRUCT<errorMessage STRING, record STRING, cause ARRAY<STRING>, {PLACE}>,
  productionError STRUCT<errorMessage STRING>,
  serializationError STRUCT<
    target STRING, errorMessage STRING, record STRING, cause ARRAY<STRING>, {PLACE}>,
  kafkaStreamsThreadError STRUCT<errorMessage STRING, threadName STRING, cause ARRAY<STRING>>>"""


def is_wanted(settings: Mapping[str, str]) -> bool:
    return settings.get(CREATES, "false").lower() == "true"


def topic_of(settings: Mapping[str, str], service_id: str) -> str:
    return settings.get(TOPIC) or f"{service_id}ksql_processing_log"


def statement(settings: Mapping[str, str], topic: str, *, creates_topic: bool, replicas: int) -> str:
    """CREATE STREAM, as ksqlDB writes it, with the place of the record."""
    name = settings.get(NAME) or "KSQL_PROCESSING_LOG"
    given = f"KAFKA_TOPIC={string_text(topic)}, VALUE_FORMAT='JSON'"
    if creates_topic:
        given += f", PARTITIONS={settings.get(PARTITIONS) or '1'}, REPLICAS={replicas}"
    return f"CREATE STREAM IF NOT EXISTS {name_text(name)} ({COLUMNS}) WITH ({given});"
