"""Who may ask the serving process: tokens, names with passwords, TLS, and where it may listen."""

from __future__ import annotations

import base64
import datetime
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from barnabas.pipeline.serving.http.client import ServingClient, ServingError
from barnabas.pipeline.serving.http.guests import guests
from barnabas.security.tls.certificates import issue, new_authority

from .test_serving_http import TOKEN, Process

GUEST_TOKEN = "a guest's token"
PASSWORD = "ann's pass:word"
GUESTS = json.dumps({"tokens": [TOKEN, GUEST_TOKEN], "users": {"ann": PASSWORD, "nobody": ""}})


def basic(name: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Files of a certificate and of its key."""
    folder = tmp_path_factory.mktemp("tls")
    now = datetime.datetime.now(datetime.UTC)
    issued = issue(new_authority("CN=CA", now), "CN=serving", now, hosts=["127.0.0.1"])
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    certificate.write_bytes(issued.chain_pem)
    key.write_bytes(issued.key_pem)
    return certificate, key


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory, pair: tuple[Path, Path]) -> Iterator[Process]:
    more = ("--certificate", str(pair[0]), "--private-key", str(pair[1]))
    found = Process(tmp_path_factory.mktemp("serving"), "duckdb", *more, guests=GUESTS)
    yield found
    assert found.end() == 0


def ask(process: Process, pair: tuple[Path, Path], path: str, authorization: str | None) -> httpx.Response:
    headers = {} if authorization is None else {"authorization": authorization}
    with ServingClient(process.url, certificate=pair[0]) as client:
        return client._http.get(path, headers=headers)


@pytest.mark.parametrize(
    "authorization", [f"Bearer {GUEST_TOKEN}", f"bearer {TOKEN}", basic("ann", PASSWORD)]
)
def test_guests_get_answers(process: Process, pair: tuple[Path, Path], authorization: str) -> None:
    assert ask(process, pair, "/views", authorization).json() == {"views": []}


@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        "Bearer",
        "Bearer wrong",
        GUEST_TOKEN,
        basic("ann", "wrong"),
        basic("ann", ""),
        basic("bob", PASSWORD),
        basic("nobody", ""),
        "Basic !!!",
        "Basic " + base64.b64encode(b"\xff\xfe").decode(),
        "Digest x",
    ],
)
def test_others_are_refused_with_one_sentence(
    process: Process, pair: tuple[Path, Path], authorization: str | None
) -> None:
    for path in ("/views",) if authorization is not None else ("/views", "/", "/openapi.json", "/sql"):
        refused = ask(process, pair, path, authorization)
        assert refused.status_code == 401 and "Basic" in refused.headers["www-authenticate"]
        assert refused.json() == {"error": "say who you are: a bearer token, or name and password"}


def test_liveness_is_open_and_parts_need_the_applications_token(
    process: Process, pair: tuple[Path, Path]
) -> None:
    assert ask(process, pair, "/health", None).status_code == 200
    assert ask(process, pair, "/inner/health", f"Bearer {GUEST_TOKEN}").status_code == 401
    assert ask(process, pair, "/inner/health", f"Bearer {TOKEN}").status_code == 200


def test_only_the_pinned_certificate_is_trusted(process: Process, tmp_path: Path) -> None:
    now = datetime.datetime.now(datetime.UTC)
    other = tmp_path / "other.pem"
    other.write_bytes(new_authority("CN=other", now).certificate_pem)
    with (
        ServingClient(process.url, patience_s=0, certificate=other) as client,
        pytest.raises(ServingError, match="CERTIFICATE_VERIFY_FAILED"),
    ):
        client.views()
    with (
        ServingClient(process.url.replace("https", "http"), patience_s=0) as client,
        pytest.raises(ServingError),
    ):
        client.views()


def serve(folder: Path, *more: str, allowed: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "barnabas.pipeline.serving", "--name", "shop", "--folder", str(folder)]
    return subprocess.run(
        [*command, "--port", "0", *more],
        env={**os.environ, "BARNABAS_SERVING_GUESTS": allowed},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_other_addresses_are_refused_without_guests_or_tls(tmp_path: Path) -> None:
    open_to_all = serve(tmp_path, "--host", "0.0.0.0")
    assert open_to_all.returncode == 2 and "anybody could ask" in open_to_all.stderr
    readable = serve(tmp_path, "--host", "0.0.0.0", allowed=GUESTS)
    assert readable.returncode == 2 and "travel readable" in readable.stderr
    assert GUEST_TOKEN not in readable.stderr and PASSWORD not in readable.stderr


def test_unusable_certificates_are_named(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    done = serve(tmp_path, "--certificate", str(pair[0]), "--private-key", str(pair[0]))
    assert done.returncode == 2 and "serving.certificate and serving.private_key" in done.stderr


def test_guests_keep_and_show_no_secrets() -> None:
    shown = repr(guests([GUEST_TOKEN], {"ann": PASSWORD}))
    assert GUEST_TOKEN not in shown and PASSWORD not in shown
    assert guests(["", ""], {"ann": ""}).is_open
