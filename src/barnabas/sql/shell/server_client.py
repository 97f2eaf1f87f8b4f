"""A client of the SQL server, as the shell uses it: blocking, one request at a time.

In: the URL of a server, perhaps with a name and a password in it. Out: entities, streams of lines.
ServerError has the server's own words. Does not know: terminals.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import httpx

CONNECT_S_MAX = 10.0
TITLE = "SQL server"


class ServerError(Exception):
    """A request that was refused. `entities` are those of the statements before the wrong one."""

    def __init__(self, message: str, code: int = 0, entities: list[dict[str, Any]] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.entities = entities or []


class ServerClient:
    def __init__(self, url: str, user: str = "", *, verify: bool | str = True) -> None:
        self.url = (url if "://" in url else f"http://{url}").rstrip("/")
        self._user, self._verify = user, verify
        name, _, password = user.partition(":")
        self._http = httpx.Client(
            base_url=self.url,
            auth=(name, password) if name else None,
            timeout=httpx.Timeout(None, connect=CONNECT_S_MAX),
            trust_env=False,
            verify=verify,
        )

    def again(self) -> ServerClient:
        """Another client of the same server, for another thread."""
        return ServerClient(self.url, self._user, verify=self._verify)

    def close(self) -> None:
        self._http.close()

    def info(self) -> dict[str, Any]:
        found: dict[str, Any] = self._ask("GET", "/info")["KsqlServerInfo"]
        return found

    def run(
        self,
        text: str,
        properties: Mapping[str, str],
        variables: Mapping[str, str],
        sequence_number: int | None = None,
    ) -> list[dict[str, Any]]:
        body: dict[str, Any] = {
            "ksql": text,
            "streamsProperties": dict(properties),
            "sessionVariables": dict(variables),
        }
        if sequence_number is not None:
            body["commandSequenceNumber"] = sequence_number
        found: list[dict[str, Any]] = self._ask("POST", "/ksql", body)
        return found

    def is_valid_property(self, name: str) -> bool:
        return self._send("GET", f"/is_valid_property/{name}").status_code == 200

    def spark(self, text: str) -> dict[str, Any]:
        found: dict[str, Any] = self._ask("POST", "/spark", {"sql": text})
        return found

    @contextmanager
    def lines(
        self,
        text: str,
        properties: Mapping[str, str],
        variables: Mapping[str, str],
        *,
        seconds_max: float | None = None,
    ) -> Iterator[Iterator[str]]:
        """The lines of a SELECT or a PRINT as they come, for so many seconds at most. Leaving the block ends
        the query."""
        body = {"sql": text, "properties": dict(properties), "sessionVariables": dict(variables)}
        try:
            with self._http.stream("POST", "/query-stream", json=body) as response:
                if response.status_code >= 400:
                    response.read()
                    raise refusal(response)
                with closed_after(response, seconds_max) as is_over:
                    yield lines_until(response.iter_lines(), is_over)
        except httpx.HTTPError as error:
            raise self._unreachable(error) from None

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        response = self._send(method, path, body)
        if response.status_code >= 400:
            raise refusal(response)
        try:
            return response.json()
        except ValueError:
            raise ServerError(f"{self.url} is no {TITLE}: its response is no JSON") from None

    def _send(self, method: str, path: str, body: object = None) -> httpx.Response:
        try:
            return self._http.request(method, path, json=body)
        except httpx.HTTPError as error:
            raise self._unreachable(error) from None

    def _unreachable(self, error: httpx.HTTPError) -> ServerError:
        why = str(error) or type(error).__name__
        return ServerError(
            f"the {TITLE} at {self.url} cannot be reached: {why}. `barnabas sql server` starts one."
        )


@contextmanager
def closed_after(response: httpx.Response, seconds: float | None) -> Iterator[threading.Event]:
    """Close the connection of a response that still comes after this time. The event tells that it was."""
    is_over = threading.Event()

    def close() -> None:
        is_over.set()
        opened = response.extensions["network_stream"].get_extra_info("socket")
        with suppress(OSError):  # the server may have closed it
            opened.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds or 0.0, close)
    timer.daemon = True
    if seconds is not None:
        timer.start()
    try:
        yield is_over
    finally:
        timer.cancel()


def lines_until(lines: Iterator[str], is_over: threading.Event) -> Iterator[str]:
    try:
        yield from lines
    except httpx.HTTPError:
        if not is_over.is_set():
            raise


def refusal(response: httpx.Response) -> ServerError:
    try:
        body = json.loads(response.text)
        return ServerError(str(body["message"]), int(body.get("error_code", 0)), body.get("entities", []))
    except (ValueError, KeyError, TypeError):
        return ServerError(f"the server answers HTTP {response.status_code}")
