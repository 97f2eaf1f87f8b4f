"""Builds the trees of all other statements: listings, settings, connectors, asserts."""

from __future__ import annotations

from typing import Any

from lark import Token, v_args

from barnabas.sql.syntax import statements as made
from barnabas.sql.syntax.building import position, unquoted
from barnabas.sql.syntax.statement_building import Part, StatementBuilder, _flag, parts


@v_args(meta=True)
class TreeBuilder(StatementBuilder):
    """All rules of the grammar."""

    all = _flag("all")
    extended = _flag("is_extended")
    from_beginning = _flag("from_beginning")
    not_exists = _flag("not_exists")

    def control_action(self, meta: Any, children: list[Any]) -> str:
        return str(children[0]).upper()

    extensible = control_action
    plain = control_action

    def connector_kind(self, meta: Any, children: list[Any]) -> Part:
        return Part("kind", str(children[0]).upper())

    def query_id(self, meta: Any, children: list[Any]) -> Part:
        return Part("query_id", children[0])

    def control(self, meta: Any, children: list[Any]) -> made.ControlQuery:
        return made.ControlQuery(children[0], parts(children).get("query_id"), at=position(meta))

    def explain_statement(self, meta: Any, children: list[Any]) -> made.Explain:
        return made.Explain(children[0], at=position(meta))

    def explain_query(self, meta: Any, children: list[Any]) -> made.Explain:
        return made.Explain(None, children[0], at=position(meta))

    def describe_source(self, meta: Any, children: list[Any]) -> made.Describe:
        return made.Describe(children[0], **parts(children), at=position(meta))

    def describe_streams(self, meta: Any, children: list[Any]) -> made.DescribeAll:
        return made.DescribeAll(False, **parts(children), at=position(meta))

    def describe_tables(self, meta: Any, children: list[Any]) -> made.DescribeAll:
        return made.DescribeAll(True, **parts(children), at=position(meta))

    def describe_function(self, meta: Any, children: list[Any]) -> made.DescribeFunction:
        return made.DescribeFunction(children[0].upper(), at=position(meta))

    def describe_connector(self, meta: Any, children: list[Any]) -> made.DescribeConnector:
        return made.DescribeConnector(children[0], at=position(meta))

    def listed_extensible(self, meta: Any, children: list[Any]) -> made.Listing:
        return made.Listing(children[0], **parts(children), at=position(meta))

    def listed_topics(self, meta: Any, children: list[Any]) -> made.Listing:
        given = parts(children)
        scope = "ALL" if "all" in given else None
        return made.Listing("TOPICS", given.get("is_extended", False), scope, at=position(meta))

    def listed_plain(self, meta: Any, children: list[Any]) -> made.Listing:
        return made.Listing(children[0], at=position(meta))

    def listed_connectors(self, meta: Any, children: list[Any]) -> made.Listing:
        return made.Listing("CONNECTORS", scope=parts(children).get("kind"), at=position(meta))

    def listed_plugins(self, meta: Any, children: list[Any]) -> made.Listing:
        return made.Listing("CONNECTOR PLUGINS", at=position(meta))

    def listing(self, meta: Any, children: list[Any]) -> made.Listing:
        return children[0]  # type: ignore[no-any-return]

    def resource(self, meta: Any, children: list[Any]) -> str:
        given = children[0]
        return unquoted(given) if isinstance(given, Token) else given

    def print_interval(self, meta: Any, children: list[Any]) -> Part:
        return Part("interval", int(children[0]))

    def print(self, meta: Any, children: list[Any]) -> made.Print:
        return made.Print(children[0], **parts(children), at=position(meta))

    def set(self, meta: Any, children: list[Any]) -> made.SetProperty:
        return made.SetProperty(*map(unquoted, children), at=position(meta))

    def unset(self, meta: Any, children: list[Any]) -> made.UnsetProperty:
        return made.UnsetProperty(unquoted(children[0]), at=position(meta))

    def alter_system(self, meta: Any, children: list[Any]) -> made.AlterSystem:
        return made.AlterSystem(*map(unquoted, children), at=position(meta))

    def define(self, meta: Any, children: list[Any]) -> made.Define:
        return made.Define(children[0], unquoted(children[1]), at=position(meta))

    def undefine(self, meta: Any, children: list[Any]) -> made.Undefine:
        return made.Undefine(children[0], at=position(meta))

    def create_connector(self, meta: Any, children: list[Any]) -> made.CreateConnector:
        name = next(each for each in children if isinstance(each, str))
        return made.CreateConnector(name=name, **parts(children), at=position(meta))

    def drop_connector(self, meta: Any, children: list[Any]) -> made.DropConnector:
        name = next(each for each in children if isinstance(each, str))
        return made.DropConnector(name, **parts(children), at=position(meta))

    def timeout(self, meta: Any, children: list[Any]) -> Part:
        return Part("timeout", children[0])

    def subject(self, meta: Any, children: list[Any]) -> Part:
        return Part("subject", children[0])

    def schema_id(self, meta: Any, children: list[Any]) -> Part:
        return Part("schema_id", int(children[0]))

    def assert_topic(self, meta: Any, children: list[Any]) -> made.AssertTopic:
        name = next(each for each in children if isinstance(each, str))
        given = parts(children)
        exists = not given.pop("not_exists", False)
        return made.AssertTopic(name, **given, exists=exists, at=position(meta))

    def assert_schema(self, meta: Any, children: list[Any]) -> made.AssertSchema:
        given = {"subject": None, "schema_id": None, **parts(children)}
        exists = not given.pop("not_exists", False)
        return made.AssertSchema(**given, exists=exists, at=position(meta))

    def run_script(self, meta: Any, children: list[Any]) -> made.RunScript:
        return made.RunScript(unquoted(children[0]), at=position(meta))

    def spool_file(self, meta: Any, children: list[Any]) -> made.Spool:
        return made.Spool(unquoted(children[0]), at=position(meta))

    def spool_off(self, meta: Any, children: list[Any]) -> made.Spool:
        return made.Spool(None, at=position(meta))
