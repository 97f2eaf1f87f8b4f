"""SELECTs over HTTP/1.1, HTTP/2 and WebSocket: forms of rows, ends, limits, slow readers, inserts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
from websockets.sync.client import connect

from barnabas.testing.waiting import wait_until
from sql.server.running import RunningServer, running

PATIENCE_S = 60  # a process of idle priority may stand still for seconds
SOURCES = (
    "CREATE STREAM s (k STRING KEY, v INT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);"
    "CREATE TABLE t (k STRING PRIMARY KEY, v INT) WITH (KAFKA_TOPIC='t', PARTITIONS=1);"
)


@pytest.fixture(scope="module")
def shared(broker: str) -> Iterator[RunningServer]:
    with running(broker, "selects_", **{"ksql.max.push.queries": "3"}) as server:
        server.wait_until_leading()
        server.ksql(SOURCES)
        for number in range(3):
            server.ksql(f"INSERT INTO s (k, v) VALUES ('a{number}', {number});")
        server.ksql("INSERT INTO t (k, v) VALUES ('b', 7);")
        yield server


def test_a_push_query_ends_at_its_limit(shared: RunningServer) -> None:
    found = shared.post("/query-stream", {"sql": "SELECT * FROM s EMIT CHANGES LIMIT 2;"})

    head, *rows = [json.loads(line) for line in found.text.splitlines()]
    assert found.headers["content-type"] == "application/vnd.ksqlapi.delimited.v1"
    assert (head["columnNames"], head["columnTypes"]) == (["K", "V"], ["STRING", "INTEGER"])
    assert head["queryId"].startswith("transient_S_")
    assert rows == [["a0", 0], ["a1", 1]]


def test_the_old_endpoint_sends_objects_and_a_final_message(shared: RunningServer) -> None:
    found = shared.post("/query", {"ksql": "SELECT * FROM s EMIT CHANGES LIMIT 1;"})

    lines = found.text.split("\n")
    assert (
        json.loads(lines[0].removeprefix("[").rstrip(","))["header"]["schema"]
        == "`K` STRING KEY, `V` INTEGER"
    )
    assert [json.loads(found.text)[index] for index in (1, 2)] == [
        {"row": {"columns": ["a0", 0]}},
        {"finalMessage": "Limit Reached"},
    ]


def test_a_stream_without_emit_ends_at_its_end(shared: RunningServer) -> None:
    rows = shared.post("/query", {"ksql": "SELECT v FROM s;"}).json()
    assert rows[-1] == {"finalMessage": "Query Completed"}
    assert [each["row"]["columns"] for each in rows[1:-1]] == [[0], [1], [2]]


def test_a_pull_query_gives_an_array_where_json_is_asked(shared: RunningServer) -> None:
    found = shared.post("/query-stream", {"sql": "SELECT * FROM t WHERE k='b';"}, accept="application/json")
    head, row = found.json()
    assert (head["columnNames"], row) == (["K", "V"], ["b", 7])
    refused = shared.post("/query-stream", {"sql": "SELECT * FROM t;"}, accept="text/html")
    assert (refused.status_code, refused.json()["error_code"]) == (406, 40600)


def test_wrong_selects_are_refused_before_they_stream(shared: RunningServer) -> None:
    wrong = shared.post("/query-stream", {"sql": "SELECT x FROM s EMIT CHANGES;"})
    assert (wrong.status_code, wrong.json()["error_code"]) == (400, 40001)
    assert "line 1, column 8" in wrong.json()["message"]
    assert shared.post("/query", {"ksql": "SHOW STREAMS;"}).json()["error_code"] == 40001
    assert shared.post("/query", {"ksql": "SELECT * FROM s; SELECT * FROM s;"}).json()["error_code"] == 40000
    assert shared.post("/close-query", {"queryId": "nobody"}).status_code == 400


async def lines_of(response: httpx.Response) -> AsyncIterator[str]:
    async for line in response.aiter_lines():
        yield line


def test_push_queries_run_side_by_side_on_one_connection_of_http_2(shared: RunningServer) -> None:
    async def run() -> None:
        async with httpx.AsyncClient(
            http1=False, http2=True, base_url=shared.url, trust_env=False, timeout=PATIENCE_S
        ) as client:
            request = {"sql": "SELECT * FROM s EMIT CHANGES;"}
            async with (
                client.stream("POST", "/query-stream", json=request) as one,
                client.stream("POST", "/query-stream", json=request) as two,
            ):
                assert one.http_version == two.http_version == "HTTP/2"
                for response in (one, two):
                    lines = lines_of(response)
                    head = json.loads(await anext(lines))
                    assert [json.loads(await anext(lines)) for _ in range(3)] == [
                        ["a0", 0],
                        ["a1", 1],
                        ["a2", 2],
                    ]
                    closed = await client.post("/close-query", json={"queryId": head["queryId"]})
                    assert closed.status_code == 200
                    assert [line async for line in lines] == []

    asyncio.run(run())
    wait_until(lambda: all(each.is_closed for each in shared.engines[0].selects), seconds=PATIENCE_S)


def test_more_push_queries_than_allowed_are_refused_and_a_gone_reader_frees_its_place(
    shared: RunningServer,
) -> None:
    request = {"sql": "SELECT * FROM s EMIT CHANGES;"}
    streams = [shared.http.stream("POST", "/query-stream", json=request) for _ in range(3)]
    responses = [each.__enter__() for each in streams]
    assert all(each.status_code == 200 for each in responses)
    refused = shared.post("/query-stream", request)
    assert (refused.status_code, refused.json()["error_code"]) == (400, 40003)
    pushes = [each for each in shared.ksql("SHOW QUERIES;")[0]["queries"] if each["queryType"] == "PUSH"]
    assert len(pushes) == 3
    ended = shared.ksql(f"TERMINATE {pushes[0]['id']};")[0]
    assert ended["wasTerminated"] is True
    for each in streams:
        each.__exit__(None, None, None)
    wait_until(
        lambda: "barnabas_sql_push_queries 0.0" in shared.http.get("/metrics").text, seconds=PATIENCE_S
    )
    wait_until(lambda: all(each.is_closed for each in shared.engines[0].selects), seconds=PATIENCE_S)


def test_a_slow_reader_holds_rows_up(shared: RunningServer) -> None:
    count = 200_000
    shared.ksql("CREATE STREAM big (v STRING) WITH (KAFKA_TOPIC='big', PARTITIONS=1);")
    shared.world.rows["BIG"] = [["x" * 100] for _ in range(count)]
    request = {"sql": "SELECT * FROM big EMIT CHANGES;"}
    with shared.http.stream("POST", "/query-stream", json=request) as response:
        next(response.iter_raw(1))
        taken: list[int] = [-1]

        def stands_still() -> bool:
            taken.append(shared.engines[0].selects[-1].taken)
            return taken[-1] == taken[-2] > 0

        wait_until(stands_still, seconds=PATIENCE_S)
        assert taken[-1] < count / 2, "the server reads ahead of a reader that takes nothing"


def test_a_web_socket_has_the_schema_then_rows(shared: RunningServer) -> None:
    url = shared.url.replace("http", "ws") + "/ws/query"
    with connect(url, open_timeout=PATIENCE_S) as socket:
        socket.send(json.dumps({"ksql": "SELECT * FROM s EMIT CHANGES LIMIT 1;"}))
        fields = json.loads(socket.recv())
        assert [each["name"] for each in fields] == ["K", "V"]
        assert json.loads(socket.recv()) == {"row": {"columns": ["a0", 0]}}
        assert json.loads(socket.recv()) == {"finalMessage": "Limit Reached"}
    with connect(url, open_timeout=PATIENCE_S) as socket:
        socket.send(json.dumps({"ksql": "SELECT * FROM nobody;"}))
        assert json.loads(socket.recv())["error_code"] == 40001


@pytest.mark.parametrize("is_http2", [False, True])
def test_rows_that_come_after_the_response_has_begun_are_inserted(
    shared: RunningServer, is_http2: bool
) -> None:
    name = f"late{int(is_http2)}"
    shared.ksql(f"CREATE STREAM {name} (k STRING KEY, v INT) WITH (KAFKA_TOPIC='{name}', PARTITIONS=1);")
    inserted = shared.world.rows.setdefault(name.upper(), [])

    def lines() -> Iterator[bytes]:
        yield b'{"target":"%s"}\n{"k": "a", "v": 0}\n' % name.encode()
        for number in (1, 2, 3):
            wait_until(lambda: len(inserted) == number, seconds=PATIENCE_S)  # noqa: B023 - called at once
            yield b'{"k": "a", "v": %d}\n' % number

    with httpx.Client(
        http1=not is_http2, http2=is_http2, base_url=shared.url, trust_env=False, timeout=PATIENCE_S
    ) as client:
        found = client.post("/inserts-stream", content=lines())
    assert found.text == "".join(f'{{"status":"ok","seq":{number}}}\n' for number in range(4))
    assert inserted == [["a", number] for number in range(4)]


def test_acks_of_many_rows_come_in_order_up_to_the_first_wrong_row(shared: RunningServer) -> None:
    shared.ksql("CREATE STREAM many (k STRING KEY, v INT) WITH (KAFKA_TOPIC='many', PARTITIONS=1);")
    rows = [json.dumps({"k": "a", "v": number}) for number in range(2500)]
    text = "\n".join(['{"target":"many"}', *rows, '{"nothing": 1}', '{"k": "b", "v": 1}'])
    found = shared.http.post("/inserts-stream", content=text, headers={"accept": "application/json"}).json()
    assert [each["seq"] for each in found] == list(range(2501))
    assert {each["status"] for each in found[:-1]} == {"ok"}
    assert (found[-1]["status"], found[-1]["error_code"]) == ("error", 40000)
    assert shared.world.rows["MANY"] == [["a", number] for number in range(2500)]


def test_rows_are_inserted_as_they_arrive(shared: RunningServer) -> None:
    def lines() -> Iterator[bytes]:
        yield b'{"target":"inserted"}\n{"k": "x", "V": 1}\n{"k":'
        yield b' "y", "v": 2}\n'

    shared.ksql("CREATE STREAM inserted (k STRING KEY, v INT) WITH (KAFKA_TOPIC='i', PARTITIONS=1);")
    with httpx.Client(
        http1=False, http2=True, base_url=shared.url, trust_env=False, timeout=PATIENCE_S
    ) as client:
        found = client.post("/inserts-stream", content=lines())
    assert [json.loads(line) for line in found.text.splitlines()] == [
        {"status": "ok", "seq": 0},
        {"status": "ok", "seq": 1},
    ]
    assert shared.world.rows["INSERTED"] == [["x", 1], ["y", 2]]
    wrong = shared.http.post("/inserts-stream", content=b'{"target":"inserted"}\n{"z": 1}\n{"v": 2}\n')
    [error] = [json.loads(line) for line in wrong.text.splitlines()]
    assert (error["status"], error["seq"], error["error_code"]) == ("error", 0, 40000)
    assert shared.http.post("/inserts-stream", content=b'{"target":"nobody"}\n').status_code == 400
