"""The sources of a client's token: a file, the client credentials grant, the JWT bearer grant, JAAS options.

`token_retriever` makes a function that returns a new token each time it is called. It blocks: for threads.
A plug-in, `sasl.login.callback.handler.class=package.module:name`, is a function that gets the client's
properties and returns a token.
"""

from __future__ import annotations

import json
import math
import ssl
import time
import uuid
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus, urlencode, urlsplit

from barnabas.security.entry_points import load_entry_point
from barnabas.security.errors import SecuritySettingsError
from barnabas.security.oauth.http import ProviderError, provider_tls, read_file, request
from barnabas.security.oauth.settings import TOKEN_URL, Properties, shown, timeout_s

TOKEN_BYTES_MAX = 1024 * 1024
LOGIN_HANDLER = "sasl.login.callback.handler.class"
JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
ASSERTION = "sasl.oauthbearer.assertion"
RETRIEVER = "sasl.oauthbearer.jwt.retriever.class"
_OAUTH = "org.apache.kafka.common.security.oauthbearer"
_UNSECURED = "unsecuredLogin"

Retriever = Callable[[], str]


def token_retriever(properties: Mapping[str, str], options: Mapping[str, str]) -> Retriever:
    """`options` are those of the client's JAAS entry. SecuritySettingsError."""
    values = Properties(properties)
    handler = values.text(LOGIN_HANDLER)
    if ":" in handler:
        return _plug_in(handler, properties)
    url = values.url(TOKEN_URL)
    kind = values.text(RETRIEVER, f"{_OAUTH}.DefaultJwtRetriever").removeprefix(f"{_OAUTH}.")
    if not url:
        if any(name.startswith(_UNSECURED) for name in options):
            return unsigned_token_of(options)
        raise SecuritySettingsError(
            f"OAUTHBEARER needs a token: set {TOKEN_URL} (http, https or file), or for development"
            ' unsecuredLoginStringClaim_sub="<name>" in sasl.jaas.config'
        )
    if kind == "FileJwtRetriever" or urlsplit(url).scheme.lower() == "file":
        return lambda: _token_of_file(url)
    tls = provider_tls(url, options)
    if kind == "JwtBearerJwtRetriever":
        return _asking(url, _bearer_grant(values), {}, values, tls)
    if kind not in ("DefaultJwtRetriever", "ClientCredentialsJwtRetriever"):
        raise SecuritySettingsError(
            f"{RETRIEVER}={kind} is unknown: expected ClientCredentialsJwtRetriever, FileJwtRetriever or"
            f" JwtBearerJwtRetriever of {_OAUTH}"
        )
    return _client_credentials(url, values, options, tls)


def _plug_in(handler: str, properties: Mapping[str, str]) -> Retriever:
    give: Callable[[Mapping[str, str]], str] = load_entry_point(handler)

    def call() -> str:
        try:
            return give(properties)
        except Exception as error:  # a plug-in may raise anything
            raise ProviderError(f"{handler} failed with {type(error).__name__}", may_retry=False) from error

    return call


def _token_of_file(url: str) -> str:
    token = read_file(url, TOKEN_BYTES_MAX).decode(errors="replace").strip()
    if not token:
        raise ProviderError(f"{urlsplit(url).path} is empty: expected a token", may_retry=False)
    return token


def _client_credentials(
    url: str, values: Properties, options: Mapping[str, str], tls: ssl.SSLContext | None
) -> Retriever:
    prefix = "sasl.oauthbearer.client.credentials"
    client_id = values.text(f"{prefix}.client.id") or options.get("clientId", "")
    secret = values.text(f"{prefix}.client.secret") or options.get("clientSecret", "")
    scope = values.text("sasl.oauthbearer.scope") or options.get("scope", "")
    if not client_id or not secret:
        raise SecuritySettingsError(
            f"{prefix}.client.id and {prefix}.client.secret are needed to get a token from {TOKEN_URL}"
        )
    if values.flag("sasl.oauthbearer.header.urlencode"):
        client_id, secret = quote_plus(client_id), quote_plus(secret)
    basic = b64encode(f"{client_id}:{secret}".encode()).decode()
    form = {"grant_type": "client_credentials"} | ({"scope": scope} if scope else {})
    return _asking(url, lambda: form, {"Authorization": f"Basic {basic}"}, values, tls)


def _asking(
    url: str,
    form: Callable[[], Mapping[str, str]],
    headers: Mapping[str, str],
    values: Properties,
    tls: ssl.SSLContext | None,
) -> Retriever:
    limit_s = timeout_s(values)

    def ask() -> str:
        body = request(
            url,
            timeout_s=limit_s,
            bytes_max=TOKEN_BYTES_MAX,
            headers={
                "Content-Type": "application/x-www-form-urlencoded",
                "Cache-Control": "no-cache",
                **headers,
            },
            body=urlencode(form()).encode(),
            tls=tls,
        )
        return _token_of_response(body, url)

    return ask


