"""Checks of a token's claims at a given time. In: claims that were decoded. Out: an identity.

Does not know: signatures.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from barnabas.security.oauth.settings import ClaimRules
from barnabas.security.sasl.mechanism import Identity
from barnabas.security.sasl.oauthbearer import TokenRefused

TIME_S_MAX = 253_402_300_800  # the year 10000: later times are mistakes of units


def check_claims(claims: Mapping[str, object], rules: ClaimRules, now_s: float) -> Identity:
    """The identity that the claims stand for. TokenRefused names the claim that does not hold."""
    expires_s = _time(claims, "exp")
    if expires_s is None:
        raise TokenRefused("it has no exp claim")
    issued_s, valid_from_s = _time(claims, "iat"), _time(claims, "nbf")
    if issued_s is None and rules.needs_issue_time:
        raise TokenRefused("it has no iat claim")
    if now_s >= expires_s + rules.skew_s:
        raise TokenRefused(f"it expired {now_s - expires_s:.0f} s ago")
    if valid_from_s is not None and now_s < valid_from_s - rules.skew_s:
        raise TokenRefused(f"it becomes valid in {valid_from_s - now_s:.0f} s (nbf)")
    if issued_s is not None and expires_s < issued_s:
        raise TokenRefused("its exp lies before its iat")
    if rules.checks_audience:
        _check_audience(claims, rules.audiences)
    if rules.issuer and claims.get("iss") != rules.issuer:
        raise TokenRefused(f"its iss is not {rules.issuer}, the expected issuer")
    scopes = _checked_scopes(claims.get(rules.scope_claim), rules)
    subject = claims.get(rules.subject_claim)
    if not isinstance(subject, str) or not subject.strip():
        raise TokenRefused(f"its {rules.subject_claim} claim, the subject, is missing or empty")
    return Identity(subject.strip(), expires_at_ms=int(expires_s * 1000), scopes=scopes)


def _time(claims: Mapping[str, object], name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TokenRefused(f"its {name} claim is not a number")
    if not 0 <= value <= TIME_S_MAX:
        raise TokenRefused(f"its {name} claim is not a time in seconds since 1970")
    return float(value)


def _check_audience(claims: Mapping[str, object], expected: frozenset[str]) -> None:
    value = claims.get("aud")
    audiences = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    if value is not None and not expected:
        # Kafka does so too: a token that names its audiences is not meant for a service without a name.
        raise TokenRefused("it has an aud claim, and sasl.oauthbearer.expected.audience is not set")
    if expected and not any(isinstance(one, str) and one in expected for one in audiences):
        raise TokenRefused("its aud claim names none of sasl.oauthbearer.expected.audience")


def _checked_scopes(value: object, rules: ClaimRules) -> tuple[str, ...]:
    if value is None:
        scopes: list[str] = []
    elif isinstance(value, str) and value.strip():
        scopes = value.split()
    elif isinstance(value, list) and all(isinstance(scope, str) and scope.strip() for scope in value):
        scopes = [scope.strip() for scope in value]
        if len(set(scopes)) != len(scopes):
            raise TokenRefused(f"its {rules.scope_claim} claim names a scope twice")
    else:
        raise TokenRefused(f"its {rules.scope_claim} claim is empty, or neither a text nor a list of texts")
    missing = rules.scopes_required - set(scopes)
    if missing:
        raise TokenRefused(
            f"it lacks the scope {' '.join(sorted(missing))}",
            "insufficient_scope",
            " ".join(sorted(rules.scopes_required)),
        )
    return tuple(scopes)
