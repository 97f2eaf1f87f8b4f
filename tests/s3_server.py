"""An S3 server on this machine (moto), for lakes behind a URL.

It is a process of its own: libraries that wait for it may hold Python's lock meanwhile.
"""

from __future__ import annotations

import contextlib
import json
import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

PREFIX = "spark.hadoop.fs.s3a."
TESTS = "/_tests"


class Request(NamedTuple):
    method: str
    path: str
    query: str


class S3Server:
    def __init__(self, address: str) -> None:
        self.address = address

    @property
    def settings(self) -> dict[str, str]:
        """Spark's settings for it."""
        return {
            f"{PREFIX}endpoint": self.address,
            f"{PREFIX}endpoint.region": "us-east-1",
            f"{PREFIX}access.key": "test",
            f"{PREFIX}secret.key": "test",
            f"{PREFIX}path.style.access": "true",
        }

    def requests(self) -> list[Request]:
        """Requests since the last call."""
        import httpx

        return [Request(*each) for each in httpx.get(f"{self.address}{TESTS}/requests").json()]

    def ignore_conditions(self, ignores: bool) -> None:
        """As some stores do."""
        import httpx

        httpx.get(f"{self.address}{TESTS}/ignore/{int(ignores)}").raise_for_status()


@contextlib.contextmanager
def s3_server() -> Iterator[tuple[str, dict[str, str]]]:
    """The URL of a bucket, and Spark's settings for it."""
    with running_s3() as found:
        yield "s3a://lake", found.settings


@contextlib.contextmanager
def running_s3(bucket: str = "lake") -> Iterator[S3Server]:
    pytest.importorskip("obstore", reason="needs the extra `lake`")
    pytest.importorskip("moto.moto_server.werkzeug_app", reason="needs moto")
    import httpx

    process = subprocess.Popen([sys.executable, __file__], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        found = S3Server(f"http://127.0.0.1:{int(process.stdout.readline())}")
        httpx.put(f"{found.address}/{bucket}").raise_for_status()
        yield found
    finally:
        process.kill()
        process.communicate()


def serve() -> None:
    import moto.moto_server.werkzeug_app as moto
    from werkzeug.serving import make_server

    app, turn = moto.DomainDispatcherApplication(moto.create_backend_app), threading.Lock()
    seen: list[Request] = []
    ignores = [False]

    def one_at_a_time(environ: Any, start_response: Any) -> list[bytes]:
        path = environ["PATH_INFO"]
        if path.startswith(TESTS):
            if path.startswith(f"{TESTS}/ignore/"):
                ignores[0] = path.endswith("1")
            told, seen[:] = list(seen), []
            start_response("200 OK", [("Content-Type", "application/json")])
            return [json.dumps(told).encode()]
        seen.append(Request(environ["REQUEST_METHOD"], path, environ["QUERY_STRING"]))
        if ignores[0]:
            environ.pop("HTTP_IF_NONE_MATCH", None)
        with turn:  # moto checks a condition and stores the object in two steps
            return list(app(environ, start_response))

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = make_server(
        "127.0.0.1", 0, one_at_a_time, threaded=True, request_handler=moto.MotoRequestHandler
    )
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    serve()
