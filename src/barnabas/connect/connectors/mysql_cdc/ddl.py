"""Statements that change tables, applied to the tables that are known.

In: a statement of the binary log with its database. Out: which tables changed, each with its new form. Pure.
Statements that do not change columns or keys change nothing here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from barnabas.connect.connectors.mysql_cdc.ddl_alter import altered, index_names
from barnabas.connect.connectors.mysql_cdc.ddl_columns import collation_charset, column_of
from barnabas.connect.connectors.mysql_cdc.ddl_tokens import Cursor
from barnabas.connect.connectors.mysql_cdc.tables import TableDef

INDEXES = ("INDEX", "KEY", "FULLTEXT", "SPATIAL", "UNIQUE", "FOREIGN", "CHECK", "CONSTRAINT", "PERIOD")


class TableChange(NamedTuple):
    kind: str  # CREATE, ALTER, DROP, TRUNCATE
    database: str
    name: str
    table: TableDef | None


@dataclass
class Tables:
    """All tables by database and name. `lower` is for servers that compare names in any case."""

    lower: bool = False
    found: dict[tuple[str, str], TableDef] = field(default_factory=dict)
    charsets: dict[str, str] = field(default_factory=dict)  # of databases
    charset: str = "utf8mb4"  # the server's

    def key(self, database: str, name: str) -> tuple[str, str]:
        return (database.lower(), name.lower()) if self.lower else (database, name)

    def get(self, database: str, name: str) -> TableDef | None:
        return self.found.get(self.key(database, name))

    def put(self, table: TableDef) -> None:
        self.found[self.key(table.database, table.name)] = table

    def drop(self, database: str, name: str) -> bool:
        return self.found.pop(self.key(database, name), None) is not None

    # -- statements --------------------------------------------------------------------------------

    def apply(self, statement: str, database: str) -> list[TableChange]:
        """Apply one statement. DdlError if a statement about tables cannot be understood."""
        cursor = Cursor(statement)
        verb = cursor.next().upper
        if verb == "SET" and cursor.accept("STATEMENT"):  # MariaDB: SET STATEMENT … FOR ALTER …
            while cursor.peek().kind != "end" and not cursor.accept("FOR"):
                cursor.next()
            verb = cursor.next().upper
        known: dict[str, Callable[[Cursor, str], list[TableChange]]] = {
            "CREATE": self._create,
            "ALTER": self._alter,
            "DROP": self._drop,
            "RENAME": self._rename,
            "TRUNCATE": self._truncate,
        }
        return known[verb](cursor, database) if verb in known else []

    def _create(self, cursor: Cursor, database: str) -> list[TableChange]:
        cursor.accept("OR", "REPLACE")
        if cursor.accept("TEMPORARY"):
            return []
        if cursor.accept_any("DATABASE", "SCHEMA"):
            cursor.accept("IF", "NOT", "EXISTS")
            self._database_charset(cursor, cursor.name())
            return []
        if cursor.accept("UNIQUE"):
            return self._create_unique(cursor, database)
        if not cursor.accept("TABLE"):
            return []
        is_careful = cursor.accept("IF", "NOT", "EXISTS")
        owner, name = cursor.table(database)
        if is_careful and self.get(owner, name) is not None:
            return []
        if cursor.accept("LIKE") or (cursor.peek().upper == "(" and cursor.peek(1).upper == "LIKE"):
            if cursor.accept("("):
                cursor.next()
            model = self.get(*cursor.table(database))
            table = None if model is None else replace(model, database=owner, name=name)
        else:
            table = self._defined(cursor, owner, name)
        if table is None:
            return []
        self.put(table)
        return [TableChange("CREATE", owner, name, table)]

    def _defined(self, cursor: Cursor, owner: str, name: str) -> TableDef | None:
        if cursor.peek().upper != "(":
            return None  # CREATE TABLE … SELECT: the log has the columns in another statement
        start = cursor.place
        cursor.skip_brackets()
        charset = self._options_charset(cursor) or self.charsets.get(owner, self.charset)
        cursor.place = start + 1
        columns, keys = [], []
        uniques: list[list[str]] = []
        while not cursor.accept(")"):
            if cursor.accept("CONSTRAINT") and cursor.peek().upper not in (
                "PRIMARY",
                "UNIQUE",
                "FOREIGN",
                "CHECK",
            ):
                cursor.name()
            if cursor.accept("PRIMARY", "KEY"):
                keys = self._key_parts(cursor)
            elif cursor.accept("UNIQUE"):
                uniques.append(index_names(cursor))
                cursor.skip_part()
            elif cursor.peek().kind == "word" and cursor.peek().upper in INDEXES:
                cursor.skip_part()
            else:
                parsed = column_of(cursor, cursor.name(), charset)
                columns.append(parsed.column)
                if parsed.is_key:
                    keys = [parsed.column.name]
                if parsed.is_unique:
                    uniques.append([parsed.column.name])
            if not cursor.accept(",") and cursor.peek().upper != ")":
                raise cursor.error(f"a comma was expected at {cursor.peek().value!r}")
        found = TableDef(owner, name, (), tuple(keys), charset).with_columns(columns)
        for each in uniques:
            found = found.keyed_by_unique(each)
        return found

    def _create_unique(self, cursor: Cursor, database: str) -> list[TableChange]:
        while not cursor.accept("ON"):
            if cursor.next().kind == "end":
                return []
        if (table := self.get(*cursor.table(database))) is None:
            return []
        self.put(new := table.keyed_by_unique(index_names(cursor)))
        return [TableChange("ALTER", new.database, new.name, new)] if new != table else []

    def _key_parts(self, cursor: Cursor) -> list[str]:
        while cursor.peek().upper != "(":
            if cursor.next().kind == "end":
                raise cursor.error("PRIMARY KEY has no columns")
        cursor.next()
        found = [cursor.name()]
        while not cursor.accept(")"):
            cursor.skip_brackets()
            if cursor.accept(","):
                found.append(cursor.name())
            elif cursor.peek().upper != ")" and cursor.next().kind == "end":
                raise cursor.error("a bracket is not closed")
        cursor.skip_part()
        return found

    def _options_charset(self, cursor: Cursor) -> str | None:
        found = None
        while cursor.peek().kind != "end":
            cursor.accept("DEFAULT")
            if cursor.accept("CHARACTER", "SET") or cursor.accept("CHARSET"):
                cursor.accept("=")
                found = cursor.name().lower()
            elif cursor.accept("COLLATE"):
                cursor.accept("=")
                found = found or collation_charset(cursor.name().lower())
            else:
                cursor.next()
        return found

    def _database_charset(self, cursor: Cursor, name: str) -> None:
        if charset := self._options_charset(cursor):
            self.charsets[name] = charset

    def _alter(self, cursor: Cursor, database: str) -> list[TableChange]:
        if cursor.accept_any("DATABASE", "SCHEMA"):
            is_own = cursor.peek().upper in ("CHARACTER", "DEFAULT", "COLLATE")
            self._database_charset(cursor, database if is_own else cursor.name())
            return []
        cursor.accept_any("ONLINE", "OFFLINE")
        cursor.accept("IGNORE")
        if not cursor.accept("TABLE"):
            return []
        cursor.accept("IF", "EXISTS")
        owner, name = cursor.table(database)
        if (table := self.get(owner, name)) is None:
            return []
        new = altered(cursor, table)
        if (new.database, new.name) == (table.database, table.name):
            self.put(new)
            return [TableChange("ALTER", owner, name, new)]
        self.drop(owner, name)
        self.put(new)
        return [TableChange("DROP", owner, name, None), TableChange("CREATE", new.database, new.name, new)]

    def _drop(self, cursor: Cursor, database: str) -> list[TableChange]:
        if cursor.accept_any("DATABASE", "SCHEMA"):
            cursor.accept("IF", "EXISTS")
            owner = cursor.name()
            gone = [
                each
                for each in self.found.values()
                if self.key(each.database, "")[0] == self.key(owner, "")[0]
            ]
            for each in gone:
                self.drop(each.database, each.name)
            return [TableChange("DROP", each.database, each.name, None) for each in gone]
        if cursor.accept("TEMPORARY") or not cursor.accept_any("TABLE", "TABLES"):
            return []
        cursor.accept("IF", "EXISTS")
        found = []
        while True:
            owner, name = cursor.table(database)
            if self.drop(owner, name):
                found.append(TableChange("DROP", owner, name, None))
            if not cursor.accept(","):
                return found

    def _rename(self, cursor: Cursor, database: str) -> list[TableChange]:
        if not cursor.accept_any("TABLE", "TABLES"):
            return []
        cursor.accept("IF", "EXISTS")
        found = []
        while True:
            old = cursor.table(database)
            cursor.expect("TO")
            owner, name = cursor.table(database)
            table = self.get(*old)
            if table is not None:
                self.drop(*old)
                new = replace(table, database=owner, name=name)
                self.put(new)
                found += [TableChange("DROP", *old, None), TableChange("CREATE", owner, name, new)]
            if not cursor.accept(","):
                return found

    def _truncate(self, cursor: Cursor, database: str) -> list[TableChange]:
        cursor.accept("TABLE")
        owner, name = cursor.table(database)
        return [TableChange("TRUNCATE", owner, name, self.get(owner, name))]
