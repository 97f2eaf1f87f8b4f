"""The serving process over HTTP: questions, bad ones, parts with the token, SQL that cannot reach outside."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.ipc
import pytest

from barnabas.pipeline.demo import postgres
from barnabas.pipeline.serving.http.client import ServingClient, ServingError
from barnabas.pipeline.views.layout import Column, Layout, Merge, Role
from barnabas.pipeline.views.parts import BatchPart, Conflict, TableVersion
from barnabas.testing.waiting import wait_until
from pipeline.views_model import BEGINNING, LAYOUT, Order, batch_part, speed_part

TOKEN = "let me in"
ORDERS = [
    Order(str(number), shop, number, "ann", "new", number)
    for number, shop in enumerate(["berlin", "rome", None])
]
ODD = Layout(
    "odd",
    (
        Column("day", "date", Role.KEY),
        Column("price", "decimal(10,2)", Role.MEASURE, Merge.SUM),
        Column("seen", "timestamp", Role.MEASURE, Merge.MAX),
        Column("ratio", "double", Role.MEASURE, Merge.SUM),
        Column("code", "binary", Role.MEASURE, Merge.MAX),
    ),
    "odd",
)


class Process:
    """`python -m barnabas.pipeline.serving`, started and waited for."""

    def __init__(self, folder: Path, store: str = "duckdb", *more: str, guests: str = "") -> None:
        self._ready = folder / "ready.json"
        arguments = [
            "--name",
            "shop",
            "--folder",
            str(folder),
            "--port",
            "0",
            "--ready",
            str(self._ready),
            *more,
        ]
        environment = {**os.environ, "BARNABAS_SERVING_TOKEN": TOKEN, "BARNABAS_SERVING_STORE": store}
        environment["BARNABAS_SERVING_GUESTS"] = guests
        self.running = subprocess.Popen(
            [sys.executable, "-m", "barnabas.pipeline.serving", *arguments],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        wait_until(self._is_ready, 60, "the serving process")
        self.url = json.loads(self._ready.read_text())["url"]

    def _is_ready(self) -> bool:
        assert self.running.poll() is None, self.running.communicate()[1]
        return self._ready.exists()

    def limit_files(self, bytes_max: int) -> None:
        """Files cannot grow beyond this: to the process the disk is full."""
        _, hard = resource.prlimit(self.running.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(self.running.pid, resource.RLIMIT_FSIZE, (bytes_max, hard))

    def end(self, number: int = signal.SIGTERM) -> int:
        self.running.send_signal(number)
        code = self.running.wait(30)
        assert self.running.stderr is not None
        self.running.stderr.close()
        return code


@pytest.fixture(scope="module", params=["duckdb", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Two views: one at version 3 with horizon 1, one with values that JSON has no word for."""
    if request.param == "postgresql":
        if reason := postgres.available():
            pytest.skip(reason)
        with postgres.Postgres(password="a secret") as server:
            yield from serving(tmp_path_factory.mktemp("serving"), server.dsn)
    else:
        yield from serving(tmp_path_factory.mktemp("serving"), "duckdb")


def serving(folder: Path, store: str) -> Iterator[str]:
    process = Process(folder, store, "--statement-ms-max", "2000", "--rows-max", "500")
    try:
        with ServingClient(process.url, TOKEN) as client:
            client.put_batch(batch_part(1, ORDERS[:1]))
            client.put_speed(speed_part(1, 3, ORDERS[1:]))
            values = {
                "day": [datetime(2026, 3, 1).date()],
                "price": [None],
                "seen": [datetime(2026, 3, 1, 12, tzinfo=UTC)],
                "ratio": [float("nan")],
                "code": [b"\x00\x01"],
            }
            rows = pa.table(values, schema=ODD.schema)
            client.put_batch(BatchPart(ODD, TableVersion(9, BEGINNING), rows))
        yield process.url
    finally:
        assert process.end() == 0


@pytest.fixture(scope="module")
def http(url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=url, trust_env=False) as client:
        yield client


