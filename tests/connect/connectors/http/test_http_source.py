"""The HTTP source against a server on loopback: five ways of paging, offsets, retries, bad responses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.connect.connectors.contexts import Offsets, started_source
from tests.stores.http_server import HttpServer, Reply, Seen

from barnabas.connect.connectors.http.http_source import HttpSourceConnector
from barnabas.connect.connectors.http.paging import Pointer, next_link
from barnabas.connect.plugins import ConnectError, ConnectorContext, RetriableError

ROWS = [{"id": n, "name": f"n{n}"} for n in range(1, 11)]


def polled(url: str, offsets: Offsets, polls: int = 8, **more: str) -> list[Any]:
    config = {"url": url, "topic": "t", "request.interval.ms": "0"}
    config |= {name.replace("_", "."): text for name, text in more.items()}
    assert HttpSourceConnector().check(config) == {}
    task = started_source(HttpSourceConnector, config, offsets)
    found: list[Any] = []
    try:
        for _ in range(polls):
            records = task.poll()
            if records is not None:
                found += [row.value["id"] for row in records.rows()]
                offsets.store(records)
    finally:
        task.stop()
    return found


def by_number(rows: list[Any]) -> Callable[[Seen], Reply]:
    def decide(seen: Seen) -> Reply:
        start = int(seen.query["start"])
        return Reply(200, {"data": rows[start : start + 3]})

    return decide


def test_numbers_grow_with_the_records_and_go_on_after_a_restart() -> None:
    rows = list(ROWS[:7])
    with HttpServer(by_number(rows)) as server:
        offsets = Offsets()
        more = {"http_request_parameters": "start=${offset}", "http_response_data_json_pointer": "/data"}
        assert polled(server.url, offsets, polls=2, **more) == [1, 2, 3, 4, 5, 6]
        assert polled(server.url, offsets, **more) == [7]
        rows += ROWS[7:]
        assert polled(server.url, offsets, **more) == [8, 9, 10]


@pytest.mark.parametrize("is_inclusive", [False, True])
def test_chains_of_offsets_in_records(is_inclusive: bool) -> None:
    def decide(seen: Seen) -> Reply:
        after = int(seen.query.get("after", 0))
        return Reply(200, [r for r in ROWS if r["id"] >= after + (0 if is_inclusive else 1)][:4])

    with HttpServer(decide) as server:
        offsets = Offsets()
        more = {
            "http_offset_mode": "CHAINING",
            "http_offset_json_pointer": "/id",
            "http_initial_offset": "0",
            "http_request_parameters": "after=${offset}",
        }
        assert polled(server.url, offsets, polls=1, **more) == ROWS_IDS[:4]
        assert polled(server.url, offsets, **more) == ROWS_IDS[4:]


ROWS_IDS = [row["id"] for row in ROWS]


def test_cursors_and_a_last_page_that_grows() -> None:
    pages: dict[str, Any] = {
        "": {"rows": ROWS[:4], "next": "c1"},
        "c1": {"rows": ROWS[4:6], "next": None},
    }
    with HttpServer(lambda seen: Reply(200, pages[seen.query.get("cursor", "")])) as server:
        offsets = Offsets()
        more = {
            "http_offset_mode": "CURSOR_PAGINATION",
            "http_next_page_json_pointer": "/next",
            "http_response_data_json_pointer": "/rows",
            "http_request_parameters": "cursor=${offset}",
        }
        assert polled(server.url, offsets, **more) == ROWS_IDS[:6]
        assert server.seen[0].query == {}
        pages["c1"] = {"rows": ROWS[4:8], "next": "c2"}
        pages["c2"] = {"rows": ROWS[8:], "next": None}
        assert polled(server.url, offsets, **more) == ROWS_IDS[6:]


def test_links_of_the_header_and_no_login_for_other_hosts() -> None:
    def decide(seen: Seen) -> Reply:
        page = int(seen.query.get("page", 1))
        link = f'</?page={page + 1}>; rel="next", </>; rel="first"' if page < 3 else ""
        return Reply(200, ROWS[(page - 1) * 3 : page * 3], {"link": link})

    with HttpServer(decide) as server:
        offsets = Offsets()
        assert polled(server.url, offsets, http_offset_mode="LINK_PAGINATION") == ROWS_IDS[:9]
        assert polled(server.url, offsets, http_offset_mode="LINK_PAGINATION") == []
        server.decide = lambda seen: Reply(200, ROWS, {"link": "<http://elsewhere/>; rel=next"})
        with pytest.raises(ConnectError, match="logins are not sent to other hosts"):
            polled(server.url, Offsets(), http_offset_mode="LINK_PAGINATION")


def test_a_snapshot_begins_again() -> None:
    def decide(seen: Seen) -> Reply:
        is_first = "p" not in seen.query
        return Reply(200, {"rows": ROWS[:2] if is_first else ROWS[2:4], "next": "2" if is_first else None})

    with HttpServer(decide) as server:
        found = polled(
            server.url,
            Offsets(),
            polls=4,
            http_offset_mode="SNAPSHOT_PAGINATION",
            http_next_page_json_pointer="/next",
            http_response_data_json_pointer="/rows",
            http_request_parameters="p=${offset}",
        )
        assert found == [1, 2, 3, 4, 1, 2, 3, 4]


def test_failures_are_retried_and_bad_responses_are_named() -> None:
    replies = iter([Reply(503), Reply(200, b"<html>"), Reply(404, b"gone")])
    with HttpServer(lambda seen: next(replies)) as server:
        config = {"url": server.url + "/?o=${offset}", "topic": "t", "retry.backoff.ms": "1"}
        task = started_source(HttpSourceConnector, config, Offsets())
        with pytest.raises(RetriableError, match="503"):
            task.poll()
        task._readers[0].not_before = 0.0  # type: ignore[attr-defined]
        with pytest.raises(RetriableError, match="is no JSON"):
            task.poll()
        task._readers[0].not_before = 0.0  # type: ignore[attr-defined]
        with pytest.raises(ConnectError, match="404: gone"):
            task.poll()
        task.stop()


def test_a_response_of_too_many_bytes_is_refused() -> None:
    with (
        HttpServer(lambda seen: Reply(200, b"[" + b"1," * 1000 + b"1]")) as server,
        pytest.raises(ConnectError, match="more than 100 bytes"),
    ):
        polled(server.url + "/?o=${offset}", Offsets(), http_response_max_bytes="100")


SEVERAL = {
    "apis.num": "3",
    "request.interval.ms": "0",
    "http.request.parameters": "start=${offset}",
    "api1.http.api.path": "/a",
    "api1.topics": "ta",
    "api2.http.api.path": "/b",
    "api2.topics": "tb",
    "api2.http.response.data.json.pointer": "/data",
    "api3.http.api.path": "/c?start=${offset}",
    "api3.topics": "tc",
    "api3.http.request.parameters": "",
}


def test_several_apis_are_shared_among_tasks() -> None:
    def decide(seen: Seen) -> Reply:
        start = int(seen.query["start"])
        rows = ROWS[start : start + 3]
        return Reply(200, {"data": rows} if seen.path == "/b" else rows)

    with HttpServer(decide) as server:
        config = {"http.api.base.url": server.url, **SEVERAL}
        connector = HttpSourceConnector()
        assert connector.check(config) == {}
        connector.start(HttpSourceConnector.CONFIG.parse(config), ConnectorContext("c", config))
        shares = connector.task_configs(2)
        assert [len(connector.task_configs(count)) for count in (1, 2, 9)] == [1, 2, 3]
        offsets, found = Offsets(), dict[str, list[Any]]()
        for _ in range(3):  # tasks come and go
            for number, share in enumerate(shares):
                task = started_source(HttpSourceConnector, share, offsets, number)
                for _ in range(3):
                    records = task.poll()
                    if records is not None:
                        offsets.store(records)
                        for row in records.rows():
                            found.setdefault(row.topic or "", []).append(row.value["id"])
                task.stop()
        assert found == {"ta": ROWS_IDS, "tb": ROWS_IDS, "tc": ROWS_IDS}


def test_settings_of_several_apis_are_checked() -> None:
    def errors(**more: str) -> dict[str, list[str]]:
        given = {name.replace("_", "."): text for name, text in more.items()}
        return HttpSourceConnector().check({"http.api.base.url": "http://x", **SEVERAL, **given})

    assert list(errors(url="http://y")) == ["url"]
    assert list(errors(http_api_base_url="")) == ["http.api.base.url"]
    assert list(errors(api2_topics="")) == ["api2.topics"]
    assert list(errors(api2_http_api_path="/a")) == ["api2.http.api.path"]
    assert list(errors(api1_http_offset_mode="BY_MOON")) == ["api1.http.offset.mode"]
    assert list(errors(api1_http_offset_mode="CURSOR_PAGINATION")) == ["http.next.page.json.pointer"]
    assert "url" in HttpSourceConnector().check({"topic": "t"})


def test_pointers_and_links() -> None:
    document = {"a": [{"b/c": 5}], "": 1}
    assert Pointer("/a/0/b~1c").of(document) == 5
    assert Pointer("/a/-1/b~1c").of(document) == 5
    assert Pointer("/a/7").of(document) is None and Pointer("/a/x/y").of(document) is None
    assert next_link('<http://x/2>; title="a, b"; rel="prev next"') == "http://x/2"
    assert next_link("<http://x/2>; rel=nextish") is None


def test_settings_that_cannot_page_are_refused() -> None:
    check = HttpSourceConnector().check
    assert check({"url": "http://x", "topic": "t"}) == {}
    chained = {"http.offset.mode": "CHAINING", "http.offset.json.pointer": "/id"}
    assert "url" in check({"url": "http://x", "topic": "t", **chained})
    assert "http.offset.json.pointer" in check(
        {"url": "http://x", "topic": "t", "http.offset.mode": "chaining"}
    )
    with pytest.raises(ConnectError, match="looks like"):
        HttpSourceConnector().alter_offsets({}, [({"url": "http://x"}, {"offset": 5})])


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'\xef\xbb\xbf[{"id": "\xc3\xa9"}]', "application/json"),
        (b'[{"id": "\xe9"}]', "application/json; charset=iso-8859-1"),
        (b'[{"id": "\xc3\xa9"}]', "application/json; charset=nonsense"),
    ],
)
def test_a_response_may_have_a_mark_of_byte_order_and_another_charset(body: bytes, kind: str) -> None:
    with HttpServer(lambda seen: Reply(200, body, {"content-type": kind})) as server:
        assert polled(server.url + "/?o=${offset}", Offsets(), polls=1) == ["\u00e9"]


def test_the_record_at_the_initial_offset_is_read() -> None:
    def decide(seen: Seen) -> Reply:
        return Reply(200, [row for row in ROWS if row["id"] >= int(seen.query["from"])][:3])

    with HttpServer(decide) as server:
        offsets = Offsets()
        more = {
            "http_offset_mode": "CHAINING",
            "http_offset_json_pointer": "/id",
            "http_initial_offset": "1",
            "http_request_parameters": "from=${offset}",
        }
        assert polled(server.url, offsets, polls=1, **more) == [1, 2, 3]
        assert polled(server.url, offsets, **more) == ROWS_IDS[3:]


@pytest.mark.parametrize("place", ["url", "parameters"])
def test_each_entity_is_read_by_itself(place: str) -> None:
    def decide(seen: Seen) -> Reply:
        start = int(seen.query["start"])
        rows = ROWS if "messages" in (seen.path, seen.query.get("of", ""), seen.path.strip("/")) else ROWS[:4]
        return Reply(200, rows[start : start + 3])

    with HttpServer(decide) as server:
        config = {
            "url": server.url + ("/${entityName}" if place == "url" else ""),
            "http.request.parameters": "start=${offset}" + ("&of=${entityName}" if place != "url" else ""),
            "topic.name.pattern": "http-${entityName}",
            "entity.names": "messages, users",
            "request.interval.ms": "0",
        }
        connector = HttpSourceConnector()
        assert connector.check(config) == {} and connector.exactly_once_support(config)
        connector.start(HttpSourceConnector.CONFIG.parse(config), ConnectorContext("c", config))
        shares = connector.task_configs(3)
        assert len(shares) == 2 and len(connector.task_configs(1)) == 1
        offsets, found = Offsets(), dict[str, list[Any]]()
        for _ in range(2):  # tasks come and go
            for number, share in enumerate(shares):
                task = started_source(HttpSourceConnector, share, offsets, number)
                for _ in range(3):
                    records = task.poll()
                    if records is not None:
                        offsets.store(records)
                        found.setdefault(records.topics[0].as_py(), []).extend(
                            row.value["id"] for row in records.rows()
                        )
                task.stop()
        assert found == {"http-messages": ROWS_IDS, "http-users": ROWS_IDS[:4]}
    del config["entity.names"]
    assert "entity.names" in HttpSourceConnector().check(config)


def test_an_api_without_offsets_is_read_whole_in_each_interval(caplog: pytest.LogCaptureFixture) -> None:
    with HttpServer(lambda seen: Reply(200, ROWS[:2])) as server:
        config = {"url": server.url, "topic": "t", "request.interval.ms": "60000"}
        assert not HttpSourceConnector().exactly_once_support(config)
        task = started_source(HttpSourceConnector, config, Offsets())
        first, second = task.poll(), task.poll()
        task.stop()
        assert first is not None and len(first) == 2 and second is None and len(server.seen) == 1
    assert "no request holds ${offset}" in caplog.text
