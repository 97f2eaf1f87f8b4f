"""Persistent queries on Spark: results, pauses, failures that stay alone, restarts, the processing log."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.spark_sessions import sql_session

from barnabas.client.admin.topics import TopicAdmin
from barnabas.client.consumer import Consumer, ConsumerSettings
from barnabas.client.core.fetching import ConsumerRecord
from barnabas.client.core.topology import TopicPartition
from barnabas.client.producer import NewRecord, Producer
from barnabas.plans.interpreter.records import Output
from barnabas.sql.execution.port import QueryState
from barnabas.sql.metastore.metastore import Metastore, PutSource
from barnabas.sql.running.engine import SparkEngine
from barnabas.sql.running.settings import EngineSettings
from barnabas.testing.broker import Broker
from barnabas.testing.waiting import until
from sql.running.works import COUNT, ID, V, copied, counted, pulled, rows_of, source

WAIT_S = 90
SERVICE = "test_"
EXACTLY_ONCE = {"processing.guarantee": "exactly_once_v2"}
_numbers = itertools.count(1)
Pairs = list[tuple[bytes | None, bytes | None]]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(in_process=False) as found:
        yield found


@pytest.fixture(scope="module")
def spark() -> Any:
    return sql_session()


@asynccontextmanager
async def engine(broker: Broker, spark: Any, folder: Path, **given: str) -> AsyncIterator[SparkEngine]:
    properties = {
        "bootstrap.servers": broker.bootstrap,
        "ksql.service.id": SERVICE,
        "ksql.streams.state.dir": str(folder),
        "ksql.query.retry.backoff.initial.ms": "100",
        "ksql.query.retry.backoff.max.ms": "200",
        **given,
    }
    found = SparkEngine(EngineSettings.of(properties), spark=spark)
    try:
        yield found
    finally:
        await found.close()


def topic(broker: Broker, partitions: int = 2) -> str:
    name = f"rows-{next(_numbers)}"
    broker.create_topic(name, partitions)
    return name


async def send(found: SparkEngine, name: str, pairs: Pairs) -> None:
    async with Producer(found._cluster) as producer:
        await producer.send_all(name, [NewRecord(None, key, value) for key, value in pairs])


async def records(found: SparkEngine, name: str) -> list[ConsumerRecord]:
    """All committed records of a topic."""
    consumer = Consumer(found._cluster, ConsumerSettings(read_committed=True, fetch_wait_ms_max=50))
    count = await found._cluster.partitions_of(name)
    await consumer.assign_at([TopicPartition(name, each) for each in range(count)], -2)
    gathered: list[ConsumerRecord] = []
    while some := await consumer.poll(200):
        gathered += some
    await consumer.close()
    return gathered


async def values(found: SparkEngine, name: str) -> list[Any]:
    return [json.loads(each.value or b"null") for each in await records(found, name)]


@pytest.mark.long
def test_queries_share_a_session_and_one_that_fails_stops_alone(
    broker: Broker, spark: Any, tmp_path: Path
) -> None:
    first, gone, out, counts = (topic(broker) for _ in range(4))
    stream, lost = source("S", first, ID, V), source("L", gone, ID, V)
    copy, table = source("C", out, ID, V), source("T", counts, ID, COUNT, is_table=True)

    async def main() -> None:
        async with engine(broker, spark, tmp_path) as found:
            await found.carry_out(copied("COPY", rows_of(stream), rows_of(copy), SERVICE, least=5))
            await found.carry_out(counted("COUNT", rows_of(stream), rows_of(table), SERVICE, **EXACTLY_ONCE))
            await found.carry_out(copied("LOST", rows_of(lost), rows_of(copy), SERVICE))
            store = Metastore().apply([PutSource(stream)])
            for number in range(10):
                await found.insert_row(store, "S", {"ID": f"k{number % 2}", "V": number}, {})
            await send(found, first, [(b"k9", b"no json")])
            asked = pulled(rows_of(table))

            async def all_counted() -> bool:
                return sorted((await found.pull(asked)).rows) == [["k0", 5], ["k1", 5]]

            await until(all_counted, WAIT_S)
            await until(lambda: status(found, "COPY").outputs >= 5, WAIT_S)
            assert sorted(each["V"] for each in await values(found, out)) == [5, 6, 7, 8, 9]
            assert status(found, "COPY").dropped == {"deserialization": 1}
            assert status(found, "COUNT").application_id == "_confluent-ksql-test_query_COUNT"
            lines = await values(found, f"{SERVICE}ksql_processing_log")
            assert {line["logger"].split(".")[1] for line in lines} == {"COPY", "COUNT"}
            assert {line["message"]["type"] for line in lines} == {0}
            assert lines[0]["message"]["deserializationError"]["topic"] == first
            # A topic that is deleted stops its own query.
            broker.delete_topic(gone)
            await until(lambda: status(found, "LOST").state is QueryState.ERROR, WAIT_S)
            assert gone in status(found, "LOST").errors[0].message
            assert status(found, "COPY").state is QueryState.RUNNING
            # A paused query waits; what came meanwhile is done when it goes on.
            await found.pause("COPY")
            assert status(found, "COPY").state is QueryState.PAUSED
            await found.insert_row(store, "S", {"ID": "k0", "V": 77}, {})

            async def is_counted() -> bool:
                return ["k0", 6] in (await found.pull(asked)).rows

            await until(is_counted, WAIT_S)
            assert 77 not in [each["V"] for each in await values(found, out)]
            await found.resume("COPY")

            async def is_copied() -> bool:
                return 77 in [each["V"] for each in await values(found, out)]

            await until(is_copied, WAIT_S)
        # The queries go on where they stood.
        async with engine(broker, spark, tmp_path) as found:
            await found.insert_row(store, "S", {"ID": "k1", "V": 78}, {})
            await found.carry_out(counted("COUNT", rows_of(stream), rows_of(table), SERVICE, **EXACTLY_ONCE))

            async def goes_on() -> bool:
                return sorted((await found.pull(asked)).rows) == [["k0", 6], ["k1", 6]]

            await until(goes_on, WAIT_S)
            # A query that is stopped leaves no internal topics, no group and no state.
            names = await found._cluster.topics(None)
            assert "_confluent-ksql-test_query_COUNT-counts-changelog" in names
            await found.stop("COUNT")
            names = await found._cluster.topics(None)
            assert not [name for name in names if name.startswith("_confluent-ksql-test_query_COUNT")]
            assert not (tmp_path / "_confluent-ksql-test_query_COUNT").exists()
            assert found.status("COUNT") is None

    asyncio.run(main())


def status(found: SparkEngine, query_id: str) -> Any:
    return found.status(query_id)


def test_a_record_that_cannot_be_read_stops_a_query_that_wants_it(
    broker: Broker, spark: Any, tmp_path: Path
) -> None:
    first, out = topic(broker, 1), topic(broker, 1)
    stream, copy = source("S", first, ID, V), source("C", out, ID, V)

    async def main() -> None:
        async with engine(broker, spark, tmp_path) as found:
            await send(found, first, [(b"a", b'{"V":1}'), (b"a", b"no json")])
            strict = {"ksql.fail.on.deserialization.error": "true"}
            await found.carry_out(copied("STRICT", rows_of(stream), rows_of(copy), SERVICE, **strict))
            await until(lambda: status(found, "STRICT").state is QueryState.ERROR, WAIT_S)
            error = status(found, "STRICT").errors[0]
            assert error.kind == "USER" and f"{first}-0@1" in error.message
            assert await records(found, out) == []

    asyncio.run(main())


def test_new_partitions_are_found_while_a_query_runs(broker: Broker, tmp_path: Path) -> None:
    first, out = topic(broker, 1), topic(broker, 1)
    stream, copy = source("S", first, ID, V), source("C", out, ID, V)

    async def main() -> None:
        age = {"ksql.streams.metadata.max.age.ms": "50"}
        async with engine(broker, object(), tmp_path, **age) as found:  # no batch runs
            await found.carry_out(copied("WIDER", rows_of(stream), rows_of(copy), SERVICE))
            query = found._queries["WIDER"]
            await until(lambda: query.parts is not None, WAIT_S)
            await TopicAdmin(found._cluster).create_partitions({first: 3})

            def has_all() -> bool:
                return [dict(part.topics) for part in query.parts or ()] == [{first: 3}]

            await until(has_all, WAIT_S)
            assert query.state is QueryState.RUNNING

    asyncio.run(main())


def test_lines_of_the_processing_log_have_ksqldbs_form() -> None:
    from barnabas.plans.interpreter.records import Failure, Problem, Record
    from barnabas.sql.formats.contract import BadKeyBytes
    from barnabas.sql.running.processing_log import LINES_MAX, LogSettings, ProcessingLog

    log = ProcessingLog(LogSettings("CSAS_X_1", "log"))
    handlers = log.handlers()
    record = Record(b"k", b"v", 1, (), 3, 14)
    bad = Failure("deserialization", "src", "t", record, BadKeyBytes("no"))
    assert handlers.deserialization(bad) == "continue"
    handlers.problem(Problem("CSAS_X_1.Project", "Error computing V", "ZeroDivisionError: x", "t", 3, 15, 1))
    log.left_out_by_operators({"late": 2, "deserialization": 1})
    key, problem, late = (content(each) for each in log.pop_lines())
    assert key["message"]["deserializationError"]["target"] == "key"
    assert key["message"]["deserializationError"]["offset"] == 14
    assert (problem["logger"], problem["message"]["type"]) == ("processing.CSAS_X_1.Project", 1)
    assert problem["message"]["recordProcessingError"]["offset"] == 15
    assert "2 rows left out: late" in late["message"]["recordProcessingError"]["errorMessage"]
    for _ in range(LINES_MAX + 5):
        handlers.problem(Problem("a", "b", "c", "t", 0, 0, 0))
    lines = log.pop_lines()
    assert len(lines) == LINES_MAX + 1
    assert "5 more lines" in content(lines[-1])["message"]["recordProcessingError"]["errorMessage"]


def test_a_row_without_a_time_or_a_form_is_logged_or_stops_its_query() -> None:
    from barnabas.plans.interpreter.records import Failure, Record
    from barnabas.sql.analysis.times import NoTime
    from barnabas.sql.running.processing_log import ProcessingLog
    from barnabas.sql.running.settings import EngineSettings

    record = Record(b"k", b"v", 1, (), 3, 14)
    timeless = Failure("processing", "src", "t", record, NoTime("no time"))
    formless = Failure("production", "sink", "t", record, ValueError("too long"))
    strange = Failure("processing", "src", "t", record, ZeroDivisionError())

    def log_with(**given: str) -> ProcessingLog:
        settings = EngineSettings.of({"bootstrap.servers": "a:1", **given})
        return ProcessingLog(settings.log_settings("CSAS_X_1", "log", {}))

    log = log_with()
    assert [log.handlers().processing(each) for each in (timeless, strange)] == ["continue", "fail"]
    assert log.handlers().production(formless) == "fail"
    tolerant = {"ksql.fail.on.production.error": "false", "ksql.timestamp.throw.on.invalid": "true"}
    log = log_with(**tolerant, **{"ksql.logging.processing.rows.include": "true"})
    assert log.handlers().processing(timeless) == "fail"
    assert log.handlers().production(formless) == "continue"
    assert log.handlers().deserialization(Failure("deserialization", "s", "t", record, ValueError("x")))
    row, bad = (content(each)["message"] for each in log.pop_lines())
    assert (row["type"], bad["type"]) == (3, 0)
    assert row["serializationError"] == {
        "target": "value",
        "errorMessage": "Error serializing message to topic",
        "record": "dg==",
        "cause": ["too long"],
        "topic": "t",
        "partition": 3,
        "offset": 14,
    }
    assert bad["deserializationError"]["recordB64"] == "dg=="


def test_lines_about_expressions_have_the_row_where_that_is_asked() -> None:
    from barnabas.plans.interpreter.records import Problem
    from barnabas.sql.running.processing_log import LogSettings, ProcessingLog

    row = {"A": 1, "B": None, "C": [1.5, Decimal("2.50")], "D": b"x"}
    problem = Problem("Q.Project", "no value", "ValueError: x", "t", 0, 7, 1, row)
    found = []
    for includes in (False, True):
        log = ProcessingLog(LogSettings("Q", "log", includes_rows=includes))
        log.handlers().problem(problem)
        [line] = log.pop_lines()
        found.append(content(line)["message"]["recordProcessingError"]["record"])
    assert found == [None, '[1,null,[1.5,2.50],"eA=="]']


def content(line: Output) -> Any:
    assert line.topic == "log"
    return json.loads(line.value or b"")