def test_a_view_is_answered_with_rows_and_freshness(http: httpx.Client) -> None:
    response = http.get("/views/revenue?shop=rome")
    body = response.json()
    assert body["rows"] == [
        {
            "shop": "rome",
            "orders": 1,
            "revenue": 1,
            "cheapest": 1,
            "dearest": 1,
            "customers": 1,
            "status": "new",
            "average": 1.0,
            "spread": 0.0,
            "place": 2,
            "mean": 1.0,
        }
    ]
    assert (body["row_count"], body["more"]) == (1, False)
    assert body["columns"][0] == {"name": "shop", "type": "string"}
    fresh = body["freshness"]
    assert fresh["horizon"] == {"version": 1, "time": "2026-01-01T00:00:01Z"}
    assert fresh["speed"] == {"version": 3, "time": "2026-01-01T00:00:03Z"}
    assert fresh["complete_at"] == "2026-01-01T00:00:03Z"
    age = datetime.now(UTC) - BEGINNING - timedelta(seconds=3)
    assert abs(fresh["age_seconds"] - age.total_seconds()) < 60
    assert json.loads(response.headers["barnabas-freshness"])["speed"] == fresh["speed"]


def test_filters_can_be_written_in_the_url_with_operators(http: httpx.Client) -> None:
    def shops(query: str) -> list[str | None]:
        return [row["shop"] for row in http.get(f"/views/revenue?{query}").json()["rows"]]

    assert shops("revenue>=1") == ["rome", None]
    assert shops("revenue>1") == [None]
    assert shops("revenue<1") == ["berlin"]
    assert shops("revenue<=1&order=-revenue") == ["rome", "berlin"]
    assert shops("shop!=rome") == ["berlin"]
    assert shops("filter=shop%20in%20rome,berlin&limit=1") == ["berlin"]
    assert shops("filter=shop+like+%25e%25&columns=shop") == ["berlin", "rome"]
    assert shops("as_of=1") == ["berlin"]
    assert shops("as_of=2026-01-01T00:00:02Z") == ["berlin"]
    assert shops("as_of=2026-01-01T02:00:02%2B02:00") == ["berlin"]


def test_arrow_comes_by_accept_or_format_with_freshness_in_its_schema(http: httpx.Client) -> None:
    media = "application/vnd.apache.arrow.stream"
    for response in (
        http.get("/views/revenue", headers={"accept": media}),
        http.get("/views/revenue?format=arrow"),
        http.post("/sql", json={"sql": "SELECT * FROM revenue ORDER BY shop", "format": "arrow"}),
    ):
        assert response.headers["content-type"] == media
        with pyarrow.ipc.open_stream(response.content) as reader:
            table = reader.read_all()
        assert table["orders"].to_pylist() == [1, 1, 1]
        assert json.loads(table.schema.metadata[b"freshness"])["speed"]["version"] == 3


def test_values_without_a_json_type_are_texts(http: httpx.Client) -> None:
    (row,) = http.get("/views/odd").json()["rows"]
    assert row == {
        "day": "2026-03-01",
        "price": None,
        "seen": "2026-03-01T12:00:00Z",
        "ratio": "NaN",
        "code": "AAE=",
    }


