"""Logins of HTTP clients: none, a header, a password, a key, a token by OAuth 2 client credentials.

In: settings. Out: headers and parameters of requests. A token is kept until shortly before it expires, or
until a server refuses it. Does not know: requests of connectors.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import httpx
import orjson

from barnabas.connect.plugins import ConnectError

EARLY_S = 30.0  # a token is fetched again so long before it expires
TOKEN_BYTES_MAX = 1 << 20
LIFE_S_DEFAULT = 300.0  # of a token whose response does not tell


class Login:
    def headers(self, client: httpx.Client) -> dict[str, str]:
        return {}

    def params(self) -> dict[str, str]:
        return {}

    def signed(
        self, method: str, url: httpx.URL, headers: Mapping[str, str], body: bytes | None
    ) -> dict[str, str]:
        """Headers that depend on the request."""
        return {}

    def forget(self) -> bool:
        """A server answered 401: whether another try may have another token."""
        return False


class NoLogin(Login):
    pass


@dataclass(slots=True)
class FixedLogin(Login):
    """Headers and parameters that never change."""

    fixed: Mapping[str, str] = field(default_factory=dict, repr=False)
    query: Mapping[str, str] = field(default_factory=dict, repr=False)

    def headers(self, client: httpx.Client) -> dict[str, str]:
        return dict(self.fixed)

    def params(self) -> dict[str, str]:
        return dict(self.query)


def basic(user: str, password: str) -> Login:
    text = base64.b64encode(f"{user}:{password}".encode()).decode()
    return FixedLogin({"authorization": f"Basic {text}"})


def bearer(token: str) -> Login:
    return FixedLogin({"authorization": f"Bearer {token}"})


@dataclass(slots=True)
class ClientCredentials(Login):
    """OAuth 2's client credentials grant (RFC 6749, 4.4)."""

    url: str
    client_id: str
    secret: str = field(repr=False)
    scope: str = ""
    sends_header: bool = True  # the client's id and secret as Basic; otherwise in the body
    token_property: str = "access_token"
    request_headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    _token: str = field(default="", repr=False)
    _until: float = 0.0

    def headers(self, client: httpx.Client) -> dict[str, str]:
        if not self._token or time.monotonic() >= self._until:
            self._fetch(client)
        return {"authorization": f"Bearer {self._token}"}

    def forget(self) -> bool:
        had, self._token = bool(self._token), ""
        return had

    def _fetch(self, client: httpx.Client) -> None:
        form = {"grant_type": "client_credentials"}
        if self.scope:
            form["scope"] = self.scope
        headers = {"accept": "application/json", **self.request_headers}
        if self.sends_header:
            headers |= basic(self.client_id, self.secret).headers(client)
        else:
            form |= {"client_id": self.client_id, "client_secret": self.secret}
        response = client.post(self.url, data=form, headers=headers)
        if response.status_code >= 500 or response.status_code == 429:
            raise httpx.RemoteProtocolError(f"the token server answers {response.status_code}")
        if response.status_code != 200 or len(response.content) > TOKEN_BYTES_MAX:
            raise ConnectError(
                f"the token server refuses the client {self.client_id!r} with {response.status_code}:"
                f" {response.text[:500]}"
            )
        try:
            found = orjson.loads(response.content)
            token = found[self.token_property]
            life_s = float(found.get("expires_in") or LIFE_S_DEFAULT)
        except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, AttributeError) as error:
            raise ConnectError(
                f"the response of the token server has no {self.token_property!r} ({error!r}):"
                " see oauth2.response.token.property"
            ) from error
        if not isinstance(token, str) or not token.isprintable():
            raise ConnectError(f"{self.token_property!r} of the token server's response is no text")
        self._token = token
        self._until = time.monotonic() + max(life_s - EARLY_S, life_s / 2)
