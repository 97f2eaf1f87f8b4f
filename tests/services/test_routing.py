"""Paths find their routes: words, parameters, encoded slashes, and clear errors for all others."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.services.errors import ApiError
from barnabas.services.routes import Need, ServiceRoute, ServiceWebSocketRoute
from barnabas.services.routing import RouteTable


async def endpoint(request: Any) -> Any: ...


def table(*paths: str, methods: tuple[str, ...] = ("GET",)) -> RouteTable:
    return RouteTable(ServiceRoute(path, endpoint, needs=Need.READ, methods=methods) for path in paths)


def found(routes: RouteTable, path: str, method: str = "GET") -> tuple[str, dict[str, Any]]:
    route, parameters = routes.find(method, path.encode("latin-1"))
    return route.path, parameters


def status(routes: RouteTable, path: str, method: str = "GET") -> int:
    with pytest.raises(ApiError) as caught:
        routes.find(method, path.encode("latin-1"))
    return caught.value.status


def test_a_parameter_is_one_segment_even_with_an_encoded_slash() -> None:
    routes = table("/subjects/{subject}/versions/{version}")
    assert found(routes, "/subjects/a%2Fb%20%C3%A9/versions/latest") == (
        "/subjects/{subject}/versions/{version}",
        {"subject": "a/b é", "version": "latest"},
    )
    assert status(routes, "/subjects/a/b/versions/1") == 404


def test_a_slash_at_the_end_does_not_matter() -> None:
    routes = table("/", "/subjects", "/subjects/{subject}")
    assert found(routes, "/subjects/") == ("/subjects", {})
    assert found(routes, "/subjects/a/")[0] == "/subjects/{subject}"
    assert found(routes, "/") == ("/", {})


def test_words_win_over_parameters_in_any_order() -> None:
    routes = table("/a/{x}/c", "/a/b/{y}", "/a/{rest:path}")
    assert found(routes, "/a/b/c") == ("/a/b/{y}", {"y": "c"})
    assert found(routes, "/a/z/c") == ("/a/{x}/c", {"x": "z"})
    assert found(routes, "/a/z/d") == ("/a/{rest:path}", {"rest": "z/d"})


def test_a_parameter_finds_the_method_that_the_word_lacks() -> None:
    routes = RouteTable(
        [
            ServiceRoute("/topics/all", endpoint, needs=Need.READ),
            ServiceRoute("/topics/{topic}", endpoint, needs=Need.WRITE, methods=["POST"]),
        ]
    )
    assert found(routes, "/topics/all", "POST") == ("/topics/{topic}", {"topic": "all"})


def test_a_whole_number_is_one_or_there_is_no_such_path() -> None:
    routes = table("/schemas/ids/{id:int}")
    assert found(routes, "/schemas/ids/42") == ("/schemas/ids/{id:int}", {"id": 42})
    assert [status(routes, f"/schemas/ids/{each}") for each in ("x", "-1", "1" * 30, "²")] == [404] * 4


def test_another_method_is_405_with_the_methods_that_are_taken() -> None:
    routes = table("/subjects", methods=("GET", "POST"))
    with pytest.raises(ApiError) as caught:
        routes.find("DELETE", b"/subjects")
    assert (caught.value.status, caught.value.headers) == (405, {"allow": "GET, HEAD, POST"})


def test_bytes_that_are_no_text_and_endless_paths_are_refused() -> None:
    routes = table("/subjects/{subject}")
    assert status(routes, "/subjects/%ff") == 400
    assert status(routes, "/" + "a/" * 100) == 414
    assert status(routes, "/subjects/" + "a" * 20_000) == 414
    assert status(routes, "/subjects//versions") == 404


def test_a_web_socket_and_a_request_share_a_path() -> None:
    routes = RouteTable(
        [
            ServiceRoute("/tail", endpoint, needs=Need.READ),
            ServiceWebSocketRoute("/tail", endpoint, needs=Need.READ),
        ]
    )
    assert isinstance(routes.find("WEBSOCKET", b"/tail")[0], ServiceWebSocketRoute)
    assert isinstance(routes.find("GET", b"/tail")[0], ServiceRoute)


def test_two_routes_for_the_same_path_are_a_mistake() -> None:
    with pytest.raises(ValueError, match="are the same"):
        table("/a/{x}", "/a/{y}")
    with pytest.raises(ValueError, match="neither a word nor"):
        table("/a/x{y}")


@given(st.binary(max_size=60))
def test_any_path_is_found_or_refused(path: bytes) -> None:
    routes = table("/", "/a", "/a/{x}", "/{x}/b", "/a/{x:int}/c", "/z/{rest:path}")
    try:
        routes.find("GET", b"/" + path)
    except ApiError as error:
        assert error.status in (400, 404)
