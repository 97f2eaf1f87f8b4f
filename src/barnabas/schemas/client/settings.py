"""Settings of a registry's client, in Confluent's names.

In: a dict of properties, or a URL. Out: ClientSettings. Does not know: how requests are sent.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

TOKEN_SOURCES = {"STATIC_TOKEN", "CUSTOM"}


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Settings that were checked. Headers are made for each request, because tokens change."""

    urls: tuple[str, ...]
    headers: Callable[[], dict[str, str]] = field(repr=False)
    ca_location: str | None = None
    certificate_location: str | None = None
    key_location: str | None = None
    key_password: str | None = field(default=None, repr=False)
    timeout_s: float = 30.0
    retries_max: int = 3
    retry_wait_s: float = 0.1
    retry_wait_s_max: float = 5.0
    cache_capacity: int = 1000
    latest_ttl_s: float | None = None  # None: kept until the client ends

    @classmethod
    def of(cls, given: str | Mapping[str, Any]) -> ClientSettings:
        left = {"url": given} if isinstance(given, str) else dict(given)
        source = str(left.pop("basic.auth.credentials.source", "URL")).upper()
        if source not in {"URL", "USER_INFO", "SASL_INHERIT"}:
            raise ValueError(
                f"basic.auth.credentials.source {source} is none of URL, USER_INFO, SASL_INHERIT"
            )
        urls, from_url = _urls(left.pop("url", None))
        user_info = left.pop("basic.auth.user.info", None)
        if source == "SASL_INHERIT":
            user_info = f"{left.pop('sasl.username', '')}:{left.pop('sasl.password', '')}"
        if source == "USER_INFO" and not user_info:
            raise ValueError("basic.auth.user.info is missing: basic.auth.credentials.source is USER_INFO")
        settings = cls(
            urls,
            _headers(user_info or from_url, left),
            left.pop("ssl.ca.location", None),
            left.pop("ssl.certificate.location", None),
            left.pop("ssl.key.location", None),
            left.pop("ssl.key.password", None),
            float(left.pop("timeout", 30.0)),
            int(left.pop("max.retries", 3)),
            int(left.pop("retries.wait.ms", 100)) / 1000,
            int(left.pop("retries.max.wait.ms", 5000)) / 1000,
            int(left.pop("cache.capacity", 1000)),
            _ttl(left.pop("cache.latest.ttl.sec", None)),
        )
        if left:
            raise ValueError(f"unknown properties of a registry's client: {', '.join(sorted(left))}")
        if settings.certificate_location is None and settings.key_location is not None:
            raise ValueError("ssl.certificate.location is missing: ssl.key.location is set")
        return settings


def _urls(given: object) -> tuple[tuple[str, ...], str | None]:
    """Base URLs without credentials, and the credentials of the first that has some."""
    texts = [text.strip() for text in given.split(",")] if isinstance(given, str) else []
    if not texts or not all(texts):
        raise ValueError("url is missing: it names one or more registries, with commas between them")
    urls, user_info = [], None
    for text in texts:
        parts = urlsplit(text)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError(
                f"url {parts._replace(netloc=parts.netloc.rpartition('@')[2]).geturl()} is no HTTP URL"
            )
        if parts.username is not None:
            user_info = user_info or f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        host = parts.netloc.rpartition("@")[2]
        urls.append(urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", "")))
    return tuple(urls), user_info


def _headers(user_info: str | None, left: dict[str, Any]) -> Callable[[], dict[str, str]]:
    """Headers of every request; bearer tokens come from a setting or from a function."""
    source = left.pop("bearer.auth.credentials.source", None)
    token = left.pop("bearer.auth.token", None)
    provider = left.pop("bearer.auth.custom.provider.function", None)
    more = {
        header: str(value)
        for header, name in (
            ("target-sr-cluster", "bearer.auth.logical.cluster"),
            ("Confluent-Identity-Pool-Id", "bearer.auth.identity.pool.id"),
        )
        if (value := left.pop(name, None)) is not None
    }
    if source is not None and source not in TOKEN_SOURCES:
        raise ValueError(
            f"bearer.auth.credentials.source {source} is none of {', '.join(sorted(TOKEN_SOURCES))}"
        )
    if user_info and (token or provider):
        raise ValueError("a client logs in with basic.auth or with bearer.auth, not with both")
    if source and not (token or provider):
        raise ValueError(f"bearer.auth.token is missing: bearer.auth.credentials.source is {source}")
    if token or provider:
        give = provider or (lambda: token)
        return lambda: {"Authorization": f"Bearer {_token_text(give())}", **more}
    if user_info:
        basic = base64.b64encode(str(user_info).encode()).decode()
        return lambda: {"Authorization": f"Basic {basic}"}
    return dict


def _token_text(given: object) -> str:
    """A provider returns a token, or a dict with the token under Confluent's name."""
    return str(given["bearer.auth.token"] if isinstance(given, Mapping) else given)


def _ttl(given: object) -> float | None:
    seconds = None if given is None else float(str(given))
    return None if seconds is None or seconds < 0 else seconds
