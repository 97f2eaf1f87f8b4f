"""Builds the trees of statements from lark's parse trees."""

from __future__ import annotations

from typing import Any, NamedTuple

from lark import Token, v_args

from barnabas.sql.errors import SyntaxProblem
from barnabas.sql.syntax import statements as made
from barnabas.sql.syntax import tree
from barnabas.sql.syntax.building import ExpressionBuilder, position, unquoted
from barnabas.sql.syntax.statements import Duration, Item, Join, Query, Relation, Role, Window
from barnabas.sql.types import sql_types as kinds


class Part(NamedTuple):
    """A clause on its way into its statement: the name of the field, and the value."""

    name: str
    value: Any


def parts(children: list[Any]) -> dict[str, Any]:
    return {each.name: each.value for each in children if isinstance(each, Part)}


def _flag(name: str) -> Any:
    return lambda self, meta, children: Part(name, True)


def _fixed(name: str, value: Any) -> Any:
    return lambda self, meta, children: Part(name, value)


def _first(name: str) -> Any:
    return lambda self, meta, children: Part(name, children[0])


@v_args(meta=True)
class StatementBuilder(ExpressionBuilder):
    """Rules of statements. Their names are those of the grammar."""

    def statement(self, meta: Any, children: list[Any]) -> Any:
        return children[0]

    # ------------------------------------------------------------------------------------------ queries
    def unit(self, meta: Any, children: list[Any]) -> str:
        return str(children[0]).upper().rstrip("S") + "S"

    def duration(self, meta: Any, children: list[Any]) -> Duration:
        return Duration(int(children[0]), children[1])

    def star(self, meta: Any, children: list[Any]) -> tree.Star:
        return tree.Star(at=position(meta))

    def source_star(self, meta: Any, children: list[Any]) -> tree.Star:
        return tree.Star(children[0], at=position(meta))

    def fields_of(self, meta: Any, children: list[Any]) -> tree.FieldsOf:
        return tree.FieldsOf(children[0], at=position(meta))

    alias = _first("alias")

    def item(self, meta: Any, children: list[Any]) -> Item:
        return Item(children[0], children[1].value if len(children) > 1 else None)

    def items(self, meta: Any, children: list[Any]) -> Part:
        return Part("items", tuple(children))

    def relation(self, meta: Any, children: list[Any]) -> Relation:
        return Relation(children[0], children[1].value if len(children) > 1 else None, position(meta))

    inner = _fixed("kind", "INNER")
    left = _fixed("kind", "LEFT")
    right = _fixed("kind", "RIGHT")
    full = _fixed("kind", "FULL")

    def within_one(self, meta: Any, children: list[Any]) -> Part:
        return Part("within", (children[0], children[0]))

    def within_two(self, meta: Any, children: list[Any]) -> Part:
        return Part("within", (children[0], children[1]))

    grace = _first("grace")
    join_grace = _first("grace")
    retention = _first("retention")
    where = _first("where")
    having = _first("having")

    def join(self, meta: Any, children: list[Any]) -> Join:
        given = parts(children)
        relation = next(each for each in children if isinstance(each, Relation))
        before, after = given.get("within", (None, None))
        kind = given.get("kind", "INNER")
        return Join(kind, relation, children[-1], before, after, given.get("grace"), position(meta))

    def tumbling(self, meta: Any, children: list[Any]) -> Part:
        return Part("window", Window("TUMBLING", children[0], **parts(children)))

    def hopping(self, meta: Any, children: list[Any]) -> Part:
        return Part("window", Window("HOPPING", children[0], children[1], **parts(children)))

    def session(self, meta: Any, children: list[Any]) -> Part:
        return Part("window", Window("SESSION", children[0], **parts(children)))

    def window(self, meta: Any, children: list[Any]) -> Part:
        return children[0]  # type: ignore[no-any-return]

    def by_list(self, meta: Any, children: list[Any]) -> tuple[Any, ...]:
        found: list[Any] = []
        for each in children:
            found += each.items if isinstance(each, tree.Tuple) else [each]
        return tuple(found)

    group_by = _first("group_by")
    partition_by = _first("partition_by")
    emit_changes = _fixed("emit", "CHANGES")
    emit_final = _fixed("emit", "FINAL")

    def limit(self, meta: Any, children: list[Any]) -> Part:
        return Part("limit", int(children[0]))

    def query(self, meta: Any, children: list[Any]) -> Query:
        given = parts(children)
        source = next(each for each in children if isinstance(each, Relation))
        joins = tuple(each for each in children if isinstance(each, Join))
        return Query(given.pop("items"), source, joins, **given, at=position(meta))

    # ------------------------------------------------------------------------------------------ sources
    or_replace = _flag("or_replace")
    read_only = _flag("is_source")
    if_not_exists = _flag("if_not_exists")
    if_exists = _flag("if_exists")
    delete_topic = _flag("deletes_topic")
    stream = _fixed("is_table", False)
    table = _fixed("is_table", True)
    key = _fixed("role", Role.KEY)
    primary_key = _fixed("role", Role.PRIMARY_KEY)
    headers = _fixed("role", Role.HEADERS)

    def header(self, meta: Any, children: list[Any]) -> Part:
        return Part("header", unquoted(children[0]))

    def column(self, meta: Any, children: list[Any]) -> made.ColumnDefinition:
        given = parts(children)
        role = Role.HEADERS if "header" in given else given.get("role", Role.VALUE)
        return made.ColumnDefinition(children[0], children[1], role, given.get("header"), position(meta))

    def columns(self, meta: Any, children: list[Any]) -> Part:
        return Part("columns", tuple(children))

    def property(self, meta: Any, children: list[Any]) -> tuple[str, tree.Value]:
        name, value = children
        if not isinstance(value, tree.Literal):
            raise SyntaxProblem(
                "a property has a literal as its value: a text, a number, TRUE", position(meta)
            )
        if isinstance(name, Token):
            return unquoted(name), value.value
        return name, value.value

    def properties(self, meta: Any, children: list[Any]) -> Part:
        return Part("properties", tuple(children))

    def create_source(self, meta: Any, children: list[Any]) -> made.CreateSource:
        given = {"columns": None, **parts(children)}
        return made.CreateSource(name=name_of(children), **given, at=position(meta))

    def create_as(self, meta: Any, children: list[Any]) -> made.CreateAs:
        return made.CreateAs(name=name_of(children), query=children[-1], **parts(children), at=position(meta))

    def insert_into(self, meta: Any, children: list[Any]) -> made.InsertInto:
        return made.InsertInto(children[0], children[-1], **parts(children), at=position(meta))

    def insert_columns(self, meta: Any, children: list[Any]) -> Part:
        return Part("columns", tuple(children))

    def insert_values(self, meta: Any, children: list[Any]) -> made.InsertValues:
        columns = parts(children).get("columns", ())
        values = tuple(each for each in children[1:] if isinstance(each, tree.Expression))
        return made.InsertValues(children[0], columns, values, at=position(meta))

    def drop_source(self, meta: Any, children: list[Any]) -> made.DropSource:
        return made.DropSource(name=name_of(children), **parts(children), at=position(meta))

    def added(self, meta: Any, children: list[Any]) -> tuple[str, kinds.SqlType]:
        return children[0], children[1]

    def alter(self, meta: Any, children: list[Any]) -> made.AlterSource:
        columns = tuple(each for each in children if type(each) is tuple)
        return made.AlterSource(children[0].value, children[1], columns, at=position(meta))

    def create_type(self, meta: Any, children: list[Any]) -> made.CreateType:
        return made.CreateType(name_of(children), children[-1], **parts(children), at=position(meta))

    def drop_type(self, meta: Any, children: list[Any]) -> made.DropType:
        return made.DropType(name_of(children), **parts(children), at=position(meta))


def name_of(children: list[Any]) -> str:
    """The first child that is a plain name."""
    return next(each for each in children if isinstance(each, str) and not isinstance(each, Token))
