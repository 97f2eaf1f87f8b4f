"""Requests that another worker must carry out, while that worker cannot be reached."""

from __future__ import annotations

import asyncio
import socket
import threading

import pytest
from starlette.requests import Request

from barnabas.connect.api.between_workers import Messenger
from barnabas.services.errors import ApiError
from barnabas.testing.ports import free_ports


def forwarded(url: str) -> ApiError:
    """The error for a request that is sent on."""

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def main() -> ApiError:
        scope = {"type": "http", "method": "DELETE", "path": "/connectors/a", "raw_path": b"/connectors/a",
                 "query_string": b"", "headers": []}  # fmt: skip
        messenger = Messenger()
        try:
            with pytest.raises(ApiError) as caught:
                await messenger.forward(Request(scope, receive), url)
        finally:
            await messenger.close()
        return caught.value

    return asyncio.run(main())


def test_a_request_that_never_left_may_be_sent_again() -> None:
    (port,) = free_ports(1)
    error = forwarded(f"http://127.0.0.1:{port}/")
    assert error.status == 409
    assert f"no connection to the worker http://127.0.0.1:{port}/" in error.message


def test_a_request_whose_response_never_came_may_have_been_carried_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def hang_up() -> None:
            link, _ = server.accept()
            link.recv(65536)
            link.close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        error = forwarded(f"http://127.0.0.1:{server.getsockname()[1]}/")
        thread.join()
    assert error.status == 500
    assert "IO Error trying to forward REST request" in error.message
