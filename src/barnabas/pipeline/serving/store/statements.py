"""SQL of clients: one SELECT over the views, and nothing else.

In: text and the names of the views. Out: a `Statement`, which becomes SQL over the merged tables with a
limit. Everything else (changes, settings, files, other tables, functions that reach outside) is refused
before the database sees it; the database is also locked down. Does not know: where views are stored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import sqlglot
from sqlglot import expressions as exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import traverse_scope

from barnabas.pipeline.serving.store.query import BadRequest

# Functions without a class in sqlglot that only compute.
# fmt: off
HARMLESS = frozenset((
    "age", "bit_length", "chr", "epoch", "epoch_ms", "isfinite", "isnan", "isodow", "md5", "printf",
    "regexp_matches", "strpos", "to_char", "to_date", "translate", "trim_scale", "width_bucket",
    "yearweek", "arg_max", "arg_min", "bool_and", "bool_or", "corr", "favg", "fsum", "product",
    "histogram", "list_sort", "list_sum", "list_avg", "median", "mode", "entropy", "kurtosis",
    "skewness", "date_part", "datepart", "dayname", "monthname", "strptime", "jaccard",
    "levenshtein", "hamming", "ceiling", "sqrt", "cbrt",
))
# fmt: on
NOT_QUESTIONS = (exp.DML, exp.DDL, exp.Command, exp.Into, exp.Lock, exp.Parameter, exp.Placeholder)


@dataclass(frozen=True, slots=True)
class Statement:
    """A checked SELECT over views."""

    tree: exp.Query
    dialect: str
    views: tuple[str, ...]

    def over(self, sources: Mapping[str, str], rows_max: int) -> str:
        """The statement with these SELECTs in place of the views' names, and a limit."""
        tree = self.tree.copy()
        for table in own_tables(tree):
            inner = sqlglot.parse_one(sources[view_of(table, sources)], dialect=self.dialect)
            assert isinstance(inner, exp.Query)
            alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(table.name, quoted=True))
            nested = exp.Subquery(this=inner, alias=alias.copy(), joins=table.args.get("joins"))
            table.replace(nested)
        return f"SELECT * FROM ({tree.sql(dialect=self.dialect)}) AS answer LIMIT {rows_max}"


def check(text: str, dialect: str, views: Iterable[str]) -> Statement:
    """Check a statement. BadRequest if it is not one SELECT over views."""
    try:
        return checked(text, dialect, list(views))
    except (SqlglotError, RecursionError) as problem:
        raise BadRequest(
            f"the statement cannot be understood: {str(problem).partition(chr(10))[0]}"
        ) from None


def checked(text: str, dialect: str, known: list[str]) -> Statement:
    try:
        trees = [tree for tree in sqlglot.parse(text, dialect=dialect) if tree is not None]
    except (SqlglotError, RecursionError) as problem:
        reason = str(problem).splitlines()[0] if str(problem) else "too deep"
        raise BadRequest(f"the statement is not SQL: {reason}") from None
    if len(trees) != 1:
        raise BadRequest(f"one statement is answered, not {len(trees)}")
    tree = trees[0]
    if not isinstance(tree, exp.Query) or isinstance(tree, exp.Table):
        raise BadRequest(f"only SELECT is answered, not {tree.key.upper()}")
    if not tree.selects:
        raise BadRequest("the SELECT names no columns")
    for node in tree.walk():
        if isinstance(node, NOT_QUESTIONS) and not isinstance(node, exp.Query):
            raise BadRequest(
                f"only SELECT is answered: {node.sql(dialect=dialect)[:60]!r} is not part of one"
            )
        if isinstance(node, exp.Anonymous) and node.name.lower() not in HARMLESS:
            raise BadRequest(f"the function {node.name} is not offered here")
        if isinstance(node, exp.Dot) or (isinstance(node, exp.Cast) and reaches(node)):
            raise BadRequest(f"{node.sql(dialect=dialect)[:60]!r} is not offered here")
    for cte in tree.find_all(exp.CTE):
        # These prefixes belong to tables of the store and of the database.
        if re.match(r"_|pg_|duckdb_|sqlite_|.*__", cte.alias, re.IGNORECASE):
            raise BadRequest(
                f"{cte.alias!r} is not a name for a part of a statement: begin with a letter, no __"
            )
    found = dict.fromkeys(view_of(table, known) for table in own_tables(tree))
    return Statement(tree, dialect, tuple(found))


def reaches(cast: exp.Cast) -> bool:
    """Casts to PostgreSQL's names of objects (regclass and so on) look things up."""
    return cast.to.sql().lower().startswith("reg")


def own_tables(tree: exp.Expr) -> list[exp.Table]:
    """Tables that are not names of the statement's own WITH."""
    found = []
    for scope in traverse_scope(tree):
        for table in scope.tables:
            source = scope.sources.get(table.alias_or_name)
            if isinstance(source, exp.Table) or source is None:
                found.append(table)
    seen = {id(table): table for table in found}
    missed = [table for table in tree.find_all(exp.Table) if id(table) not in seen]
    names = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    return list(seen.values()) + [table for table in missed if table.name.lower() not in names or table.db]


def view_of(table: exp.Table, views: Iterable[str]) -> str:
    if not isinstance(table.this, exp.Identifier):
        raise BadRequest(
            f"{table.sql()[:60]!r} is not a view: functions that make tables are not offered here"
        )
    plain = {"this", "alias", "joins", "db", "catalog"}
    if {name for name, value in table.args.items() if value} - plain:
        raise BadRequest(f"{table.sql()[:60]!r} is not offered here: a view is named as it is")
    if not table.db and not table.catalog:
        for view in views:
            if view == table.name or (not table.this.quoted and view.lower() == table.name.lower()):
                return view
    there = ", ".join(views) or "none yet"
    name = ".".join(part.name for part in table.parts)
    raise BadRequest(f"there is no view {name!r}: there are {there}")
