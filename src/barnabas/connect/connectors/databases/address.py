"""Addresses of databases: JDBC URLs, read into what Python's drivers want.

In: `jdbc:postgresql://host:port/database?options`, `jdbc:mysql://…`, `jdbc:mariadb://…`,
`jdbc:sqlite:file`, a user
and a password. Out: an `Address`. Errors never show passwords. Does not know: drivers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote, urlsplit

PORTS = {"postgresql": 5432, "mysql": 3306}
KINDS = {"postgresql": "postgresql", "mysql": "mysql", "mariadb": "mysql", "sqlite": "sqlite"}
KNOWN = (
    "jdbc:postgresql://host:5432/database, jdbc:mysql://host:3306/database, jdbc:mariadb://…,"
    " jdbc:sqlite:file"
)
PASSWORD = re.compile(r"(?i)((?:password|pwd|secret)[^=&;]*=)[^&;]*")


class AddressError(ValueError):
    """An address that cannot be used; the message says what would be right."""


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a database and the user. `kind` is `postgresql`, `mysql` or `sqlite`."""

    kind: str
    host: str
    port: int
    database: str
    user: str = ""
    password: str = field(default="", repr=False)
    options: Mapping[str, str] = field(default_factory=dict)
    others: tuple[tuple[str, int], ...] = ()  # PostgreSQL: more servers, asked in order

    @property
    def servers(self) -> tuple[tuple[str, int], ...]:
        return ((self.host, self.port), *self.others)

    @property
    def shown(self) -> str:
        """The address without secrets, for messages."""
        if self.kind == "sqlite":
            return f"sqlite:{self.database}"
        return f"{self.kind}://{','.join(f'{host}:{port}' for host, port in self.servers)}/{self.database}"


def read_address(
    url: str, user: str = "", password: str = "", properties: Mapping[str, str] | None = None
) -> Address:
    """Read a JDBC URL. A user and a password that are given win over those of the URL."""
    found = re.fullmatch(r"jdbc:(\w+):(.*)", url.strip(), re.DOTALL)
    if found is None:
        raise AddressError(f"{hidden(url)!r} is no JDBC URL: it must be one of {KNOWN}")
    driver, rest = found[1].lower(), found[2]
    if driver not in KINDS:
        raise AddressError(
            f"there is no driver for jdbc:{driver} here: known are {KNOWN}; for other databases"
            " take a Java worker"
            " or an export that one of these reads"
        )
    kind = KINDS[driver]
    if kind == "sqlite":
        name, _, query = rest.partition("?")
        if not name or name == ":memory:":
            raise AddressError(
                "jdbc:sqlite: needs the path of a file: a database in memory belongs to one process"
            )
        return Address(kind, "", 0, name.removeprefix("file:"), options=dict(parse_qsl(query)))
    return read_server(kind, url, rest, user, password, properties or {})


def read_server(
    kind: str, url: str, rest: str, user: str, password: str, properties: Mapping[str, str]
) -> Address:
    try:
        first, others = servers_of(rest) if kind == "postgresql" else (rest, ())
        parts = urlsplit(f"x:{first}")
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise AddressError(f"{hidden(url)!r} cannot be read: {error}; right would be {KNOWN}") from None
    if not rest.startswith("//") or not host:
        raise AddressError(f"{hidden(url)!r} names no host: right would be {KNOWN}")
    options = {**dict(parse_qsl(parts.query, keep_blank_values=True)), **properties}
    if url.strip().lower().startswith("jdbc:mariadb:"):  # its driver reads zero dates as null
        options.setdefault("zeroDateTimeBehavior", "CONVERT_TO_NULL")
    name = unquote(parts.path.lstrip("/"))
    if kind == "postgresql" and not name:
        raise AddressError(
            f"{hidden(url)!r} names no database: right would be jdbc:postgresql://{host}/database"
        )
    return Address(
        kind,
        host,
        port or PORTS[kind],
        name,
        user or options.pop("user", "") or unquote(parts.username or ""),
        password or options.pop("password", "") or unquote(parts.password or ""),
        {each: value for each, value in options.items() if each not in ("user", "password")},
        others,
    )


def servers_of(rest: str) -> tuple[str, tuple[tuple[str, int], ...]]:
    """The address with its first server only, and the others: `//one:5432,two:5432/database`."""
    found = re.match(r"//([^/?]*)", rest)
    names = found[1].split(",") if found else []
    if len(names) < 2:
        return rest, ()
    others = [urlsplit(f"//{each}") for each in names[1:]]
    if not all(each.hostname for each in others):
        raise ValueError("a server has no name")
    return f"//{names[0]}{rest[len(found[0]) if found else 0 :]}", tuple(
        (each.hostname or "", each.port or PORTS["postgresql"]) for each in others
    )


def hidden(url: str) -> str:
    """The URL without passwords."""
    return PASSWORD.sub(r"\1***", re.sub(r"(//[^/@:]*):[^/@]*@", r"\1:***@", url))