def test_views_are_listed_and_described(http: httpx.Client) -> None:
    odd, revenue = http.get("/views").json()["views"]
    assert (odd["name"], revenue["name"], revenue["rows"], revenue["oldest_version"]) == (
        "odd",
        "revenue",
        3,
        1,
    )
    assert revenue["columns"][-1]["expression"] == "revenue / orders"
    assert not [column for column in revenue["columns"] if column["name"].startswith("_")]
    document = http.get("/openapi.json").json()
    assert {"/views", "/sql", "/views/revenue", "/views/odd"} <= set(document["paths"])
    assert "/views/revenue" in http.get("/").text
    assert http.get("/health").json() == {"status": "up", "views": 2}


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("/views/revenue?shops=x", "has no column 'shops': did you mean shop?"),
        ("/views/revenue?filter=shop", "is not a filter"),
        ("/views/revenue?filter=", "is not a filter"),
        ("/views/revenue?revenue=much", "revenue is bigint, and 'much' is none"),
        ("/views/revenue?revenue>", "revenue is bigint, and '' is none"),
        ("/views/odd?day=tomorrow", "day is date"),
        ("/views/odd?seen=noon", "seen is timestamp"),
        ("/views/odd?price=1e", "price is decimal(10,2)"),
        ("/views/odd?code=*", "code is binary"),
        ("/views/revenue?filter=revenue+like+1%25", "like is for text"),
        ("/views/revenue?filter=shop+in+()", "in takes 1 to 1000 values"),
        ('/views/revenue?filter=shop+in+"a', "is not a list of values"),
        ("/views/revenue?order=nothing", "has no column 'nothing'"),
        ("/views/revenue?order=shop+upwards", "is not an order"),
        ("/views/revenue?columns=shop,what", "has no column 'what'"),
        ("/views/revenue?limit=-1", "limit is a whole number from 0 to 100000"),
        ("/views/revenue?limit=1&limit=2", "limit is given twice"),
        ("/views/revenue?offset=x", "offset is a whole number"),
        ("/views/revenue?as_of=4", "is at version 3, and not at 4 yet"),
        ("/views/revenue?as_of=0", "not kept any more: the oldest is 1"),
        ("/views/revenue?as_of=yesterday", "as_of is a version such as 12"),
        ("/views/revenue?as_of=1999-01-01", "before what is kept"),
        ("/views/revenue?format=xml", "format is json or arrow"),
        ("/views/revenue?shop=%ff", "the parameters cannot be read"),
        ("/views/revenue?" + "&".join(["filter=shop=a"] * 60), "60 filters are too many"),
    ],
)
def test_a_bad_query_gets_one_sentence(http: httpx.Client, path: str, sentence: str) -> None:
    response = http.get(path)
    assert response.status_code == 400, response.text
    assert sentence in response.json()["error"]


def test_an_unknown_view_gets_404_with_the_known_ones(http: httpx.Client) -> None:
    assert http.get("/views/revenues").status_code == 404
    assert "there are odd, revenue" in http.get("/views/revenues").json()["error"]
    assert http.get("/nothing").status_code == 404
    assert http.delete("/views/revenue").status_code == 405


def ask(http: httpx.Client, statement: str, **more: Any) -> httpx.Response:
    return http.post("/sql", json={"sql": statement, **more})