def _token_of_response(body: bytes, url: str) -> str:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        document = None
    token = (document.get("access_token") or document.get("id_token")) if isinstance(document, dict) else None
    if not isinstance(token, str) or not token.strip():
        raise ProviderError(f"the response of {shown(url)} has no access_token", may_retry=False)
    return token.strip()


def _bearer_grant(values: Properties) -> Callable[[], Mapping[str, str]]:
    """An assertion from a file, or one that is signed anew for each request."""
    scope = values.text("sasl.oauthbearer.scope")
    form = {"grant_type": JWT_BEARER} | ({"scope": scope} if scope else {})
    file = values.text(f"{ASSERTION}.file")
    if file:
        return lambda: {**form, "assertion": _read(Path(file)).decode().strip()}
    key_file = values.text(f"{ASSERTION}.private.key.file")
    if not key_file:
        raise SecuritySettingsError(
            f"the JWT bearer grant needs {ASSERTION}.file or {ASSERTION}.private.key.file"
        )
    algorithm = values.text(f"{ASSERTION}.algorithm", "RS256").upper()
    if algorithm not in ("RS256", "ES256"):
        raise SecuritySettingsError(f"{ASSERTION}.algorithm={algorithm}: expected RS256 or ES256")
    header, payload = _template(values)
    life_s = values.whole(f"{ASSERTION}.claim.exp.seconds", 300, 0, 86_400)
    early_s = values.whole(f"{ASSERTION}.claim.nbf.seconds", 60, 0, 3_600)
    with_id = values.flag(f"{ASSERTION}.claim.jti.include")
    passphrase = values.text(f"{ASSERTION}.private.key.passphrase")

    def signed() -> Mapping[str, str]:
        import jwt
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        now = math.floor(time.time())
        claims = {"iat": now, "exp": now + life_s, "nbf": now - early_s, **payload}
        if with_id:
            claims["jti"] = str(uuid.uuid4())
        try:
            key = load_pem_private_key(_read(Path(key_file)), passphrase.encode() or None)
            assertion = jwt.encode(claims, key, algorithm, header or None)  # type: ignore[arg-type]
        except (ValueError, TypeError, jwt.PyJWTError) as error:
            raise ProviderError(
                f"cannot sign with {key_file}: {type(error).__name__}", may_retry=False
            ) from None
        return {**form, "assertion": assertion}

    return signed


def _template(values: Properties) -> tuple[dict[str, Any], dict[str, Any]]:
    header: dict[str, Any] = {}
    payload: dict[str, Any] = {}
    file = values.text(f"{ASSERTION}.template.file")
    if file:
        try:
            document = json.loads(Path(file).read_bytes())
            header, payload = dict(document.get("header", {})), dict(document.get("payload", {}))
        except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
            raise SecuritySettingsError(
                f"{ASSERTION}.template.file={file} cannot be read as JSON with header and payload"
                f" ({type(error).__name__})"
            ) from None
    for name in ("aud", "iss", "sub"):
        value = values.text(f"{ASSERTION}.claim.{name}")
        if value:
            payload[name] = value
    return header, payload


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ProviderError(f"cannot read {path}: {error.strerror}", may_retry=False) from None


def unsigned_token_of(options: Mapping[str, str]) -> Retriever:
    """Tokens with `alg: none` and the claims of the JAAS entry."""
    claims: dict[str, Any] = {}
    for name, value in options.items():
        kind, _, claim = name.removeprefix(_UNSECURED).partition("Claim_")
        if not name.startswith(_UNSECURED) or not claim:
            continue
        match kind:
            case "String":
                claims[claim] = value
            case "Number":
                claims[claim] = _number(name, value)
            case "List":  # the first character separates the others
                claims[claim] = [part for part in value[1:].split(value[:1]) if part] if value else []
            case _:
                raise SecuritySettingsError(f"{name} in sasl.jaas.config: expected String, Number or List")
    principal_claim = options.get("unsecuredLoginPrincipalClaimName", "sub")
    if not claims.get(principal_claim):
        raise SecuritySettingsError(f"sasl.jaas.config lacks unsecuredLoginStringClaim_{principal_claim}")
    life_s = _number("unsecuredLoginLifetimeSeconds", options.get("unsecuredLoginLifetimeSeconds", "3600"))

    def make() -> str:
        now = time.time()
        document = {"iat": now, "exp": now + life_s, **claims}
        return f"{_encoded({'alg': 'none'})}.{_encoded(document)}."

    return make


def _number(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise SecuritySettingsError(f"{name}={text} in sasl.jaas.config is not a number") from None
    if not math.isfinite(value):
        raise SecuritySettingsError(f"{name}={text} in sasl.jaas.config is not a finite number")
    return value


def _encoded(document: Mapping[str, Any]) -> str:
    return urlsafe_b64encode(json.dumps(document).encode()).rstrip(b"=").decode()
