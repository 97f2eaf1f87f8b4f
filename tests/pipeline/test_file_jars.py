"""Jars come over HTTP from Maven Central or a mirror, are checked, and are fetched once."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from barnabas.spark import jars
from barnabas.spark.jars import Jar, JarError

CONTENT = b"a jar of some size" * 10_000
GOOD = Jar("org.example", "thing", "1.0", hashlib.sha256(CONTENT).hexdigest())


class Mirror(BaseHTTPRequestHandler):
    asked: list[str] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        found = self.path == f"/maven/{GOOD.address}"
        self.send_response(200 if found else 404)
        self.send_header("Content-Length", str(len(CONTENT) if found else 0))
        self.end_headers()
        if found:
            self.wfile.write(CONTENT)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    Mirror.asked = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Mirror)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv(jars.MIRROR, f"http://127.0.0.1:{server.server_port}/maven/")
    monkeypatch.delenv(jars.OFFLINE, raising=False)
    monkeypatch.setitem(jars.SETS, "thing", (GOOD,))
    yield Mirror.asked
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_jar_is_fetched_once_with_a_line_of_progress(mirror: list[str]) -> None:
    said: list[str] = []
    assert [jar.file_name for jar in jars.missing(["thing"])] == ["thing-1.0.jar"]
    [path] = jars.jars("thing", say=said.append)
    assert path.read_bytes() == CONTENT and jars.missing(["thing"]) == []
    assert jars.jars("thing") == [path] and len(mirror) == 1
    assert said[-1] == "fetching thing-1.0.jar: 0.2 of 0.2 MB"


def test_a_jar_with_another_checksum_is_not_kept(mirror: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(jars.SETS, "thing", (Jar("org.example", "thing", "1.0", "0" * 64),))
    with pytest.raises(JarError, match="has the checksum"):
        jars.jars("thing")
    assert not list(jars.cache_folder("jars").iterdir())


def test_missing_and_forbidden_jars_are_named(mirror: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(jars.SETS, "other", (Jar("org.example", "other", "2.0", "0" * 64),))
    with pytest.raises(JarError, match=r"other-2\.0\.jar cannot be fetched.*404"):
        jars.jars("other")
    monkeypatch.setenv(jars.OFFLINE, "1")
    with pytest.raises(JarError, match=r"BARNABAS_OFFLINE is set: fetch http://.*thing-1\.0\.jar"):
        jars.jars("thing")
    assert len(mirror) == 1
