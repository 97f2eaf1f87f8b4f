"""JSON as MongoDB's shell and its Java driver read it: `{$match: {'operationType': 'insert'}}`.

In: a text. Out: the same as extended JSON: names without quotes and texts in single quotes get double ones,
calls such as `ObjectId('…')` and `/expressions/` their objects. Does not know: BSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

TOKEN = re.compile(
    r"""\s*(?:(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<name>[$A-Za-z_][\w$]*)"""
    r"""|(?P<number>-?\d[\w.+-]*)|/(?P<pattern>(?:[^/\\\n]|\\.)+)/(?P<options>[a-z]*)|(?P<sign>[{}\[\]:,()]))""",
    re.DOTALL,
)
WORDS = ("true", "false", "null")
CALLS: dict[str, Callable[..., dict[str, Any]]] = {
    "ObjectId": lambda id: {"$oid": id},
    "ISODate": lambda text: {"$date": text},
    "Date": lambda text: {"$date": text},
    "NumberInt": lambda number: {"$numberInt": str(number)},
    "NumberLong": lambda number: {"$numberLong": str(number)},
    "NumberDecimal": lambda number: {"$numberDecimal": str(number)},
    "Timestamp": lambda t, i: {"$timestamp": {"t": t, "i": i}},
    "UUID": lambda text: {"$uuid": text},
}
Token = tuple[str, Any]  # its kind, and its text; of expressions a pair


def strict(text: str) -> str:
    """Extended JSON in double quotes. ValueError tells where the text is none."""
    tokens = [*tokens_of(text), ("end", "")]
    found: list[str] = []
    at = 0
    while tokens[at][0] != "end":
        kind, token = tokens[at]
        following = tokens[at + 1]
        at += 1
        if kind == "name" and following == ("sign", ":"):
            found.append(json.dumps(token))
        elif kind == "name" and token == "new" and following[0] == "name":
            continue
        elif kind == "name" and following == ("sign", "("):
            made, at = call_of(token, tokens, at + 1)
            found.append(json.dumps(made))
        elif kind == "name" and token not in WORDS:
            raise ValueError(f"{token!r} is no value")
        elif kind == "pattern":
            found.append(json.dumps({"$regularExpression": {"pattern": token[0], "options": token[1]}}))
        elif kind == "sign" and token in "()":
            raise ValueError(f"{token!r} is out of place")
        else:
            found.append(doubled(token) if kind == "text" else token)
    return " ".join(found)


def tokens_of(text: str) -> Iterator[Token]:
    at, end = 0, len(text.rstrip())
    while at < end:
        found = TOKEN.match(text, at)
        if found is None:
            raise ValueError(f"cannot read {text[at : at + 20]!r}")
        at = found.end()
        kind = found.lastgroup or ""
        if found["pattern"] is not None:
            yield "pattern", (found["pattern"], found["options"])
        else:
            yield kind, found[kind]


def call_of(name: str, tokens: list[Token], at: int) -> tuple[dict[str, Any], int]:
    """The object of a call whose arguments begin at `at`, and where it goes on."""
    arguments: list[Any] = []
    while tokens[at] != ("sign", ")"):
        kind, token = tokens[at]
        if kind not in ("text", "number") and token != ",":
            raise ValueError(f"{name}() takes texts and numbers, not {token!r}")
        if token != ",":
            arguments.append(json.loads(doubled(token) if kind == "text" else token))
        at += 1
    try:
        return CALLS[name](*arguments), at + 1
    except (KeyError, TypeError):
        raise ValueError(f"{name}() with {len(arguments)} arguments is not known") from None


def doubled(text: str) -> str:
    """A text in double quotes."""
    if text.startswith('"'):
        return text
    inner = re.sub(r"\\(.)|\"", lambda found: {'"': '\\"', "\\'": "'"}.get(found[0], found[0]), text[1:-1],
                   flags=re.DOTALL)  # fmt: skip
    return f'"{inner}"'
