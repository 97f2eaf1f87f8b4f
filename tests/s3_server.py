"""An S3 server on this machine, for tests of what is kept behind a URL."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


@contextmanager
def s3_server() -> Iterator[tuple[str, dict[str, str]]]:
    """The URL of a bucket, and Spark's settings for it."""
    pytest.importorskip("obstore", reason="needs the extra `lake`")
    moto: Any = pytest.importorskip("moto.moto_server.werkzeug_app", reason="needs moto")
    import httpx
    from werkzeug.serving import make_server

    app, turn = moto.DomainDispatcherApplication(moto.create_backend_app), threading.Lock()

    def one_at_a_time(environ: Any, start_response: Any) -> list[bytes]:
        with turn:  # moto checks a condition and stores the object in two steps
            return list(app(environ, start_response))

    s3 = make_server("127.0.0.1", 0, one_at_a_time, threaded=True, request_handler=moto.MotoRequestHandler)
    serving = threading.Thread(target=s3.serve_forever, daemon=True)
    serving.start()
    host, port = s3.server_address[:2]
    httpx.put(f"http://{host}:{port}/lake").raise_for_status()
    prefix = "spark.hadoop.fs.s3a."
    yield (
        "s3a://lake",
        {
            f"{prefix}endpoint": f"http://{host}:{port}",
            f"{prefix}endpoint.region": "us-east-1",
            f"{prefix}access.key": "test",
            f"{prefix}secret.key": "test",
            f"{prefix}path.style.access": "true",
        },
    )
    s3.shutdown()
    serving.join()
    s3.server_close()
