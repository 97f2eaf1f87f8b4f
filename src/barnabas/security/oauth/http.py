"""One HTTP request to an identity provider: bounded in time and size, no redirects. For threads only.

`file:` URLs read a file, as Kafka does.
"""

from __future__ import annotations

import http.client
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from barnabas.security.oauth.settings import shown

CHUNK = 64 * 1024
RETRIED = (408, 425, 429, 500, 502, 503, 504)


class ProviderError(Exception):
    """The identity provider did not respond as expected. The message has the URL and no secret."""

    def __init__(self, message: str, *, may_retry: bool, status: int = 0) -> None:
        super().__init__(message)
        self.may_retry = may_retry
        self.status = status  # of the HTTP response, if there was one


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect could send a client's secret elsewhere."""

    def redirect_request(self, *_: object, **__: object) -> None:
        return None


def request(
    url: str,
    *,
    timeout_s: float,
    bytes_max: int,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    tls: ssl.SSLContext | None = None,
) -> bytes:
    """The body of the response: a POST if there is a body, else a GET. ProviderError."""
    place = shown(url)
    if urlsplit(url).scheme.lower() == "file":
        return read_file(url, bytes_max)
    handlers: list[urllib.request.BaseHandler] = [_NoRedirect()]
    if tls is not None:
        handlers.append(urllib.request.HTTPSHandler(context=tls))
    opener = urllib.request.build_opener(*handlers)
    asked = urllib.request.Request(url, data=body, headers={"Accept": "application/json", **(headers or {})})
    deadline = time.monotonic() + timeout_s
    try:
        with opener.open(asked, timeout=timeout_s) as response:
            return _read(response, bytes_max, deadline)
    except urllib.error.HTTPError as error:
        with error:
            raise ProviderError(
                f"{place} responded with {error.code}",
                may_retry=error.code in RETRIED,
                status=error.code,
            ) from None
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise ProviderError(f"{place}: {reason or type(error).__name__}", may_retry=True) from None
    except ValueError as error:
        raise ProviderError(f"{place}: {error}", may_retry=False) from None


def _read(response: http.client.HTTPResponse, bytes_max: int, deadline: float) -> bytes:
    """The timeout of a socket counts for each read; the deadline for all of them."""
    body = bytearray()
    while chunk := response.read1(CHUNK):
        body += chunk
        if len(body) > bytes_max:
            raise ValueError(f"the response has more than {bytes_max} bytes")
        if time.monotonic() > deadline:
            raise TimeoutError("the response took too long")
    return bytes(body)


def provider_tls(url: str, options: Mapping[str, str]) -> ssl.SSLContext | None:
    """The TLS of an https URL, with the stores that the options `ssl.*` of a JAAS entry name, as in Kafka.
    Without them the authorities of the operating system are trusted."""
    if urlsplit(url).scheme.lower() != "https" or not any(name.startswith("ssl.") for name in options):
        return None
    from barnabas.security.tls.contexts import client_context, tls_settings

    return client_context(tls_settings(options.get))


def read_file(url: str, bytes_max: int) -> bytes:
    path = Path(unquote(urlsplit(url).path))
    try:
        with path.open("rb") as file:
            content = file.read(bytes_max + 1)
    except OSError as error:
        raise ProviderError(f"cannot read {path}: {error.strerror}", may_retry=False) from None
    if len(content) > bytes_max:
        raise ProviderError(f"{path} has more than {bytes_max} bytes", may_retry=False)
    return content
