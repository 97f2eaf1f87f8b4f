"""The frame around routes: errors, limits, health, metrics, the access log, start and stop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from barnabas.security.principal import Principal
from barnabas.services.app import Service, ServiceApp
from barnabas.services.caller import Caller, caller_of
from barnabas.services.errors import ApiError
from barnabas.services.limits import Limits
from barnabas.services.routes import Need
from services.asgi import app_of, client_of, echo, exchanged, route

SMALL = Limits(body_bytes_max=1000, request_s_max=0.2, requests_max=2, drain_bytes_max=5000, drain_s_max=0.05)


def test_errors_have_the_form_of_the_api(caplog: pytest.LogCaptureFixture) -> None:
    async def refused(request: Request) -> Response:
        raise ApiError(404, 40401, "Subject 'x' not found.")

    async def broken(request: Request) -> Response:
        raise RuntimeError("a secret detail")

    async def starlettes(request: Request) -> Response:
        raise HTTPException(418, "a teapot")

    async def own(request: Request) -> Response:
        raise LookupError("no such thing")

    def converted(error: Exception) -> ApiError | None:
        return ApiError(404, 1, str(error)) if isinstance(error, LookupError) else None

    async def run() -> None:
        routes = [
            route("/refused", refused),
            route("/broken", broken),
            route("/teapot", starlettes),
            route("/own", own),
        ]
        app = app_of(routes, converted=converted, media_types=("application/vnd.v1+json", "application/json"))
        async with client_of(app) as client:
            response = await client.get("/refused")
            assert response.status_code == 404
            assert response.json() == {"error_code": 40401, "message": "Subject 'x' not found."}
            assert response.headers["content-type"] == "application/vnd.v1+json"
            plain = await client.get("/refused", headers={"accept": "application/json"})
            assert plain.headers["content-type"] == "application/json"
            response = await client.get("/broken")
            assert (response.status_code, response.json()["error_code"]) == (500, 500)
            assert "secret" not in response.text
            assert (await client.get("/teapot")).json() == {"error_code": 418, "message": "a teapot"}
            assert (await client.get("/own")).json() == {"error_code": 1, "message": "no such thing"}
            response = await client.get("/nowhere")
            assert (response.status_code, response.json()["error_code"]) == (404, 404)
            response = await client.delete("/refused")
            assert (response.status_code, response.headers["allow"]) == (405, "GET, HEAD")

    asyncio.run(run())
    assert [each.getMessage() for each in caplog.records if each.exc_info] == ["GET /broken failed"]


def test_an_error_form_of_its_own() -> None:
    async def run() -> None:
        async with client_of(app_of(error_form=lambda error: {"error": error.message})) as client:
            assert "nothing is served" in (await client.get("/x")).json()["error"]

    asyncio.run(run())


def test_a_body_beyond_the_limit_is_413_with_or_without_its_length() -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 100

    async def run() -> None:
        app = app_of([route("/echo", methods=["POST"])], limits=SMALL)
        async with client_of(app) as client:
            assert (await client.post("/echo", content=b"x" * 1000)).json()["size"] == 1000
            response = await client.post("/echo", content=b"x" * 1001)
            assert (response.status_code, response.json()["error_code"]) == (413, 413)
        response = await exchanged(app, endless)
        assert (response.status, response.headers["connection"]) == (413, "close")
        assert "at most 1000 bytes" in response.json()["message"]

    asyncio.run(run())


def test_a_route_may_take_larger_bodies() -> None:
    async def run() -> None:
        app = app_of([route("/echo", methods=["POST"], body_bytes_max=5000)], limits=SMALL)
        async with client_of(app) as client:
            assert (await client.post("/echo", content=b"x" * 5000)).status_code == 200
            assert (await client.post("/echo", content=b"x" * 5001)).status_code == 413

    asyncio.run(run())


def test_a_slow_upload_is_408_and_a_slow_endpoint_503() -> None:
    async def slow_body() -> AsyncIterator[bytes]:
        yield b"x"
        await asyncio.sleep(60)

    async def no_body() -> AsyncIterator[bytes]:
        return
        yield b""

    async def slow(request: Request) -> Response:
        await asyncio.sleep(60)
        return Response()

    async def run() -> None:
        app = app_of([route("/echo", methods=["POST"]), route("/slow", slow)], limits=SMALL)
        response = await exchanged(app, slow_body)
        assert (response.status, response.headers["connection"]) == (408, "close")
        response = await exchanged(app, no_body, method="GET", path="/slow", headers=())
        assert (response.status, response.json()["error_code"]) == (503, 503)
        assert "longer than 0.2 s" in response.json()["message"]

    asyncio.run(run())


def test_slow_uploads_keep_nobody_out_and_their_bytes_are_bounded() -> None:
    async def run() -> None:
        go = asyncio.Event()

        async def slow_body() -> AsyncIterator[bytes]:
            yield b"x" * 400
            await go.wait()

        async def no_body() -> AsyncIterator[bytes]:
            return
            yield b""

        limits = Limits(requests_max=1, bodies_bytes_max=1000)
        app = app_of([route("/echo", methods=["GET", "POST"])], limits=limits)
        slow = [asyncio.create_task(exchanged(app, slow_body)) for _ in range(2)]
        while app.admission.bytes_held != 800:
            await asyncio.sleep(0)
        assert (await exchanged(app, no_body, method="GET", headers=())).status == 200
        refused = await exchanged(app, slow_body)
        assert refused.status == 503 and "bodies of 1200 bytes" in refused.json()["message"]
        go.set()
        assert sorted([(await each).status for each in slow]) == [200, 200]
        assert (app.admission.bytes_held, app.admission.requests) == (0, 0)

    asyncio.run(run())


def test_a_timeout_of_the_endpoint_itself_is_not_the_limit(caplog: pytest.LogCaptureFixture) -> None:
    async def own(request: Request) -> Response:
        async with asyncio.timeout(0.001):
            await asyncio.sleep(60)
        return Response()

    async def run() -> None:
        async with client_of(app_of([route("/own", own)])) as client:
            assert (await client.get("/own")).status_code == 500

    asyncio.run(run())
    assert "GET /own failed" in caplog.text


def test_too_many_requests_at_once_are_refused_and_streams_count_apart() -> None:
    async def run() -> None:
        go = asyncio.Event()

        async def wait(request: Request) -> Response:
            await go.wait()
            return Response()

        limits = Limits(requests_max=2, streams_max=1)
        app = app_of([route("/wait", wait), route("/stream", wait, is_stream=True)], limits=limits)
        async with client_of(app) as client:
            first = [asyncio.create_task(client.get("/wait")) for _ in range(2)]
            first.append(asyncio.create_task(client.get("/stream")))
            while (app.admission.requests, app.admission.streams) != (2, 1):
                await asyncio.sleep(0)
            for path in ("/wait", "/stream"):
                refused = await client.get(path)
                assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
            go.set()
            assert [(await each).status_code for each in first] == [200] * 3
            assert (await client.get("/wait")).status_code == 200
        assert (app.admission.requests, app.admission.streams) == (0, 0)

    asyncio.run(run())


def test_a_stream_may_last_but_not_its_reader_stall(caplog: pytest.LogCaptureFixture) -> None:
    async def lines() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b"line\n"
            await asyncio.sleep(0.1)

    async def stream(request: Request) -> Response:
        return StreamingResponse(lines())

    async def run() -> None:
        limits = Limits(request_s_max=0.05, stall_s_max=0.2)
        app = app_of([route("/stream", stream, is_stream=True)], limits=limits)
        async with client_of(app) as client:
            assert (await client.get("/stream")).text == "line\n" * 3

        async def receive() -> dict[str, Any]:
            await asyncio.sleep(60)
            raise AssertionError

        async def stalled(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.body":
                await asyncio.sleep(60)

        scope = {"type": "http", "method": "GET", "path": "/stream", "query_string": b"", "headers": []}
        async with asyncio.timeout(10):
            await app({**scope, "asgi": {"spec_version": "2.4"}}, receive, stalled)
        assert app.admission.streams == 0

    asyncio.run(run())


def test_a_failure_behind_the_first_bytes_ends_the_response(caplog: pytest.LogCaptureFixture) -> None:
    async def lines() -> AsyncIterator[bytes]:
        yield b"line\n"
        raise RuntimeError("broken")

    async def stream(request: Request) -> Response:
        return StreamingResponse(lines())

    async def no_body() -> AsyncIterator[bytes]:
        await asyncio.sleep(60)
        yield b""

    async def run() -> None:
        app = app_of([route("/echo", stream)])
        response = await exchanged(app, no_body, method="GET", headers=())
        assert [each["type"] for each in response.messages].count("http.response.start") == 1
        assert response.messages[-1].get("more_body", False)  # not completed: the host closes the connection

    asyncio.run(run())
    assert "ended early" in caplog.text


def test_health_says_whether_the_service_can_work() -> None:
    reasons: list[str | None] = ["the log is not read yet"]

    async def run() -> None:
        async with client_of(app_of(why_not_ready=lambda: reasons[-1])) as client:
            assert (await client.get("/health")).json() == {"status": "up", "service": "sample"}
            assert (await client.get("/health/live")).status_code == 200
            response = await client.get("/health/ready")
            assert (response.status_code, response.json()["reason"]) == (503, "the log is not read yet")
            reasons.append(None)
            assert (await client.get("/health/ready")).status_code == 200

    asyncio.run(run())


def test_metrics_count_by_template_and_hold_no_path() -> None:
    async def run() -> None:
        async with client_of(app_of([route("/topics/{topic}")])) as client:
            for topic in ("secret-one", "secret-two"):
                await client.get(f"/topics/{topic}")
            await client.get("/nowhere/secret-three")
            await client.request("BREW", "/topics/secret-four")
            text = (await client.get("/metrics")).text
        assert (
            'barnabas_http_requests_total{method="GET",route="/topics/{topic}",'
            'service="sample",status="200"} 2.0'
        ) in text
        assert 'method="GET",route="unmatched",service="sample",status="404"} 1.0' in text
        assert 'method="other",route="unmatched",service="sample",status="405"} 1.0' in text
        assert 'barnabas_http_request_seconds_count{method="GET",route="/topics/{topic}"' in text
        assert "secret" not in text

    asyncio.run(run())


def test_the_access_log_has_a_line_for_each_request_and_no_query(caplog: pytest.LogCaptureFixture) -> None:
    async def guard(scope: Any, needs: Need | None) -> Caller:
        return Caller(Principal("alice\nis root"))

    caplog.set_level(logging.INFO, "barnabas.sample.access")

    async def run() -> None:
        async with client_of(app_of([route("/topics/{topic}")], guard)) as client:
            await client.get("/topics/a%0Ab?token=secret")

    asyncio.run(run())
    (line,) = [each.getMessage() for each in caplog.records if each.name == "barnabas.sample.access"]
    assert line.startswith(r"""127.0.0.1 'alice\nis root' "GET /topics/a%0Ab" 200 """)
    assert line.endswith(" ms")
    assert "secret" not in line


def test_the_guard_is_asked_before_paths_are_told() -> None:
    asked: list[Need | None] = []

    async def guard(scope: Any, needs: Need | None) -> Caller:
        asked.append(needs)
        if needs is not None and (b"authorization", b"x") not in scope["headers"]:
            raise ApiError(401, 401, "say who you are", {"www-authenticate": "Basic"})
        return Caller(Principal("alice"))

    async def name(request: Request) -> Response:
        return JSONResponse(caller_of(request).principal.name)

    async def run() -> None:
        async with client_of(app_of([route("/name", name, needs=Need.ADMIN)], guard)) as client:
            response = await client.get("/name")
            assert (response.status_code, response.headers["www-authenticate"]) == (401, "Basic")
            assert (await client.get("/nowhere")).status_code == 401
            assert (await client.get("/health")).status_code == 200
            assert (await client.get("/name", headers={"authorization": "x"})).json() == "alice"

    asyncio.run(run())
    assert asked == [Need.ADMIN, Need.READ, None, Need.ADMIN]


def test_a_service_without_a_guard_has_anonymous_callers() -> None:
    async def name(request: Request) -> Response:
        return JSONResponse(str(caller_of(request).principal))

    async def run() -> None:
        async with client_of(app_of([route("/name", name)])) as client:
            assert (await client.get("/name")).json() == "User:ANONYMOUS"

    asyncio.run(run())


def test_a_route_that_does_not_say_what_it_needs_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="declares no `needs`"):
        app_of([Route("/echo", echo)])


def test_the_service_starts_before_and_stops_behind_the_requests() -> None:
    events: list[str] = []

    async def start() -> None:
        events.append("start")

    async def stop() -> None:
        events.append(f"stop, stopping={service.stopping.is_set()}")
        raise RuntimeError("a stop that fails is logged")

    service = Service("sample", [], start=start, stop=stop)

    async def lifespan(app: ServiceApp, *messages: str) -> list[str]:
        left = [{"type": f"lifespan.{each}"} for each in messages]
        sent: list[str] = []

        async def receive() -> Any:
            return left.pop(0)

        async def send(message: Any) -> None:
            sent.append(message["type"])

        await app({"type": "lifespan"}, receive, send)
        return sent

    async def failing() -> None:
        raise OSError("no broker")

    async def run() -> None:
        assert await lifespan(ServiceApp(service), "startup", "shutdown") == [
            "lifespan.startup.complete",
            "lifespan.shutdown.complete",
        ]
        failed = ServiceApp(Service("sample", [], start=failing))
        assert await lifespan(failed, "startup") == ["lifespan.startup.failed"]

    asyncio.run(run())
    assert events == ["start", "stop, stopping=True"]
