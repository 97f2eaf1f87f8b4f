"""Checks of bearer tokens at a broker: signed ones against a key set, unsigned ones only where asked for.

`token_check` makes the check of a listener from its settings. The check runs on the event loop: a signature
costs about 0.1 ms (RSA and elliptic curves), and nothing in it waits.
"""

from __future__ import annotations

import binascii
import json
import logging
import re
import time
from base64 import urlsafe_b64decode
from collections.abc import Callable, Mapping
from typing import Any

from barnabas.security.errors import SecuritySettingsError
from barnabas.security.oauth.claims import check_claims
from barnabas.security.oauth.http import provider_tls, request
from barnabas.security.oauth.key_set import KEY_SET_BYTES_MAX
from barnabas.security.oauth.key_source import KeySource, shared_source
from barnabas.security.oauth.settings import (
    JWKS_URL,
    ClaimRules,
    Properties,
    claim_rules,
    key_settings,
    unsecured_claim_rules,
)
from barnabas.security.sasl.mechanism import Identity
from barnabas.security.sasl.oauthbearer import TokenRefused

HANDLER = "sasl.server.callback.handler.class"
_OAUTH = "org.apache.kafka.common.security.oauthbearer"
SECURED_HANDLERS = (
    f"{_OAUTH}.OAuthBearerValidatorCallbackHandler",
    f"{_OAUTH}.secured.OAuthBearerValidatorCallbackHandler",  # its name before Kafka 3.4
)
UNSECURED_HANDLER = f"{_OAUTH}.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
TOKEN_LENGTH_MAX = 64 * 1024
FIRST_READ_SECONDS_MAX = 2.0

_TOKEN = re.compile(r"[-_A-Za-z0-9]+\.[-_A-Za-z0-9]+\.[-_A-Za-z0-9]*")

log = logging.getLogger(__name__)


class TokenCheck:
    """Returns the identity of a token, or raises TokenRefused."""

    def __init__(
        self, rules: ClaimRules, keys: KeySource | None, clock: Callable[[], float] = time.time
    ) -> None:
        """Without keys, tokens must be unsigned."""
        self._rules = rules
        self._keys = keys
        self._clock = clock

    @property
    def is_slow(self) -> bool:
        """Whether a check may wait for the keys: a moment after the start, so that first logins succeed."""
        return self._keys is not None and not self._keys.was_read

    def __call__(self, token: str) -> Identity:
        if self._keys is not None:
            self._keys.wait_for_first(FIRST_READ_SECONDS_MAX)
        if len(token) > TOKEN_LENGTH_MAX:
            raise TokenRefused(f"it has more than {TOKEN_LENGTH_MAX} characters")
        if not _TOKEN.fullmatch(token):
            raise TokenRefused("it is not a JWT: expected three parts in base64")
        claims = unsigned_claims(token) if self._keys is None else signed_claims(token, self._keys)
        return check_claims(claims, self._rules, self._clock())


def signed_claims(token: str, keys: KeySource) -> dict[str, Any]:
    """The claims of a token whose signature holds. The key decides which algorithms count."""
    import jwt

    header = _json_part(token.partition(".")[0], "header")
    algorithm, key_id = header.get("alg"), header.get("kid")
    if not isinstance(algorithm, str) or algorithm.lower() == "none":
        raise TokenRefused("it is not signed (alg none)")
    if key_id is not None and not isinstance(key_id, str):
        raise TokenRefused("its kid is not a text")
    if "crit" in header:
        raise TokenRefused("it has critical header parameters (crit), which are not supported")
    key = keys.find(key_id, algorithm)
    if algorithm not in key.algorithms:
        raise TokenRefused(f"its alg is not one of {', '.join(key.algorithms)}, which its key allows")
    try:
        payload = jwt.PyJWS().decode(token, key.key, algorithms=[algorithm])  # type: ignore[arg-type]
    except (jwt.PyJWTError, ValueError, TypeError, RecursionError) as error:
        raise TokenRefused(f"its signature does not hold ({type(error).__name__})") from None
    return _claims(payload)


def unsigned_claims(token: str) -> dict[str, Any]:
    """The claims of a token with `alg: none` and without a signature."""
    parts = token.split(".")
    if parts[2]:
        raise TokenRefused("it is signed, and only unsigned tokens can be checked here: set " + JWKS_URL)
    if _json_part(parts[0], "header").get("alg") != "none":
        raise TokenRefused("its alg is not none")
    return _json_part(parts[1], "payload")


def _json_part(part: str, name: str) -> dict[str, Any]:
    try:
        return _claims(urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (ValueError, binascii.Error):
        raise TokenRefused(f"its {name} is not base64") from None


def _claims(text: bytes) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise TokenRefused("it does not hold a JSON object")
    return document


def token_check(
    properties: Mapping[str, str],
    options: Mapping[str, str],
    clock: Callable[[], float] = time.time,
) -> TokenCheck:
    """The check of a listener: `properties` without the prefix of listener and mechanism, `options` of its
    JAAS entry. A provider that does not respond does not keep the broker from starting.
    SecuritySettingsError."""
    values = Properties(properties)
    handler = values.text(HANDLER)
    if handler == UNSECURED_HANDLER:
        log.warning(
            "OAUTHBEARER takes unsigned tokens: everybody can log in under any name. %s=%s", HANDLER, handler
        )
        return TokenCheck(unsecured_claim_rules(options), None, clock)
    settings = key_settings(values)
    if handler in SECURED_HANDLERS and not settings.url:
        raise SecuritySettingsError(f"{JWKS_URL} is not set: {handler} needs it to check tokens")
    if handler and handler not in SECURED_HANDLERS:
        raise SecuritySettingsError(
            f"{HANDLER}={handler} is unknown: expected {SECURED_HANDLERS[0]}, {UNSECURED_HANDLER},"
            " or package.module:name of a function of yours"
        )
    if not settings.url:
        raise SecuritySettingsError(
            f"OAUTHBEARER is enabled, but tokens cannot be checked: set {JWKS_URL}. To take unsigned tokens"
            f" for development, set listener.name.<listener>.oauthbearer.{HANDLER}={UNSECURED_HANDLER}"
        )
    rules = claim_rules(values)
    prefix = "sasl.oauthbearer.expected"
    if not rules.audiences:
        log.warning(
            "%s.audience is not set: tokens that name an audience are refused, others are taken", prefix
        )
    if not rules.issuer:
        log.warning(
            "%s.issuer is not set: tokens of every issuer that signs with these keys are taken", prefix
        )
    tls = provider_tls(settings.url, options)

    def fetch() -> bytes:
        return request(settings.url, timeout_s=settings.timeout_s, bytes_max=KEY_SET_BYTES_MAX, tls=tls)

    return TokenCheck(rules, shared_source(settings, fetch), clock)