def test_sql_is_answered_over_the_merged_views_now_and_as_of(http: httpx.Client) -> None:
    statement = """WITH big AS (SELECT shop, orders FROM revenue WHERE revenue > 0)
        SELECT count(*) AS n, (SELECT sum(r.orders) FROM revenue AS r) AS orders FROM big"""
    body = ask(http, statement).json()
    assert [int(body["rows"][0][name]) for name in ("n", "orders")] == [2, 3]
    assert body["freshness"]["speed"]["version"] == 3
    assert ask(http, "SELECT count(*) AS n FROM revenue", as_of=1).json()["rows"] == [{"n": 1}]
    joined = ask(http, "SELECT r.shop, mean FROM Revenue r JOIN odd ON true WHERE r.shop = 'rome'").json()
    assert joined["rows"] == [{"shop": "rome", "mean": 1.0}]
    assert {fresh["view"] for fresh in joined["freshness"]} == {"revenue", "odd"}
    plain = http.post("/sql", content="SELECT max(dearest) AS d FROM revenue")
    assert plain.json()["rows"] == [{"d": 2}]


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE revenue",
        "DELETE FROM revenue",
        "INSERT INTO revenue VALUES (1)",
        "UPDATE revenue SET orders = 0",
        "CREATE TABLE x AS SELECT * FROM revenue",
        "COPY revenue TO '/tmp/x'",
        "ATTACH '/tmp/x'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET threads = 1",
        "PRAGMA database_list",
        "CALL pragma_version()",
        "VACUUM",
        "EXPLAIN SELECT 1",
        "SELECT 1; SELECT 2",
        "",
        "SELECT",
        "SELECT * FROM",
        "no sql at all",
        "SELECT * FROM _views",
        "SELECT * FROM revenue__1_now",
        "SELECT * FROM main.revenue",
        "SELECT * FROM information_schema.tables",
        "SELECT * FROM pg_catalog.pg_class",
        "SELECT * FROM duckdb_settings()",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM read_parquet('https://example.org/x')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM glob('/*')",
        "SELECT * FROM query('SELECT 1')",
        "SELECT * FROM arrow_scan(1, 2, 3)",
        "SELECT * FROM generate_series(1, 1000000000)",
        "SELECT getenv('HOME')",
        "SELECT current_setting('data_directory')",
        "SELECT pg_read_file('/etc/passwd')",
        "SELECT lo_import('/etc/passwd')",
        "SELECT pg_sleep(100)",
        "SELECT query_to_xml('SELECT 1', true, true, '')",
        "SELECT set_config('a.b', 'c', false)",
        "SELECT nextval('x')",
        "SELECT pg_catalog.pg_read_file('/etc/passwd')",
        "SELECT '_views'::regclass",
        "SELECT * FROM revenue WHERE shop IN (SELECT view FROM _views)",
        "WITH x AS (SELECT * FROM _views) SELECT * FROM x",
        "WITH x AS (DELETE FROM revenue RETURNING *) SELECT * FROM x",
        "SELECT * INTO y FROM revenue",
        "SELECT * FROM revenue FOR UPDATE",
        "SELECT nothing FROM revenue",
        "SELECT * FROM revenue TABLESAMPLE 10 PERCENT",
        "SELECT * FROM revenue, revenue",
        "WITH pg_class AS (SELECT 1) SELECT * FROM pg_class",
        "PIVOT revenue ON shop USING sum(orders)",
        "SHOW TABLES",
        "DESCRIBE revenue",
        "SELECT $1 FROM revenue",
        "SELECT " + "(" * 5000 + "1" + ")" * 5000,
        "SELECT '" + "x" * 30_000 + "'",
    ],
)
def test_sql_that_is_not_a_select_over_views_is_refused(http: httpx.Client, statement: str) -> None:
    response = ask(http, statement)
    assert response.status_code == 400, response.text
    assert response.json()["error"]
    assert http.get("/views/revenue").json()["row_count"] == 3


def test_sql_has_a_time_limit_and_a_row_limit(http: httpx.Client) -> None:
    views = ", ".join(f"revenue r{number}" for number in range(25))
    total = " + ".join(f"r{number}.orders" for number in range(25))
    slow = ask(http, f"SELECT count(*) FROM {views} WHERE {total} = 7")
    assert slow.status_code == 400 and "took more than 2000 ms" in slow.json()["error"]
    views = ", ".join(f"revenue r{number}" for number in range(7))
    many = ask(http, f"SELECT r0.shop FROM {views}").json()
    assert (many["row_count"], many["more"]) == (500, True)


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"{", "JSON such as"),
        (b"[]", "has no text `sql`"),
        (b'{"sql": 1}', "has no text `sql`"),
        (b'{"sql": "SELECT 1", "limit": 5}', "'limit'"),
        (b'{"sql": "SELECT 1", "as_of": true}', "as_of is a version or a time"),
        (b"\xff", "UTF-8"),
        (b"[" * 50_000, "JSON such as"),
    ],
)
def test_a_body_that_is_not_a_statement_gets_one_sentence(
    http: httpx.Client, body: bytes, sentence: str
) -> None:
    response = http.post("/sql", content=body, headers={"content-type": "application/json"})
    assert response.status_code == 400
    assert sentence in response.json()["error"]


def test_parts_need_the_token(url: str, http: httpx.Client) -> None:
    for headers in (
        {},
        {"authorization": "Bearer wrong"},
        {"authorization": "Bearer \xff".encode("latin-1")},
    ):
        assert http.get("/inner/views/revenue", headers=headers).status_code == 401
        assert http.put("/inner/views/revenue/batch", content=b"", headers=headers).status_code == 401
    with (
        ServingClient(url, "wrong") as stranger,
        pytest.raises(ServingError, match="token is missing or wrong"),
    ):
        stranger.drop("revenue")
    allowed = {"authorization": f"Bearer {TOKEN}"}
    for name in ("batch", "speed", "checked", "announced"):
        response = http.put(f"/inner/views/revenue/{name}", content=b"{}", headers=allowed)
        assert response.status_code == 400, name
    assert http.post("/sql", content=b"x" * 200_000).status_code == 413


