"""Statements over HTTP: entities, errors, validation of a whole request, the command topic behind them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from barnabas.services.exchange import Exchange
from barnabas.services.limits import within
from barnabas.sql.server.statements.asserting import TIMEOUT_S_MAX, waits_s
from barnabas.testing.waiting import wait_until
from sql.server.fake_engine import World
from sql.server.running import RunningServer, running

STREAM = "CREATE STREAM s (k STRING KEY, v INT) WITH (KAFKA_TOPIC='s', PARTITIONS=1, VALUE_FORMAT='JSON');"


@pytest.fixture(scope="module")
def shared(broker: str) -> Iterator[RunningServer]:
    with running(broker, "shared_", **{"ksql.server.command.response.timeout.ms": "2000"}) as server:
        server.wait_until_leading()
        server.ksql(STREAM)
        yield server


def test_a_created_stream_has_a_status_and_is_listed(shared: RunningServer) -> None:
    [made] = shared.ksql("CREATE STREAM a (v INT) WITH (KAFKA_TOPIC='a', PARTITIONS=2);")

    assert made["@type"] == "currentStatus"
    assert made["commandId"] == "stream/`A`/create"
    assert made["commandStatus"] == {"status": "SUCCESS", "message": "Stream created", "queryId": None}
    [listed] = shared.ksql("SHOW STREAMS;")
    assert {"type": "STREAM", "name": "A", "topic": "a", "keyFormat": "KAFKA", "valueFormat": "JSON",
            "isWindowed": False} in listed["streams"]  # fmt: skip
    assert shared.http.get("/status/stream/A/create").json()["status"] == "SUCCESS"
    assert shared.http.get("/status").json()["commandStatuses"]["stream/`A`/create"] == "SUCCESS"
    unknown = shared.http.get("/status/stream/NOBODY/create")
    assert (unknown.status_code, unknown.json()["error_code"]) == (404, 40400)


def test_statements_of_a_request_are_checked_before_any_runs(shared: RunningServer) -> None:
    error = shared.refused(
        "CREATE STREAM b (v INT) WITH (KAFKA_TOPIC='b'); CREATE STREAM c AS SELECT * FROM nobody;"
    )

    assert (error["@type"], error["error_code"]) == ("statement_error", 40001)
    assert "NOBODY does not exist" in error["message"]
    assert error["statementText"].startswith("CREATE STREAM c")
    assert all(each["name"] != "B" for each in shared.ksql("LIST STREAMS;")[0]["streams"])


def test_a_later_statement_sees_an_earlier_one(shared: RunningServer) -> None:
    made = shared.ksql(
        "CREATE STREAM d (v INT) WITH (KAFKA_TOPIC='d'); CREATE STREAM e AS SELECT * FROM d; SHOW QUERIES;"
    )

    query_id = made[1]["commandStatus"]["queryId"]
    assert made[1]["commandSequenceNumber"] == made[0]["commandSequenceNumber"] + 1
    assert query_id == f"CSAS_E_{made[1]['commandSequenceNumber']}"
    [row] = [each for each in made[2]["queries"] if each["id"] == query_id]
    assert (row["sinks"], row["state"], row["queryType"]) == (["E"], "RUNNING", "PERSISTENT")


def test_a_source_with_readers_is_not_dropped_and_its_query_can_be_controlled(shared: RunningServer) -> None:
    shared.ksql("CREATE STREAM f (v INT) WITH (KAFKA_TOPIC='f');")
    query_id = shared.ksql("CREATE STREAM g AS SELECT * FROM f;")[0]["commandStatus"]["queryId"]

    assert query_id in shared.refused("DROP STREAM f;")["message"]
    shared.ksql(f"PAUSE {query_id};")
    [described] = shared.ksql("DESCRIBE g;")
    assert described["sourceDescription"]["writeQueries"][0]["state"] == "PAUSED"
    shared.ksql(f"RESUME {query_id};")
    [ended] = shared.ksql(f"TERMINATE {query_id};")
    assert ended["commandId"] == f"terminate/{query_id}/execute"
    assert query_id not in shared.engines[0].running
    assert shared.ksql("DROP STREAM f DELETE TOPIC;")[0]["commandStatus"]["status"] == "SUCCESS"
    assert "f" in shared.world.deleted
    assert "Unknown queryId" in shared.refused(f"TERMINATE {query_id};")["message"]


def test_errors_name_the_place_and_what_would_be_right(shared: RunningServer) -> None:
    error = shared.refused("SHOW STREAMS;\nSELEC * FROM s;")
    assert error["message"].startswith("line 2, column 1")
    assert "SELECT" in error["message"]
    wrong = shared.refused("SELECT * FROM s EMIT CHANGES;")
    assert (wrong["error_code"], wrong["@type"]) == (40002, "statement_error")
    assert shared.refused("")["error_code"] == 40000
    assert "';'" in shared.refused("SHOW STREAMS")["message"]
    assert shared.http.get("/nowhere").json()["error_code"] == 40400
    assert shared.http.post("/ksql", content=b"{").json()["error_code"] == 40000
    assert "S does exist" not in shared.refused("DESCRIBE t;")["message"]
    assert "Did you mean S?" in shared.refused("DESCRIBE ss;")["message"]


def test_entities_before_an_error_are_told(shared: RunningServer) -> None:
    error = shared.refused("SHOW TYPES; DESCRIBE CONNECTOR nobody;")
    assert [each["@type"] for each in error["entities"]] == ["type_list"]


def test_variables_and_properties_last_for_a_request(shared: RunningServer) -> None:
    found = shared.ksql(
        "DEFINE t = 'h'; SET 'auto.offset.reset'='earliest';"
        "CREATE STREAM ${t} (v INT) WITH (KAFKA_TOPIC='${t}'); SHOW VARIABLES; SHOW PROPERTIES;",
        sessionVariables={"more": "1"},
    )
    assert found[0]["commandId"] == "stream/`H`/create"
    assert found[1]["variables"] == [{"name": "T", "value": "h"}, {"name": "more", "value": "1"}]
    assert found[2]["overwrittenProperties"] == ["auto.offset.reset"]
    [own] = [each for each in found[2]["properties"] if each["name"] == "auto.offset.reset"]
    assert own == {"name": "auto.offset.reset", "scope": "SESSION", "value": "earliest", "editable": True,
                   "level": "SESSION"}  # fmt: skip
    assert "not defined" in shared.refused("DESCRIBE ${t};")["message"]
    assert shared.refused("SHOW STREAMS;", streamsProperties={"no.such": "1"})["error_code"] == 40001
    assert shared.refused("SET 'ksql.service.id'='other';")["error_code"] == 40001


def test_descriptions_have_fields_with_types(shared: RunningServer) -> None:
    shared.ksql(
        "CREATE TYPE place AS STRUCT<street STRING, no INT>;"
        "CREATE TABLE p (k STRING PRIMARY KEY, d DECIMAL(4,2), a ARRAY<INT>, m MAP<STRING, BIGINT>,"
        " s STRUCT<x INT>) WITH (KAFKA_TOPIC='p', PARTITIONS=1);"
    )
    described = shared.ksql("DESCRIBE p EXTENDED;")[0]["sourceDescription"]
    fields = {each["name"]: each for each in described["fields"]}

    assert (described["type"], described["extended"]) == ("TABLE", True)
    assert fields["K"]["type"] == "KEY"
    assert fields["D"]["schema"]["parameters"] == {"precision": 4, "scale": 2}
    assert fields["A"]["schema"]["memberSchema"]["type"] == "INTEGER"
    assert fields["M"]["schema"]["memberSchema"]["type"] == "BIGINT"
    assert fields["S"]["schema"]["fields"][0]["name"] == "X"
    assert shared.ksql("SHOW TYPES;")[0]["types"]["PLACE"]["type"] == "STRUCT"
    assert shared.ksql("SHOW TABLES;")[0]["tables"][0]["name"] == "P"
    assert [each["name"] for each in shared.ksql("SHOW TABLES EXTENDED;")[0]["sourceDescriptions"]] == ["P"]


def test_functions_and_plans_are_described(shared: RunningServer) -> None:
    [names] = shared.ksql("SHOW FUNCTIONS;")
    assert {"name": "ABS", "type": "SCALAR", "category": "math"} in names["functions"]
    [row] = shared.ksql("DESCRIBE FUNCTION abs;")
    assert row["functions"][0]["arguments"][0]["type"] == "INT"
    assert "Did you mean ABS?" in shared.refused("DESCRIBE FUNCTION abss;")["message"]
    [plan] = shared.ksql("EXPLAIN SELECT * FROM s EMIT CHANGES;")
    assert plan["queryDescription"]["executionPlan"] == "a plan"
    assert plan["queryDescription"]["road"] == "a road"


def test_topics_are_listed_without_those_of_the_system(shared: RunningServer, broker: str) -> None:
    [found] = shared.ksql("SHOW ALL TOPICS;")
    names = [each["name"] for each in found["topics"]]
    assert "_confluent-ksql-shared__command_topic" in names
    [plain] = shared.ksql("SHOW TOPICS EXTENDED;")
    assert plain["@type"] == "kafka_topics_extended"
    assert not any(each["name"].startswith("_") for each in plain["topics"])


def test_if_not_exists_warns_and_writes_nothing(shared: RunningServer) -> None:
    before = shared.ksql("CREATE TYPE once AS INT;")[0]["commandSequenceNumber"]
    [warned] = shared.ksql("CREATE STREAM IF NOT EXISTS s (k STRING KEY) WITH (KAFKA_TOPIC='s');")
    assert (warned["@type"], warned["message"]) == ("warning_entity", "it exists already")
    assert shared.ksql("DROP TYPE once;")[0]["commandSequenceNumber"] == before + 1


def test_asserts_wait_and_tell_what_is_not_true(shared: RunningServer) -> None:
    name = "_confluent-ksql-shared__command_topic"
    [true] = shared.ksql(f"ASSERT TOPIC `{name}` WITH (PARTITIONS=1);")
    assert true == {"@type": "assert_topic", "statementText": true["statementText"], "topicName": name,
                    "exists": True, "warnings": []}  # fmt: skip
    shared.ksql("ASSERT NOT EXISTS TOPIC nobody;")
    missing = shared.post("/ksql", {"ksql": "ASSERT TOPIC nobody TIMEOUT 1 SECOND;"})
    assert (missing.status_code, missing.json()["error_code"]) == (417, 41700)
    upper = shared.post("/ksql", {"ksql": f"ASSERT TOPIC `{name.upper()}` TIMEOUT 1 SECOND;"}).json()
    assert upper["message"].endswith(f"does not exist: there is '{name}', put its name into quotes")
    other = shared.post("/ksql", {"ksql": f"ASSERT TOPIC `{name}` WITH (PARTITIONS=9);"}).json()
    assert "PARTITIONS=1, not 9" in other["message"]
    assert shared.post("/ksql", {"ksql": "ASSERT SCHEMA ID 1;"}).status_code == 428


def test_facts_about_the_server(shared: RunningServer) -> None:
    info = shared.http.get("/info").json()["KsqlServerInfo"]
    assert (info["ksqlServiceId"], info["serverStatus"]) == ("shared_", "RUNNING")
    assert info["kafkaClusterId"]
    health = shared.http.get("/healthcheck").json()
    assert (health["isHealthy"], health["serverState"]) == (True, "READY")
    assert shared.http.get("/v1/metadata").json()["scope"]["clusters"]["ksql-cluster"] == "shared_"
    assert shared.http.get("/clusterStatus").json()["clusterStatus"]
    assert shared.http.get("/is_valid_property/ksql.streams.auto.offset.reset").json() is True
    assert shared.http.get("/is_valid_property/nonsense").status_code == 400


def test_the_status_of_the_cluster_has_stores_and_their_lags(shared: RunningServer) -> None:
    shared.ksql(
        "CREATE TABLE kept_source (k STRING PRIMARY KEY) WITH (KAFKA_TOPIC='kept', PARTITIONS=1);"
        "CREATE TABLE kept AS SELECT * FROM kept_source;"
    )
    wait_until(lambda: any("KEPT" in each for each in shared.engines[0].running), seconds=60)
    [query_id] = [each for each in shared.engines[0].running if "KEPT" in each]
    [status] = shared.http.get("/clusterStatus").json()["clusterStatus"].values()
    assert status["activeStandbyPerQuery"][query_id] == {
        "activeStores": ["Aggregate"],
        "activePartitions": [{"topic": "s", "partition": 0}, {"topic": "s", "partition": 1}],
        "standByStores": [],
        "standByPartitions": [],
    }
    lags = status["hostStoreLags"]["stateStoreLags"][f"_confluent-ksql-query_{query_id}#Aggregate"]
    assert lags["lagByPartition"]["0"] == {
        "currentOffsetPosition": 5,
        "endOffsetPosition": 5,
        "offsetLag": 0,
    }


def test_an_assert_may_wait_longer_than_a_request_may_last() -> None:
    texts = ["ASSERT TOPIC t TIMEOUT 5 MINUTES", "assert schema subject 's' TIMEOUT 2 SECONDS", "ASSERT x"]
    assert waits_s([*texts, "SHOW TOPICS"]) == 302
    assert waits_s(["ASSERT TOPIC t TIMEOUT 30 DAYS"]) == TIMEOUT_S_MAX
    exchange = Exchange()

    async def run() -> None:
        assert exchange.extend is not None
        exchange.extend(60)
        await asyncio.sleep(0.05)

    asyncio.run(within(0.01, exchange, run))


def test_the_stream_over_the_processing_log_is_made_where_it_is_wanted(broker: str, service_id: str) -> None:
    wanted = {"ksql.logging.processing.stream.auto.create": "true"}
    for _ in range(2):  # the second start finds it
        with running(broker, service_id, **wanted) as server:
            wait_until(lambda server=server: "KSQL_PROCESSING_LOG" in str(server.ksql("SHOW STREAMS;")), 30)
            fields = server.ksql("DESCRIBE ksql_processing_log;")[0]["sourceDescription"]["fields"]
            assert [each["name"] for each in fields] == ["LOGGER", "LEVEL", "TIME", "MESSAGE"]


def test_a_request_waits_for_a_command_that_it_names(shared: RunningServer) -> None:
    number = shared.ksql("CREATE TYPE seen AS INT;")[0]["commandSequenceNumber"]
    assert shared.ksql("SHOW TYPES;", commandSequenceNumber=number)
    with_short_wait = shared.post("/ksql", {"ksql": "SHOW TYPES;", "commandSequenceNumber": number + 1000})
    assert (with_short_wait.status_code, with_short_wait.json()["error_code"]) == (503, 50301)


def test_a_server_that_starts_again_continues_its_queries(broker: str, service_id: str) -> None:
    world = World()
    with running(broker, service_id, world) as first:
        first.wait_until_leading()
        query_id = first.ksql(f"{STREAM} CREATE STREAM t AS SELECT * FROM s;")[1]["commandStatus"]["queryId"]
        gone = first.ksql("CREATE STREAM u AS SELECT * FROM s;")[0]["commandStatus"]["queryId"]
        first.ksql(f"TERMINATE {gone}; PAUSE {query_id}; ALTER SYSTEM 'auto.offset.reset'='earliest';")

    with running(broker, service_id, world) as second:
        wait_until(lambda: query_id in second.engines[0].running, seconds=30)
        wait_until(lambda: query_id in second.engines[0].paused, seconds=30)
        assert gone not in second.engines[0].running
        [listed] = second.ksql("SHOW QUERIES;")
        assert [(each["id"], each["state"]) for each in listed["queries"]] == [(query_id, "PAUSED")]
        assert {each["name"] for each in second.ksql("SHOW STREAMS;")[0]["streams"]} == {"S", "T", "U"}


def test_a_terminated_cluster_takes_no_statements(broker: str, service_id: str) -> None:
    with running(broker, service_id) as server:
        server.wait_until_leading()
        server.ksql(f"{STREAM} CREATE STREAM t AS SELECT * FROM s;")
        bad = server.post("/ksql/terminate", {"deleteTopicList": ["("]})
        assert bad.status_code == 400
        ended = server.post("/ksql/terminate", {"deleteTopicList": ["T"]}).json()
        assert ended["commandStatus"]["status"] == "SUCCESS", ended
        refused = server.post("/ksql", {"ksql": "CREATE TYPE x AS INT;"})
        assert (refused.status_code, refused.json()["error_code"]) == (503, 50304)
        assert server.http.get("/info").json()["KsqlServerInfo"]["serverStatus"] == "TERMINATED"


def test_a_server_of_a_file_takes_no_statements(broker: str, service_id: str, tmp_path: object) -> None:
    from pathlib import Path

    file = Path(str(tmp_path)) / "queries.sql"
    file.write_text(f"-- a comment\n{STREAM}\nCREATE STREAM t AS SELECT * FROM s")
    with running(broker, service_id, **{"ksql.queries.file": str(file)}) as server:
        wait_until(lambda: server.engines and server.engines[0].running, seconds=30)
        assert list(server.engines[0].running) == ["CSAS_T_1"]
        assert "takes no others" in server.refused("CREATE TYPE x AS INT;")["message"]
        assert len(server.ksql("SHOW STREAMS;")[0]["streams"]) == 2
