"""The settings of OAUTHBEARER, read from properties in Kafka's names and from the options of a JAAS entry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from barnabas.security.errors import SecuritySettingsError

JWKS_URL = "sasl.oauthbearer.jwks.endpoint.url"
TOKEN_URL = "sasl.oauthbearer.token.endpoint.url"
SCHEMES = ("http", "https", "file")


def shown(url: str) -> str:
    """A URL for logs and errors: without a user, a password and a query, which may be secrets."""
    parts = urlsplit(url)
    place = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{place}{parts.path}"


class Properties:
    """Typed reading of properties. SecuritySettingsError names the setting that is wrong."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values

    def text(self, name: str, default: str = "") -> str:
        return str(self._values.get(name) or default).strip()

    def list_of(self, name: str) -> tuple[str, ...]:
        return tuple(part.strip() for part in self.text(name).split(",") if part.strip())

    def whole(self, name: str, default: int, low: int = 0, high: int = 2**63 - 1) -> int:
        text = self.text(name, str(default))
        try:
            value = int(text)
        except ValueError:
            raise SecuritySettingsError(f"{name}={text} is not a whole number") from None
        if not low <= value <= high:
            raise SecuritySettingsError(f"{name}={value} is out of range: expected {low} to {high}")
        return value

    def decimal(self, name: str, default: float, low: float, high: float) -> float:
        text = self.text(name, str(default))
        try:
            value = float(text)
        except ValueError:
            raise SecuritySettingsError(f"{name}={text} is not a number") from None
        if not low <= value <= high:
            raise SecuritySettingsError(f"{name}={value} is out of range: expected {low} to {high}")
        return value

    def flag(self, name: str) -> bool:
        return self.text(name, "false").lower() == "true"

    def url(self, name: str) -> str:
        """Empty if it is not set."""
        text = self.text(name)
        if text and urlsplit(text).scheme.lower() not in SCHEMES:
            raise SecuritySettingsError(f"{name}={shown(text)}: expected a URL with http, https or file")
        return text


@dataclass(frozen=True, slots=True)
class ClaimRules:
    """Demands on the claims of a token."""

    audiences: frozenset[str] = frozenset()
    issuer: str = ""  # empty: any
    skew_s: float = 30
    subject_claim: str = "sub"
    scope_claim: str = "scope"
    scopes_required: frozenset[str] = frozenset()
    # Only of the JWKS kind: Kafka's check of unsigned tokens looks at no audience and needs no iat.
    checks_audience: bool = True
    needs_issue_time: bool = True


@dataclass(frozen=True, slots=True)
class KeySettings:
    """The source of the key set, and the interval of reading it."""

    url: str
    refresh_s: float = 3600
    backoff_s: float = 0.1
    backoff_max_s: float = 10
    timeout_s: float = 10


@dataclass(frozen=True, slots=True)
class RefreshSettings:
    """When a client replaces its token (`sasl.login.refresh.*`)."""

    window_factor: float = 0.8
    window_jitter: float = 0.05
    period_s_min: float = 60
    buffer_s: float = 300
    backoff_s: float = 0.1
    backoff_max_s: float = 10


def claim_rules(properties: Properties) -> ClaimRules:
    return ClaimRules(
        audiences=frozenset(properties.list_of("sasl.oauthbearer.expected.audience")),
        issuer=properties.text("sasl.oauthbearer.expected.issuer"),
        skew_s=properties.whole("sasl.oauthbearer.clock.skew.seconds", 30),
        subject_claim=properties.text("sasl.oauthbearer.sub.claim.name", "sub"),
        scope_claim=properties.text("sasl.oauthbearer.scope.claim.name", "scope"),
    )


def unsecured_claim_rules(options: Mapping[str, str]) -> ClaimRules:
    """The rules for unsigned tokens, from options of the JAAS entry."""
    jaas = Properties(options)
    return ClaimRules(
        skew_s=jaas.whole("unsecuredValidatorAllowableClockSkewMs", 0) / 1000,
        subject_claim=jaas.text("unsecuredValidatorPrincipalClaimName", "sub"),
        scope_claim=jaas.text("unsecuredValidatorScopeClaimName", "scope"),
        scopes_required=frozenset(jaas.text("unsecuredValidatorRequiredScope").split()),
        checks_audience=False,
        needs_issue_time=False,
    )


def key_settings(properties: Properties) -> KeySettings:
    prefix = "sasl.oauthbearer.jwks.endpoint"
    return KeySettings(
        url=properties.url(JWKS_URL),
        refresh_s=properties.whole(f"{prefix}.refresh.ms", 3_600_000, 1) / 1000,
        backoff_s=properties.whole(f"{prefix}.retry.backoff.ms", 100, 1) / 1000,
        backoff_max_s=properties.whole(f"{prefix}.retry.backoff.max.ms", 10_000, 1) / 1000,
        timeout_s=timeout_s(properties),
    )


def refresh_settings(properties: Properties) -> RefreshSettings:
    return RefreshSettings(
        window_factor=properties.decimal("sasl.login.refresh.window.factor", 0.8, 0.5, 1.0),
        window_jitter=properties.decimal("sasl.login.refresh.window.jitter", 0.05, 0.0, 0.25),
        period_s_min=properties.whole("sasl.login.refresh.min.period.seconds", 60, 0, 900),
        buffer_s=properties.whole("sasl.login.refresh.buffer.seconds", 300, 0, 3600),
        backoff_s=properties.whole("sasl.login.retry.backoff.ms", 100, 1) / 1000,
        backoff_max_s=properties.whole("sasl.login.retry.backoff.max.ms", 10_000, 1) / 1000,
    )


def timeout_s(properties: Properties) -> float:
    """How long a request to an identity provider may take: `sasl.login.connect.timeout.ms` and
    `sasl.login.read.timeout.ms` together, 10 seconds unless set."""
    connect = properties.whole("sasl.login.connect.timeout.ms", 0)
    read = properties.whole("sasl.login.read.timeout.ms", 0)
    return (connect + read) / 1000 or 10.0
