"""A target of alerts: it turns a notice into a message and delivers it.

In: notices. Out: nothing, or `DeliveryFailed` with a text that names no secret. Blocking: for threads.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Protocol

import httpx

from barnabas.monitor.alerts.notices import Notice

logging.getLogger("httpx").setLevel(logging.WARNING)  # it logs whole URLs: paths of webhooks are secrets

DELIVERY_S_MAX = 20.0
BODY_SHOWN_MAX = 200


class DeliveryFailed(Exception):
    """The target did not accept a message; it may later."""


class Target(Protocol):
    @property
    def name(self) -> str: ...

    def deliver(self, notice: Notice) -> None:
        """Send the message and wait for its acceptance."""


def post(
    url: str, body: Any, *, headers: Mapping[str, str] | None = None, auth: tuple[str, str] | None = None
) -> None:
    """POST JSON. Redirects are not followed: a message may hold names that only the target should see."""
    try:
        response = httpx.post(url, json=body, headers=dict(headers or {}), auth=auth, timeout=DELIVERY_S_MAX)
    except httpx.HTTPError as error:
        raise DeliveryFailed(f"{host_of(url)}: {error or type(error).__name__}") from None
    if not response.is_success:
        text = response.text[:BODY_SHOWN_MAX].strip()
        raise DeliveryFailed(f"{host_of(url)} responded with {response.status_code}: {text}")


def host_of(url: str) -> str:
    """The host alone: paths of webhooks are secrets."""
    return httpx.URL(url).host
