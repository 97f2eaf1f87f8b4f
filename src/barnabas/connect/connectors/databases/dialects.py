"""Finds the dialect of an address."""

from __future__ import annotations

from barnabas.connect.connectors.databases.address import Address, AddressError
from barnabas.connect.connectors.databases.dialect import Dialect
from barnabas.connect.connectors.databases.mysql import MySql
from barnabas.connect.connectors.databases.postgres import Postgres
from barnabas.connect.connectors.databases.sqlite import Sqlite

BY_KIND: dict[str, type[Dialect]] = {"postgresql": Postgres, "mysql": MySql, "sqlite": Sqlite}
BY_NAME = {each.NAME: each for each in BY_KIND.values()}


def dialect_of(address: Address, name: str = "", *, quotes: bool = True) -> Dialect:
    """The dialect of the address, or the one named by `dialect.name`."""
    if name and name not in BY_NAME:
        raise AddressError(f"dialect.name {name!r} is not known here: known are {', '.join(sorted(BY_NAME))}")
    return (BY_NAME[name] if name else BY_KIND[address.kind])(address, quotes=quotes)
