"""Parses statements: texts become trees, and errors say where, and what would be right."""

from __future__ import annotations

import functools

from lark import Lark, Token, UnexpectedCharacters, UnexpectedEOF, UnexpectedToken
from lark.exceptions import VisitError

from barnabas.sql.errors import Position, SqlError, SyntaxProblem, nearest
from barnabas.sql.syntax import tree
from barnabas.sql.syntax.splitting import split
from barnabas.sql.syntax.statements import Statement
from barnabas.sql.syntax.tool_building import TreeBuilder
from barnabas.sql.syntax.words import grammar_text
from barnabas.sql.types.sql_types import SqlType

DEPTH_MAX = 200  # of parentheses and brackets: a tree that is deeper would end Python's stack
EXPECTED_SHOWN_MAX = 8
NAMES = {"IDENTIFIER", "QUOTED"}
SIGNS = {
    "IDENTIFIER": "a name",
    "STRING": "a text in single quotes",
    "INTEGER": "a number",
    "$END": "the end",
}


@functools.cache
def grammar() -> Lark:
    return Lark(
        grammar_text(),
        parser="lalr",
        lexer="basic",
        start=["statement", "expression", "type"],
        propagate_positions=True,
        maybe_placeholders=False,
    )


def parse_statement(text: str) -> Statement:
    """One statement, with or without its semicolon."""
    found = list(split(text))
    if len(found) != 1:
        raise SyntaxProblem(f"one statement is expected, not {len(found)}", statement=text)
    return _parse(found[0].text, "statement")  # type: ignore[return-value]


def parse_expression(text: str) -> tree.Expression:
    return _parse(text, "expression")  # type: ignore[return-value]


def parse_type(text: str) -> SqlType:
    return _parse(text, "type")  # type: ignore[return-value]


def _parse(text: str, start: str) -> object:
    check_depth(text)
    try:
        return TreeBuilder().transform(grammar().parse(text, start))
    except UnexpectedToken as error:
        raise unexpected(error, text) from None
    except UnexpectedCharacters as error:
        sign = error.char
        raise SyntaxProblem(
            f"{sign!r} is no part of a statement", Position(error.line, error.column), text
        ) from None
    except UnexpectedEOF:
        raise SyntaxProblem("the statement ends too early", statement=text) from None
    except VisitError as error:
        if isinstance(error.orig_exc, SqlError):
            error.orig_exc.statement = text
            raise error.orig_exc from None
        raise
    except RecursionError:
        raise SyntaxProblem("the statement is nested too deeply", statement=text) from None


def check_depth(text: str) -> None:
    depth = 0
    for sign in text:
        if sign in "([<":
            depth += 1
            if depth > DEPTH_MAX and sign != "<":
                raise SyntaxProblem(
                    f"the statement is nested more than {DEPTH_MAX} levels deep", statement=text
                )
        elif sign in ")]>":
            depth = max(0, depth - 1)


def unexpected(error: UnexpectedToken, text: str) -> SyntaxProblem:
    token: Token = error.token
    words = {shown(name) for name in error.expected}
    if token.type == "$END":
        lines = text.splitlines() or [""]
        at = Position(len(lines), len(lines[-1]) + 1)
        return SyntaxProblem(f"the statement ends too early: expected {listed(words)}", at, text)
    at = Position(error.line, error.column)
    keywords = {word for word in words if word.isalpha() and word.isupper()}
    if "a name" in words and token.type not in NAMES and str(token).isalpha():
        return SyntaxProblem(
            f"{str(token)!r} is a reserved word: put it in back quotes to use it as a name", at, text
        )
    near = nearest(str(token), keywords)
    if near is not None and near != str(token).upper():
        return SyntaxProblem(f"{str(token)!r} is not expected here. Did you mean {near}?", at, text)
    return SyntaxProblem(f"{str(token)!r} is not expected here: expected {listed(words)}", at, text)


def shown(name: str) -> str:
    if name in SIGNS:
        return SIGNS[name]
    terminal = next((each for each in grammar().terminals if each.name == name), None)
    if terminal is None or name in NAMES:
        return name
    text = str(terminal.pattern.value)
    return text if terminal.pattern.type == "str" else name


def listed(words: set[str]) -> str:
    found = sorted(words)
    more = f" or {len(found) - EXPECTED_SHOWN_MAX} others" if len(found) > EXPECTED_SHOWN_MAX else ""
    return ", ".join(found[:EXPECTED_SHOWN_MAX]) + more
