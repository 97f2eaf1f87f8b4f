"""Requests that are signed for AWS: AWS' own library for Python makes the same signatures."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from tests.connect.connectors.contexts import started_sink
from tests.connect.connectors.http.test_http_sink import records
from tests.stores.http_server import HttpServer, Reply, Seen

from barnabas.connect.connectors.http.http_sink import HttpSinkConnector
from barnabas.connect.connectors.search.search_sink import OpenSearchSinkConnector
from barnabas.connect.connectors.stores.aws_signing import SignedLogin

auth: Any = pytest.importorskip("botocore.auth")
AWSRequest: Any = pytest.importorskip("botocore.awsrequest").AWSRequest
Credentials: Any = pytest.importorskip("botocore.credentials").Credentials
KEYS = {"aws.access_key_id": "AKIDEXAMPLE", "aws.secret_access_key": "secret", "aws.region": "eu-west-1"}


def expected(method: str, url: str, headers: dict[str, str], body: bytes, service: str, token: str) -> str:
    """The signature by botocore for the headers that ours signs."""
    signer = auth.SigV4Auth(Credentials("AKIDEXAMPLE", "secret", token or None), service, "eu-west-1")
    names = headers["authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
    request = AWSRequest(method, url, {name: headers[name] for name in names}, body)
    request.context["timestamp"] = headers["x-amz-date"]
    text = signer.string_to_sign(request, signer.canonical_request(request))
    return str(signer.signature(text, request))


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/", b""),
        ("POST", "/_bulk", b"lines\n"),
        ("PUT", "/%3Cindex-%7Bnow%2Fd%7D%3E/_doc/a%20b", b"{}"),
        ("GET", "/x?b=2&a=1&a=0&empty=&sp%20ace=%2F%C3%A4~", b""),
        ("DELETE", "/ä/ö", b""),
    ],
)
@pytest.mark.parametrize("token", ["", "temporary"])
def test_signatures_are_those_of_botocore(method: str, path: str, body: bytes, token: str) -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    login = SignedLogin("eu-west-1", "es", "AKIDEXAMPLE", "secret", token, lambda: at)
    url = httpx.URL(f"https://search.example.com{path}")
    sent = {"Content-Type": "application/json;  charset=utf-8"}
    found = login.signed(method, url, sent, body)
    assert found["x-amz-date"] == "20260102T030405Z" and found["host"] == "search.example.com"
    headers = {**found, "content-type": sent["Content-Type"]}
    signature = found["authorization"].partition("Signature=")[2]
    assert signature == expected(method, str(url), headers, body, "es", token)
    assert "secret" not in repr(login)


def test_a_server_that_checks_signatures_takes_what_the_sinks_send() -> None:
    service, wrong = "", list[str]()

    def decide(seen: Seen) -> Reply:
        query = "&".join(f"{name}={value}" for name, value in seen.query.items())
        url = f"{server.url}{seen.path}{'?' + query if query else ''}"
        given = seen.headers["authorization"].partition("Signature=")[2]
        if given != expected(seen.method, url, seen.headers, seen.body, service, ""):
            wrong.append(url)
        items = [{"index": {"status": 201}}] * (seen.body.count(b"\n") // 2)
        return Reply(200, {"items": items})

    with HttpServer(decide) as server:
        service = "execute-api"
        way = {**KEYS, "auth.type": "AWS_SIGV4", "aws.service.signing.name": service}
        task = started_sink(
            HttpSinkConnector, {"http.api.url": server.url + "/things/${key}?a=${key}", **way}
        )
        task.put(records(["v"], ["k"]))
        task.stop()
        service = "es"
        config = {"connection.url": server.url, "aws.service.signing.name": service, "schema.ignore": "true"}
        task = started_sink(OpenSearchSinkConnector, {**config, **KEYS})
        task.put(records([{"id": 1, "country": "x"}, {"id": 2, "country": "y"}], ["a", "b"]))
        task.stop()
        assert wrong == [] and server.seen[-1].path == "/_bulk"


def test_keys_come_from_the_environment_and_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def errors(**more: str) -> dict[str, list[str]]:
        given = {name.replace("__", "."): text for name, text in more.items()}
        return OpenSearchSinkConnector().check({"connection.url": "http://x", **given})

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    assert "aws.service.signing.name" in errors(aws__region="r")
    both = {"aws__region": "r", "aws__service__signing__name": "es"}
    assert "aws.access_key_id" in errors(**both)
    assert "aws.sts.role.arn" in errors(aws__sts__role__arn="arn:x")
    assert "aws.region" in errors(**both, aws__access_key_id="i", aws__secret_access_key="s",
                                  connection__username="u", connection__password="p")  # fmt: skip
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "i")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    assert errors(**both) == {}
