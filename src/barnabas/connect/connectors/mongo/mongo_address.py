"""The address of MongoDB, its TLS, and a client for it: what sink and source share.

In: settings with the names of MongoDB's own connector. Out: a client. Logins and most options of TLS are in
the address, stores of certificates may be settings. Does not know: documents.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from pymongo import MongoClient
from pymongo.errors import ConfigurationError, InvalidURI
from pymongo.server_api import ServerApi
from pymongo.uri_parser import parse_uri

from barnabas.connect.config import ConfigDef, Settings, between
from barnabas.connect.plugins import ConnectError
from barnabas.security.errors import SecuritySettingsError
from barnabas.security.tls.contexts import private_file
from barnabas.security.tls.stores import StoreSettings, load_key_store, load_trust_store

URI, STORES = "connection.uri", "connection.ssl."
PEM_NAMES = (".pem", ".crt", ".cer")


def define_address(found: ConfigDef) -> ConfigDef:
    found.define(URI, "PASSWORD", "mongodb://localhost:27017", "HIGH", "mongodb:// address.")
    for store, text in (("truststore", "Certificates of authorities"), ("keystore", "The own certificate")):
        found.define(f"{STORES}{store}", "STRING", "", "MEDIUM", f"{text}: a file in JKS, PKCS #12 or PEM.")
        found.define(f"{STORES}{store}Password", "PASSWORD", None, "MEDIUM", "Its password.")
    found.define("server.api.version", "STRING", "", "MEDIUM", "The version of the stable API, such as 1.")
    found.define("server.api.deprecationErrors", "BOOLEAN", False, "MEDIUM", "Refuse what is deprecated.")
    found.define("server.api.strict", "BOOLEAN", False, "MEDIUM", "Refuse what is not in the stable API.")
    found.define(
        "server.selection.timeout.ms", "INT", 10_000, "LOW", "Until a server is taken as away.",
        validator=between(1, 600_000),
    )  # fmt: skip
    own = "mechanisms of your own are classes of Java; logins belong into connection.uri"
    found.refused({"mongo.custom.auth.mechanism.enable": ("false", own)})
    return found.without_effect(
        {
            "provider": (None, "it names a hosting service to the server"),
            "mongo.custom.auth.mechanism.providerClass": (None, own),
        }
    )


def nodes_of(settings: Settings) -> list[tuple[str, int | None]]:
    """Hosts and ports of the address. ConnectError if it is none."""
    try:
        found: list[tuple[str, int | None]] = parse_uri(settings.text(URI), validate=False)["nodelist"]
    except (InvalidURI, ConfigurationError, ValueError) as error:
        raise ConnectError(f"{URI} is no address of MongoDB: {error}") from error
    return found


def client_of(settings: Settings) -> MongoClient[dict[str, Any]]:
    """A client that has not connected yet."""
    nodes_of(settings)
    with ExitStack() as files:
        return MongoClient(
            settings.text(URI),
            serverSelectionTimeoutMS=settings.integer("server.selection.timeout.ms"),
            appname="barnabas",
            datetime_conversion="DATETIME_AUTO",  # dates that Python has no year for stay numbers
            server_api=server_api_of(settings),
            **tls_of(settings, files),
        )


def server_api_of(settings: Settings) -> ServerApi | None:
    if not (version := settings.text("server.api.version")):
        return None
    try:
        return ServerApi(
            version,
            strict=settings.flag("server.api.strict"),
            deprecation_errors=settings.flag("server.api.deprecationErrors"),
        )
    except ValueError as error:
        raise ConnectError(f"server.api.version: {error}") from error


def tls_of(settings: Settings, files: ExitStack) -> dict[str, Any]:
    """Options of the client for the stores that are set; it reads their files at once."""
    trusted, own = store_of(settings, "truststore"), store_of(settings, "keystore")
    found: dict[str, Any] = {}
    try:
        if trusted.is_set:
            pem = load_trust_store(trusted).to_pem()
            found["tlsCAFile"] = files.enter_context(private_file(pem))
        if own.is_set:
            found["tlsCertificateKeyFile"] = files.enter_context(private_file(load_key_store(own).to_pem()))
    except SecuritySettingsError as error:
        raise ConnectError(f"{STORES[:-1]}: {error}") from error
    return {"tls": True, **found} if found else {}


def store_of(settings: Settings, which: str) -> StoreSettings:
    path = settings.text(f"{STORES}{which}")
    kind = "PEM" if path.endswith(PEM_NAMES) else "JKS"  # PKCS #12 is known by its bytes
    return StoreSettings(which, kind, path or None, settings.text(f"{STORES}{which}Password") or None)
