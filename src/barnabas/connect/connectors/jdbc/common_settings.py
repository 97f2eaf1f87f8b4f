"""Settings that source and sink share: the connection, the dialect, names, time zone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from barnabas.connect.config import ConfigDef, Settings, at_least, checked, one_of_any_case
from barnabas.connect.connectors.databases.address import AddressError, read_address
from barnabas.connect.connectors.databases.dialect import Dialect
from barnabas.connect.connectors.databases.dialects import dialect_of
from barnabas.connect.plugins import ConnectError

DATABASE = "Database"
OWN = {  # settings under `connection.` that are not for the driver
    "connection.url",
    "connection.user",
    "connection.password",
    "connection.attempts",
    "connection.backoff.ms",
}


def is_zone(name: Any) -> bool:
    try:
        ZoneInfo(str(name))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


ZONE = checked("a time zone", is_zone, "Invalid time zone identifier")


def define_connection(settings: ConfigDef) -> ConfigDef:
    """Add the shared settings, in Confluent's order."""
    return (
        settings.define(
            "connection.url",
            "STRING",
            importance="HIGH",
            doc="JDBC URL of the database.",
            group=DATABASE,
            width="LONG",
            display_name="JDBC URL",
        )
        .define(
            "connection.user",
            "STRING",
            None,
            "HIGH",
            "User of the database.",
            DATABASE,
            "MEDIUM",
            "JDBC User",
        )
        .define(
            "connection.password",
            "PASSWORD",
            None,
            "HIGH",
            "Password of the user.",
            DATABASE,
            "SHORT",
            "JDBC Password",
        )
        .define(
            "connection.attempts",
            "INT",
            3,
            "LOW",
            "Attempts to connect before the task reports an error.",
            DATABASE,
            "SHORT",
            "JDBC connection attempts",
            at_least(1),
        )
        .define(
            "connection.backoff.ms",
            "LONG",
            10000,
            "LOW",
            "Pause between attempts to connect.",
            DATABASE,
            "SHORT",
            "JDBC connection backoff (ms)",
            at_least(0),
        )
        .define(
            "dialect.name",
            "STRING",
            "",
            "LOW",
            "The dialect; empty: that of the URL.",
            DATABASE,
            "LONG",
            "Database Dialect",
        )
        .define(
            "db.timezone",
            "STRING",
            "UTC",
            "MEDIUM",
            "Zone of times that have none.",
            DATABASE,
            "MEDIUM",
            "DB Time Zone",
            ZONE,
        )
        .define(
            "quote.sql.identifiers",
            "STRING",
            "ALWAYS",
            "MEDIUM",
            "Whether names are quoted: ALWAYS or NEVER.",
            DATABASE,
            "MEDIUM",
            "Quote Identifiers",
            one_of_any_case("ALWAYS", "NEVER"),
        )
    )


def dialect_from(settings: Settings) -> Dialect:
    """The dialect of a connector's settings."""
    properties = {
        name.removeprefix("connection."): value or ""
        for name, value in settings.raw.items()
        if name.startswith("connection.") and name not in OWN
    }
    try:
        address = read_address(
            settings.text("connection.url"),
            settings.text("connection.user"),
            settings.text("connection.password"),
            properties,
        )
        quotes = settings.text("quote.sql.identifiers").upper() == "ALWAYS"
        return dialect_of(address, settings.text("dialect.name"), quotes=quotes)
    except AddressError as error:
        raise ConnectError(f"connection.url: {error}") from None


def connection_errors(config: Mapping[str, str]) -> dict[str, list[str]]:
    """Find errors in the address, without connecting."""
    url = config.get("connection.url")
    if not url:
        return {}
    try:
        dialect_of(read_address(url), config.get("dialect.name", ""))
    except AddressError as error:
        return {"dialect.name" if "dialect.name" in str(error) else "connection.url": [str(error)]}
    return {}
