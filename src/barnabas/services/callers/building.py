"""Makes the guard of a service from its settings.

In: `ServiceSettings`. Out: a guard, or None where everybody may do everything. SecuritySettingsError says
what is missing. Does not know: requests.
"""

from __future__ import annotations

from pathlib import Path

from barnabas.security.clients.jaas_file import read_jaas_file
from barnabas.security.errors import SecuritySettingsError
from barnabas.security.oauth.checking import token_check
from barnabas.security.tls.distinguished_names import MappingRules
from barnabas.services.callers.guard import CallerGuard, Methods
from barnabas.services.callers.rates import Rates
from barnabas.services.callers.rights import Rights
from barnabas.services.callers.tokens import SignedTokens
from barnabas.services.callers.users import Users, parse_users
from barnabas.services.settings.service_settings import ServiceSettings

USERS_FILE = "barnabas.authentication.users.file"
PROPAGATE = "confluent.rest.auth.propagate.method"
ROLES = "barnabas.authentication.roles"
TOKEN_SETTINGS = (
    "jwks.endpoint.url",
    "expected.audience",
    "expected.issuer",
    "sub.claim.name",
    "scope.claim.name",
    "clock.skew.seconds",
)


def guard_of(settings: ServiceSettings) -> CallerGuard | None:
    chosen = {method.upper() for method in settings["authentication.method"]} - {"NONE"}
    carries = carries_identity(settings)
    if carries and not chosen:
        raise SecuritySettingsError(
            f"{PROPAGATE}=JETTY_AUTH needs callers with credentials: set authentication.method=BASIC"
        )
    asks_brokers = carries and "BASIC" in chosen
    users = users_of(settings) if "BASIC" in chosen else None
    if "BASIC" in chosen and users is None and not asks_brokers:
        raise SecuritySettingsError(
            f"authentication.method=BASIC needs users: set {USERS_FILE}, or name a JAAS file in KAFKA_OPTS "
            f"with a section {settings['authentication.realm']} and the option file"
        )
    methods = Methods(
        users=users,
        tokens=tokens_of(settings) if "BEARER" in chosen else None,
        mapping=mapping_of(settings) if client_auth(settings) and not carries else None,
        asks_brokers=asks_brokers,
        realm=settings["authentication.realm"],
        open_paths=settings["authentication.skip.paths"],
    )
    rights = Rights(
        settings["authentication.roles"],
        *(settings[f"{ROLES}.{kind}"] for kind in ("read", "write", "admin")),
    )
    rates = Rates(
        settings["barnabas.rate.requests.per.sec"],
        settings["barnabas.rate.bytes.per.sec"],
        settings["barnabas.rate.burst.seconds"],
    )
    if rights.is_bounded and not methods.must_tell and methods.mapping is None:
        raise SecuritySettingsError(
            "roles are set, and authentication.method is NONE: nobody would have a role; set BASIC or BEARER"
        )
    if not (methods.must_tell or methods.mapping is not None or rates.is_bounded):
        return None
    return CallerGuard(methods, rights, rates)


def mapping_of(settings: ServiceSettings) -> MappingRules:
    """Names of certificates. They count only where brokers need not know the caller: a certificate is no
    credential that the service could pass on."""
    return MappingRules(settings["ssl.principal.mapping.rules"])


def carries_identity(settings: ServiceSettings) -> bool:
    """Whether the service logs in at the brokers with the credentials of its callers."""
    return settings.knows(PROPAGATE) and settings[PROPAGATE].upper() == "JETTY_AUTH"


def client_auth(settings: ServiceSettings) -> str:
    """`requested` or `required`; empty if clients show no certificates."""
    found: str = settings["ssl.client.authentication"].lower()
    if settings["ssl.client.auth"] and not settings.is_set("ssl.client.authentication"):
        found = "required"
    return "" if found == "none" else found


def users_of(settings: ServiceSettings) -> Users | None:
    """The users of the file that a setting names, or of the JAAS file's section for the realm."""
    path = settings[USERS_FILE]
    if path is None:
        for entry in read_jaas_file().get(settings["authentication.realm"], ()):
            path = entry.options.get("file", path)
    if path is None:
        return None
    try:
        return parse_users(Path(path).expanduser().read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text file"
        raise SecuritySettingsError(f"the users of {path} cannot be read: {reason}") from None
    except SecuritySettingsError as error:
        raise SecuritySettingsError(f"{path}: {error}") from None


def tokens_of(settings: ServiceSettings) -> SignedTokens:
    if not settings["oauthbearer.jwks.endpoint.url"]:
        raise SecuritySettingsError(
            "authentication.method=BEARER needs oauthbearer.jwks.endpoint.url, the keys of tokens"
        )
    properties = {}
    for name in TOKEN_SETTINGS:
        value = settings[f"oauthbearer.{name}"]
        if value not in (None, ()):
            text = ",".join(value) if isinstance(value, tuple) else str(value)
            properties[f"sasl.oauthbearer.{name}"] = text
    return SignedTokens(token_check(properties, {}))