def test_parts_sent_over_http_change_the_state_of_the_view(url: str) -> None:
    layout = Layout("wired", LAYOUT.columns, "wired")
    with ServingClient(url, TOKEN) as client:
        assert client.state("wired") is None
        state = client.put_batch(batch_part(4, ORDERS, layout))
        assert state.layout == layout and state.position.version == 4 and state.rows == 3
        client.announce("wired", layout.fingerprint, 6)
        client.checked("wired", 4, BEGINNING + timedelta(days=1))
        found = client.state("wired")
        assert found is not None and (found.fence, found.checked_at) == (6, BEGINNING + timedelta(days=1))
        with pytest.raises(Conflict, match="beyond 3"):
            client.put_batch(batch_part(3, [], layout))
        assert client.query("wired", {"shop": "rome"})["rows"][0]["orders"] == 1
        assert client.sql("SELECT count(*) AS n FROM wired")["rows"] == [{"n": 3}]
        client.drop("wired")
        assert client.state("wired") is None


def test_views_are_served_again_after_a_kill(tmp_path: Path) -> None:
    process = Process(tmp_path)
    with ServingClient(process.url, TOKEN) as client:
        client.put_batch(batch_part(1, ORDERS[:2]))
        client.put_speed(speed_part(1, 2, ORDERS[2:]))
    process.end(signal.SIGKILL)
    (tmp_path / "ready.json").unlink()
    process = Process(tmp_path)
    with ServingClient(process.url, TOKEN) as client:
        body = client.query("revenue")
    assert body["row_count"] == 3 and body["freshness"]["speed"]["version"] == 2
    assert process.end() == 0


def test_a_serving_process_that_cannot_start_prints_the_reason(tmp_path: Path) -> None:
    def start(*more: str) -> subprocess.CompletedProcess[str]:
        arguments = ["--name", "shop", "--folder", str(tmp_path), *more]
        return subprocess.run(
            [sys.executable, "-m", "barnabas.pipeline.serving", *arguments],
            capture_output=True,
            text=True,
            env={**os.environ, "BARNABAS_SERVING_STORE": "duckdb"},
            timeout=60,
        )

    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        taken = start("--port", str(port))
    assert taken.returncode == 2 and taken.stderr.startswith(f"cannot listen on 127.0.0.1:{port}: ")
    assert taken.stderr.count("\n") == 1
    process = Process(tmp_path)
    second = start("--port", "0")
    assert second.returncode == 2 and "serving.duckdb cannot be opened" in second.stderr
    assert process.end() == 0


def test_an_unreachable_serving_process_is_named() -> None:
    with (
        ServingClient("http://127.0.0.1:1", TOKEN, patience_s=0.2) as client,
        pytest.raises(ServingError, match=r"127\.0\.0\.1:1.* is not reachable"),
    ):
        client.state("revenue")


def test_a_full_disk_is_reported_and_views_stay(tmp_path: Path) -> None:
    process = Process(tmp_path)
    with ServingClient(process.url, TOKEN, patience_s=0.2) as client:
        client.put_batch(batch_part(1, ORDERS))
        process.limit_files(1 << 20)
        many = [Order(str(number), f"shop {number}", 1, None, "new", 0) for number in range(1_000)]
        wide = [replace(order, status="x" * 3000) for order in many]
        with pytest.raises(ServingError, match=r"serving\.duckdb failed"):
            client.put_speed(speed_part(1, 2, wide))
        body = client.query("revenue")
        assert body["row_count"] == 3 and body["freshness"]["speed"]["version"] == 1
        process.limit_files(resource.RLIM_INFINITY)
        assert client.put_speed(speed_part(1, 2, wide)).rows == 1_003
    assert process.end() == 0


def test_a_supervisor_that_died_before_the_process_was_up_is_noticed(tmp_path: Path) -> None:
    process = Process(tmp_path, "duckdb", "--ends-with", "1")  # not the parent of this process
    assert process.running.wait(30) == 0
    assert process.running.stderr is not None
    process.running.stderr.close()
