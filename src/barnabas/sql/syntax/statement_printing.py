"""Prints queries and the statements that the command topic keeps."""

from __future__ import annotations

from barnabas.sql.syntax import statements as made
from barnabas.sql.syntax.printing import expression_text, literal_text, name_text, string_text, type_text
from barnabas.sql.types.sql_types import NULL


def statement_text(statement: made.Statement) -> str:
    """A text that parses to the same statement. TypeError for statements that no log keeps."""
    match statement:
        case made.Query():
            return query_text(statement)
        case made.CreateSource():
            words = [create(statement.or_replace), "SOURCE" if statement.is_source else ""]
            words += [
                kind(statement.is_table),
                unless_exists(statement.if_not_exists),
                name_text(statement.name),
            ]
            if statement.columns is not None:
                words.append(f"({', '.join(map(column_text, statement.columns))})")
            return joined(*words, properties_text(statement.properties) or "WITH ()")
        case made.CreateAs():
            words = [create(statement.or_replace), kind(statement.is_table)]
            words += [unless_exists(statement.if_not_exists), name_text(statement.name)]
            return joined(*words, properties_text(statement.properties), "AS", query_text(statement.query))
        case made.InsertInto():
            properties = properties_text(statement.properties)
            return joined("INSERT INTO", name_text(statement.target), properties, query_text(statement.query))
        case made.InsertValues():
            names = ", ".join(map(name_text, statement.columns))
            columns = f"({names})" if names else ""
            values = ", ".join(map(expression_text, statement.values))
            return joined("INSERT INTO", name_text(statement.target), columns, f"VALUES ({values})")
        case made.DropSource():
            exists = "IF EXISTS" if statement.if_exists else ""
            deletes = "DELETE TOPIC" if statement.deletes_topic else ""
            return joined("DROP", kind(statement.is_table), exists, name_text(statement.name), deletes)
        case made.AlterSource():
            added = ", ".join(f"ADD COLUMN {name_text(n)} {type_text(k)}" for n, k in statement.columns)
            return joined("ALTER", kind(statement.is_table), name_text(statement.name), added)
        case made.CreateType():
            exists = unless_exists(statement.if_not_exists)
            return joined("CREATE TYPE", exists, name_text(statement.name), "AS", type_text(statement.kind))
        case made.DropType():
            return joined("DROP TYPE", "IF EXISTS" if statement.if_exists else "", name_text(statement.name))
        case made.ControlQuery():
            return joined(statement.action, name_text(statement.query_id) if statement.query_id else "ALL")
        case made.AlterSystem():
            return f"ALTER SYSTEM {string_text(statement.name)} = {string_text(statement.value)}"
    raise TypeError(f"{type(statement).__name__} has no text")


def joined(*words: str) -> str:
    return " ".join(word for word in words if word)


def create(or_replace: bool) -> str:
    return "CREATE OR REPLACE" if or_replace else "CREATE"


def kind(is_table: bool) -> str:
    return "TABLE" if is_table else "STREAM"


def unless_exists(if_not_exists: bool) -> str:
    return "IF NOT EXISTS" if if_not_exists else ""


def column_text(column: made.ColumnDefinition) -> str:
    role = f"HEADER({string_text(column.header)})" if column.header is not None else str(column.role)
    return joined(name_text(column.name), type_text(column.kind), role)


def properties_text(properties: made.Properties) -> str:
    if not properties:
        return ""
    return f"WITH ({', '.join(f'{string_text(n)} = {literal_text(v, NULL)}' for n, v in properties)})"


def relation_text(relation: made.Relation) -> str:
    return joined(name_text(relation.name), f"AS {name_text(relation.alias)}" if relation.alias else "")


def join_text(join: made.Join) -> str:
    within = f"WITHIN ({join.before}, {join.after})" if join.before is not None else ""
    grace = f"GRACE PERIOD {join.grace}" if join.grace is not None else ""
    return joined(join.kind, "JOIN", relation_text(join.right), within, grace, "ON", expression_text(join.on))


def window_text(window: made.Window) -> str:
    words = [str(window.size) if window.kind == "SESSION" else f"SIZE {window.size}"]
    words += [f"ADVANCE BY {window.advance}"] if window.advance is not None else []
    words += [f"RETENTION {window.retention}"] if window.retention is not None else []
    words += [f"GRACE PERIOD {window.grace}"] if window.grace is not None else []
    return f"WINDOW {window.kind} ({', '.join(words)})"


def item_text(item: made.Item) -> str:
    return joined(expression_text(item.expression), f"AS {name_text(item.alias)}" if item.alias else "")


def query_text(query: made.Query) -> str:
    words = ["SELECT", ", ".join(map(item_text, query.items)), "FROM", relation_text(query.source)]
    words += map(join_text, query.joins)
    words += [window_text(query.window)] if query.window is not None else []
    words += [f"WHERE {expression_text(query.where)}"] if query.where is not None else []
    words += [f"GROUP BY {', '.join(map(expression_text, query.group_by))}"] if query.group_by else []
    words += (
        [f"PARTITION BY {', '.join(map(expression_text, query.partition_by))}"] if query.partition_by else []
    )
    words += [f"HAVING {expression_text(query.having)}"] if query.having is not None else []
    words += [f"EMIT {query.emit}"] if query.emit is not None else []
    words += [f"LIMIT {query.limit}"] if query.limit is not None else []
    return " ".join(words)
