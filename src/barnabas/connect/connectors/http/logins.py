"""Settings of logins under Confluent's names, shared by sink and source."""

from __future__ import annotations

from barnabas.connect.config import ConfigDef, Settings, one_of_any_case
from barnabas.connect.connectors.http.templates import fixed_headers
from barnabas.connect.connectors.stores.aws_signing import define_signing, signed_login
from barnabas.connect.connectors.stores.http_logins import (
    ClientCredentials,
    FixedLogin,
    Login,
    NoLogin,
    basic,
    bearer,
)
from barnabas.connect.plugins import ConnectError

NEEDED = {
    "BASIC": ("connection.user",),
    "BEARER": ("bearer.token",),
    "OAUTH2": ("oauth2.token.url", "oauth2.client.id", "oauth2.client.secret"),
    "API_KEY": ("api.key.name", "api.key.value"),
    "AWS_SIGV4": ("aws.region", "aws.service.signing.name"),
}


def define_logins(found: ConfigDef) -> ConfigDef:
    return define_signing(
        found.define("auth.type", "STRING", "NONE", "HIGH", "The login.",
                     validator=one_of_any_case("NONE", *NEEDED))
        .define("connection.user", "STRING", "", "HIGH", "The user of BASIC.")
        .define("connection.password", "PASSWORD", None, "HIGH", "The password of BASIC.")
        .define("bearer.token", "PASSWORD", None, "HIGH", "The token of BEARER.")
        .define("oauth2.token.url", "STRING", "", "HIGH", "The token server of OAUTH2.")
        .define("oauth2.client.id", "STRING", "", "HIGH", "The client of OAUTH2.")
        .define("oauth2.client.secret", "PASSWORD", None, "HIGH", "Its secret.")
        .define("oauth2.client.scope", "STRING", "", "LOW", "The scope that is asked for.")
        .define("oauth2.client.auth.mode", "STRING", "header", "LOW",
                "header: id and secret as Basic; body: as parameters.",
                validator=one_of_any_case("header", "body", "url"))
        .define("oauth2.client.headers", "PASSWORD", "", "LOW",
                "Headers name:value of requests to the token server.")
        .define("oauth2.client.header.separator", "STRING", "|", "LOW", "Between these headers.")
        .define("oauth2.token.property", "STRING", "access_token", "LOW", "The name of the token.")
        .define("api.key.name", "STRING", "", "MEDIUM", "The name of the header or parameter of API_KEY.")
        .define("api.key.value", "PASSWORD", None, "MEDIUM", "The key.")
        .define("api.key.location", "STRING", "header", "LOW", "Where the key stands.",
                validator=one_of_any_case("header", "query"))
    )  # fmt: skip


def login_of(settings: Settings) -> Login:
    kind = settings.text("auth.type").upper()
    for name in NEEDED.get(kind, ()):
        if not settings.text(name):
            raise ConnectError(f"{name} is needed with auth.type={kind}")
    if kind == "BASIC":
        return basic(settings.text("connection.user"), settings.text("connection.password"))
    if kind == "BEARER":
        return bearer(settings.text("bearer.token"))
    if kind == "OAUTH2":
        return ClientCredentials(
            settings.text("oauth2.token.url"),
            settings.text("oauth2.client.id"),
            settings.text("oauth2.client.secret"),
            settings.text("oauth2.client.scope"),
            settings.text("oauth2.client.auth.mode").lower() == "header",
            settings.text("oauth2.token.property"),
            fixed_headers(settings, "oauth2.client.headers", "oauth2.client.header.separator"),
        )
    if kind == "API_KEY":
        named = {settings.text("api.key.name"): settings.text("api.key.value")}
        in_query = settings.text("api.key.location").lower() == "query"
        return FixedLogin(query=named) if in_query else FixedLogin(named)
    if kind == "AWS_SIGV4":
        return signed_login(settings) or NoLogin()
    return NoLogin()
