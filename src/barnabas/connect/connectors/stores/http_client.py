"""Requests over HTTP for connectors: bounded responses, time limits, TLS, logins.

In: a method, an address, headers, a body. Out: the response, whatever its status; `Unreachable` where there
is none. Does not know: retries, records.
"""

from __future__ import annotations

import codecs
import email.utils
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message

import httpx

from barnabas.connect.config import ConfigDef, Settings
from barnabas.connect.connectors.stores.http_logins import Login, NoLogin
from barnabas.connect.plugins import ConnectError
from barnabas.security.clients.client_security import client_tls
from barnabas.security.errors import SecuritySettingsError

# httpx logs the address of each request, which can hold keys.
logging.getLogger("httpx").setLevel(logging.WARNING)
ERROR_BYTES_MAX = 2000  # of a response that an error message shows
RETRY_AFTER_S_MAX = 600.0
PROXY_LOGIN = 407
REFUSED_BY_PROXY = "the proxy refuses the connector (407): set its user and its password"


class Unreachable(Exception):
    """No response came: the connection failed, broke, or took too long."""


@dataclass(frozen=True, slots=True)
class HttpResponse:
    status: int
    headers: httpx.Headers
    body: bytes

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    def json_bytes(self) -> bytes:
        """The body in UTF-8 without a mark of byte order, whatever charset the response names."""
        kind = Message()
        kind["content-type"] = self.headers.get("content-type", "application/json")
        body = self.body.removeprefix(codecs.BOM_UTF8)
        try:
            return body.decode(kind.get_content_charset("utf-8")).encode()
        except (LookupError, UnicodeError):
            return body

    def brief(self) -> str:
        """The status and the beginning of the body, for messages."""
        text = self.body[:ERROR_BYTES_MAX].decode(errors="replace").strip()
        return f"{self.status}{': ' + text if text else ''}"

    def retry_after_s(self, now: float | None = None) -> float:
        """The pause that the server asks for: seconds, or a date; 0 where it asks for none."""
        text = self.headers.get("retry-after", "").strip()
        if not text:
            return 0.0
        if text.isdecimal():
            return min(float(text[:9]), RETRY_AFTER_S_MAX)
        try:
            until = email.utils.parsedate_to_datetime(text).timestamp()
        except (ValueError, TypeError, OverflowError):
            return 0.0
        return min(max(0.0, until - (time.time() if now is None else now)), RETRY_AFTER_S_MAX)


class HttpClient:
    """One client of one task. A response of more than `bytes_max` bytes is an error."""

    def __init__(
        self,
        *,
        login: Login | None = None,
        connect_s: float = 10.0,
        read_s: float = 30.0,
        bytes_max: int = 64 << 20,
        tls: Mapping[str, str] | None = None,
        proxy: str | None = None,
    ) -> None:
        self._login = login or NoLogin()
        self._bytes_max = bytes_max
        try:
            verify = client_tls(tls) if tls else True
        except SecuritySettingsError as error:
            raise ConnectError(f"the settings of TLS are wrong: {error}") from error
        self._client = httpx.Client(
            verify=verify,
            timeout=httpx.Timeout(read_s, connect=connect_s),
            proxy=proxy or None,
            trust_env=False,
            follow_redirects=False,
        )

    def request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        params: Mapping[str, str] | None = None,
    ) -> HttpResponse:
        """Send a request. A refused token is fetched again once."""
        found = self._send(method, url, {**(headers or {})}, body, params)
        if found.status == 401 and self._login.forget():
            found = self._send(method, url, {**(headers or {})}, body, params)
        return found

    def _send(
        self,
        method: str,
        url: str,
        headers: dict[str, str],
        body: bytes | None,
        params: Mapping[str, str] | None,
    ) -> HttpResponse:
        try:
            headers |= self._login.headers(self._client)
            asked = {**(params or {}), **self._login.params()}
            merged = httpx.URL(url).copy_merge_params(asked) if asked else httpx.URL(url)
            headers |= self._login.signed(method, merged, headers, body)
            with self._client.stream(method, merged, headers=headers, content=body) as response:
                if response.status_code == PROXY_LOGIN:
                    raise ConnectError(REFUSED_BY_PROXY)
                return HttpResponse(response.status_code, response.headers, self._read(response, url))
        except httpx.HTTPError as error:
            if isinstance(error, httpx.ProxyError) and str(error).startswith(str(PROXY_LOGIN)):
                raise ConnectError(REFUSED_BY_PROXY) from error
            raise Unreachable(f"{method} {shown(url)}: {error or type(error).__name__}") from error
        except (httpx.InvalidURL, httpx.CookieConflict, UnicodeError, ValueError) as error:
            raise ConnectError(f"{method} {shown(url)} is no valid request: {error}") from error

    def _read(self, response: httpx.Response, url: str) -> bytes:
        parts, size = [], 0
        for part in response.iter_bytes():
            size += len(part)
            if size > self._bytes_max:
                raise ConnectError(f"the response of {shown(url)} has more than {self._bytes_max} bytes")
            parts.append(part)
        return b"".join(parts)

    def close(self) -> None:
        self._client.close()


def shown(url: str) -> str:
    """An address without what may be secret in it: user, password, parameters."""
    try:
        found = httpx.URL(url)
        return str(found.copy_with(username=None, password=None, query=None, fragment=None))
    except (httpx.InvalidURL, ValueError, TypeError):
        return "an invalid address"


HOST_CHECK = "https.host.verifier.enabled"


def define_host_check(found: ConfigDef) -> ConfigDef:
    return found.define(
        HOST_CHECK, "BOOLEAN", True, "MEDIUM", "Whether the certificate of a server must have its name."
    )


def tls_properties(settings: Settings, prefix: str) -> dict[str, str]:
    """The user's settings under a prefix such as `https.`, as Kafka's `ssl.*` properties."""
    found = {
        f"ssl.{name}": value
        for name, value in settings.prefixed(f"{prefix}ssl.").items()
        if value is not None
    }
    if HOST_CHECK in settings and not settings.flag(HOST_CHECK):
        found["ssl.endpoint.identification.algorithm"] = ""
    return found
