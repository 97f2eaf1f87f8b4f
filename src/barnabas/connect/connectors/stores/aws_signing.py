"""Logins by signatures of AWS (Signature Version 4): each request is signed with a secret key.

In: a request. Out: its headers with the signature. Keys come from the settings, or from the environment as
AWS' own tools read them. Does not know: requests of connectors, roles.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import quote

import httpx

from barnabas.connect.config import ConfigDef, Settings
from barnabas.connect.connectors.stores.http_logins import Login
from barnabas.connect.plugins import ConnectError

ALGORITHM = "AWS4-HMAC-SHA256"
ROLES = ("aws.sts.role.arn", "aws.sts.role.external.id", "aws.sts.role.session.name")


@dataclass(frozen=True, slots=True)
class SignedLogin(Login):
    region: str
    service: str
    key_id: str
    secret: str = field(repr=False)
    token: str = field(default="", repr=False)  # of temporary keys
    now: Callable[[], datetime] = field(default=lambda: datetime.now(UTC), repr=False)

    def signed(
        self, method: str, url: httpx.URL, headers: Mapping[str, str], body: bytes | None
    ) -> dict[str, str]:
        at = self.now().strftime("%Y%m%dT%H%M%SZ")
        found = {
            "host": url.netloc.decode("ascii"),
            "x-amz-date": at,
            "x-amz-content-sha256": hashlib.sha256(body or b"").hexdigest(),
        }
        if self.token:
            found["x-amz-security-token"] = self.token
        covered = dict(found)
        for name, value in headers.items():
            if name.lower() == "content-type":
                covered["content-type"] = value
        names = ";".join(sorted(covered))
        lines = "".join(f"{name}:{' '.join(covered[name].split())}\n" for name in sorted(covered))
        request = "\n".join(
            (method, path_of(url), query_of(url), lines, names, found["x-amz-content-sha256"])
        )
        scope = f"{at[:8]}/{self.region}/{self.service}/aws4_request"
        text = "\n".join((ALGORITHM, at, scope, hashlib.sha256(request.encode()).hexdigest()))
        signature = hmac.new(self._key(at[:8]), text.encode(), hashlib.sha256).hexdigest()
        found["authorization"] = (
            f"{ALGORITHM} Credential={self.key_id}/{scope}, SignedHeaders={names}, Signature={signature}"
        )
        return found

    def _key(self, day: str) -> bytes:
        key = f"AWS4{self.secret}".encode()
        for part in (day, self.region, self.service, "aws4_request"):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        return key


def path_of(url: httpx.URL) -> str:
    """The path as the request has it, encoded once more: only S3 signs it as it is."""
    return quote(url.raw_path.partition(b"?")[0].decode("ascii") or "/", safe="/-_.~")


def query_of(url: httpx.URL) -> str:
    items = url.params.multi_items()
    pairs = ((quote(name, safe="-_.~"), quote(value, safe="-_.~")) for name, value in items)
    return "&".join(f"{name}={value}" for name, value in sorted(pairs))


def define_signing(found: ConfigDef) -> ConfigDef:
    return (
        found.define("aws.region", "STRING", "", "MEDIUM", "AWS: sign requests for this region.")
        .define("aws.service.signing.name", "STRING", "", "MEDIUM",
                "AWS: sign requests for this service, such as es, aoss, execute-api.")
        .define("aws.access_key_id", "STRING", "", "MEDIUM",
                "AWS: the id of the key; empty: AWS_ACCESS_KEY_ID and so on of the environment.")
        .define("aws.secret_access_key", "PASSWORD", None, "MEDIUM", "AWS: the key.")
        .define("aws.session_token", "PASSWORD", None, "LOW", "AWS: the token of a temporary key.")
        .define("aws.sts.role.arn", "STRING", "", "LOW", "Refused: roles are not built.")
        .define("aws.sts.role.external.id", "STRING", "", "LOW", "Refused, too.")
        .define("aws.sts.role.session.name", "STRING", "", "LOW", "Refused, too.")
    )  # fmt: skip


def signed_login(settings: Settings) -> Login | None:
    """The login of the settings; None where no region and no service are set."""
    if refused := [name for name in ROLES if settings.text(name)]:
        raise ConnectError(f"{refused[0]}: roles are not built; set aws.access_key_id, or use temporary keys")
    region, service = settings.text("aws.region"), settings.text("aws.service.signing.name")
    if not region and not service:
        return None
    if not region or not service:
        missing = "aws.service.signing.name" if region else "aws.region"
        raise ConnectError(f"{missing} is needed: requests are signed for a region and a service")
    key_id, secret = settings.text("aws.access_key_id"), settings.text("aws.secret_access_key")
    token = settings.text("aws.session_token")
    if not key_id and not secret:
        names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
        key_id, secret, token = (os.environ.get(name, "") for name in names)
    if not key_id or not secret:
        raise ConnectError(
            "aws.access_key_id and aws.secret_access_key are needed, or AWS_ACCESS_KEY_ID and"
            " AWS_SECRET_ACCESS_KEY in the environment of the worker"
        )
    return SignedLogin(region, service, key_id, secret, token)
