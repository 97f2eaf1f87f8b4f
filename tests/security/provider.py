"""An identity provider for tests: signing keys, a JWKS and a token endpoint on loopback."""

from __future__ import annotations

import base64
import functools
import json
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

AUDIENCE = "kafka"
ISSUER = "https://issuer.test"
CLIENT_ID, CLIENT_SECRET = "app", "s3cret of the app"


@functools.cache
def rsa_key(number: int = 0, bits: int = 2048) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, bits)


@functools.cache
def ec_key(number: int = 0) -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def public_jwk(key: Any, kid: str | None, **more: Any) -> dict[str, Any]:
    """The public part of a key as an entry of a JWKS."""
    kind = jwt.algorithms.RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else jwt.algorithms.ECAlgorithm
    entry = dict(kind.to_jwk(key.public_key(), as_dict=True))
    entry.pop("key_ops", None)
    return entry | ({"kid": kid} if kid is not None else {}) | {"use": "sig"} | more


def claims(subject: str = "alice", **changes: Any) -> dict[str, Any]:
    """Claims that hold. A change to None takes a claim away."""
    now = int(time.time())
    made = {"sub": subject, "iat": now, "exp": now + 600, "aud": AUDIENCE, "iss": ISSUER} | changes
    return {name: value for name, value in made.items() if value is not None}


def signed(payload: dict[str, Any], key: Any = None, kid: str | None = "one", alg: str = "RS256") -> str:
    return jwt.encode(payload, key or rsa_key(), alg, {"kid": kid} if kid is not None else {})


def unsigned(payload: dict[str, Any]) -> str:
    parts = [
        base64.urlsafe_b64encode(json.dumps(one).encode()).rstrip(b"=") for one in ({"alg": "none"}, payload)
    ]
    return b".".join([*parts, b""]).decode()


def signed_with_public_key(payload: dict[str, Any], key: rsa.RSAPrivateKey, kid: str) -> str:
    """HS256 with the public key as the secret: a forged token that only a careless check takes."""
    import hashlib
    import hmac

    secret = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    parts = [
        base64.urlsafe_b64encode(json.dumps(one).encode()).rstrip(b"=")
        for one in ({"alg": "HS256", "kid": kid}, payload)
    ]
    mac = hmac.digest(secret, b".".join(parts), hashlib.sha256)
    return b".".join([*parts, base64.urlsafe_b64encode(mac).rstrip(b"=")]).decode()


def pem(key: Any) -> bytes:
    return bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


class Provider:
    """`with Provider() as provider:` serves `/jwks` and `/token`; `keys` can change while it runs."""

    def __init__(self, life_s: int = 600, tls: ssl.SSLContext | None = None) -> None:
        self.keys = [public_jwk(rsa_key(), "one")]
        self.life_s = life_s
        self.client_secret = CLIENT_SECRET
        self.asked: list[str] = []  # paths
        self.forms: list[dict[str, str]] = []
        self.failures = 0  # so many requests get a 503 first
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                provider.asked.append(self.path)
                self._reply(json.dumps({"keys": provider.keys}).encode() if self.path == "/jwks" else None)

            def do_POST(self) -> None:
                provider.asked.append(self.path)
                size = int(self.headers.get("Content-Length", 0))
                form = {name: value[0] for name, value in parse_qs(self.rfile.read(size).decode()).items()}
                provider.forms.append(form)
                self._reply(provider.token_response(self.headers.get("Authorization", ""), form))

            def _reply(self, body: bytes | None) -> None:
                status = 200 if body is not None else 401
                if provider.failures:
                    provider.failures -= 1
                    status, body = 503, b""
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body or b"")))
                self.end_headers()
                self.wfile.write(body or b"")

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._scheme = "http" if tls is None else "https"
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self._server.server_port}"

    @property
    def jwks_url(self) -> str:
        return f"{self.url}/jwks"

    @property
    def token_url(self) -> str:
        return f"{self.url}/token"

    def token_response(self, authorization: str, form: dict[str, str]) -> bytes | None:
        if form.get("grant_type") == "client_credentials":
            expected = base64.b64encode(f"{CLIENT_ID}:{self.client_secret}".encode()).decode()
            if authorization != f"Basic {expected}":
                return None
            subject = CLIENT_ID
        else:
            subject = jwt.decode(form["assertion"], options={"verify_signature": False})["sub"]
        now = int(time.time())
        token = signed(claims(subject, exp=now + self.life_s, scope=form.get("scope")))
        return json.dumps({"access_token": token, "token_type": "Bearer", "expires_in": self.life_s}).encode()

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
