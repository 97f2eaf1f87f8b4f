"""Signatures of functions: their texts become patterns of types, and arguments choose among them.

`ABS(DECIMAL(p,s)) -> DECIMAL(p,s)`, `ARRAY_CONTAINS(ARRAY<T>, T) -> BOOLEAN`, `CONCAT(STRING...) -> STRING`,
`TRANSFORM(ARRAY<T>, x => R) -> ARRAY<R>`. One letter, perhaps with a digit, stands for any type, the same one
everywhere. Does not know: trees, code.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from barnabas.sql.errors import SqlError
from barnabas.sql.expressions.casting import as_decimal, widens, wider
from barnabas.sql.functions.registry import table
from barnabas.sql.functions.user import USER_FUNCTIONS, UserFunction
from barnabas.sql.types.sql_types import (
    BIGINT,
    DOUBLE,
    INTEGER,
    NULL,
    PRIMITIVES,
    STRING,
    UNIT,
    WHOLE,
    Array,
    Decimal,
    LambdaType,
    Map,
    SqlType,
    Struct,
    is_number,
)

VARIABLE = re.compile(r"[A-Z]\d?")
LAMBDA_VARIABLES = {"x": "T", "k": "K", "v": "V", "s": "S"}
TYPE_NAMES = {**PRIMITIVES, "unit": UNIT, "base": DOUBLE, "value": DOUBLE}
NO_COST = 0
NULL_COST, LITERAL_COST, VARIADIC_COST = 1, 50, 5
WIDENING: dict[str, int] = {"INTEGER": 0, "BIGINT": 1, "DECIMAL": 2, "DOUBLE": 3}

Bindings = dict[str, SqlType]


@dataclass(frozen=True, slots=True)
class Variable:
    """Any type, the same one wherever its name stands."""

    name: str


@dataclass(frozen=True, slots=True)
class AnyDecimal:
    """DECIMAL(p,s); as a result `DECIMAL(p-s,0)` too."""

    is_whole: bool = False


@dataclass(frozen=True, slots=True)
class ArrayPattern:
    item: Pattern


@dataclass(frozen=True, slots=True)
class MapPattern:
    key: Pattern
    value: Pattern


@dataclass(frozen=True, slots=True)
class StructPattern:
    fields: tuple[tuple[str, Pattern], ...]


@dataclass(frozen=True, slots=True)
class LambdaPattern:
    """A lambda of parameters with these types."""

    parameters: tuple[Pattern, ...]
    result: Pattern


Pattern = SqlType | Variable | AnyDecimal | ArrayPattern | MapPattern | StructPattern | LambdaPattern


@dataclass(frozen=True, slots=True)
class Signature:
    """`is_variadic`: the last parameter may come any number of times, none included."""

    name: str
    text: str
    parameters: tuple[Pattern, ...]
    result: Pattern
    is_variadic: bool = False
    allowed: tuple[str, ...] = ()
    user: UserFunction | None = None

    def parameter(self, index: int) -> Pattern:
        return self.parameters[min(index, len(self.parameters) - 1)]

    def takes(self, count: int) -> bool:
        if self.is_variadic:
            return count >= len(self.parameters) - 1
        return count == len(self.parameters)


def parts_of(text: str) -> list[str]:
    """Split at commas that are in no brackets."""
    found, depth, start = [], 0, 0
    for at, sign in enumerate(text):
        if sign in "(<":
            depth += 1
        elif sign in ")>" and text[at - 1 : at + 1] not in ("=>", "->"):
            depth -= 1
        elif sign == "," and depth == 0:
            found.append(text[start:at].strip())
            start = at + 1
    last = text[start:].strip()
    return [*found, last] if last else found


def pattern_of(text: str) -> Pattern:
    text = text.strip()
    if "=>" in text:
        names, _, result = text.partition("=>")
        parameters = [each.strip() for each in names.strip(" ()").split(",")]
        return LambdaPattern(
            tuple(Variable(LAMBDA_VARIABLES.get(name, name)) for name in parameters), pattern_of(result)
        )
    if text.startswith("ARRAY<"):
        return ArrayPattern(pattern_of(text[6 : text.rindex(">")]))
    if text.startswith("MAP<"):
        key, value = parts_of(text[4 : text.rindex(">")])
        return MapPattern(pattern_of(key), pattern_of(value))
    if text.startswith("STRUCT<"):
        fields = (each.split(" ", 1) for each in parts_of(text[7 : text.rindex(">")]))
        return StructPattern(tuple((name, pattern_of(kind)) for name, kind in fields))
    sized = re.match(r"DECIMAL\s*\(\s*(\d+)\s*,\s*(\d+)\s*\)", text)
    if sized:
        return Decimal(int(sized[1]), int(sized[2]))
    if text.startswith("DECIMAL"):
        return AnyDecimal("p-s" in text)
    word = text.split()[0]
    if word in TYPE_NAMES:
        return TYPE_NAMES[word]
    if VARIABLE.fullmatch(word):
        return Variable(word)
    raise SqlError(f"{text!r} is no type of a signature")


def signature_of(name: str, text: str, user: UserFunction | None = None) -> Signature:
    head, _, result = text.removeprefix(name).strip().rpartition(" -> ")
    if not head and result.startswith("("):
        raise SqlError(f"the signature {text!r} of {name} has no result: (STRING) -> INT is expected")
    result, _, where = result.partition(" for T in ")
    result = result.split(" for ")[0].split(", one row")[0]
    texts = parts_of(head.strip()[1:-1])
    is_variadic = bool(texts) and texts[-1].endswith("...")
    if is_variadic:
        texts[-1] = texts[-1].removesuffix("...")
        if not texts[-1]:
            texts.pop()
    allowed = tuple(each.strip() for each in where.split(",")) if where else ()
    parameters = tuple(pattern_of(each) for each in texts)
    shown = f"{name}{text.removeprefix(name).rpartition(' -> ')[0]}"
    return Signature(name, shown, parameters, pattern_of(result), is_variadic, allowed, user)


@functools.cache
def built_in(name: str) -> tuple[Signature, ...]:
    row = table().get(name)
    return () if row is None else tuple(signature_of(name, text) for text in row.signatures)


def signatures_of(name: str) -> list[Signature]:
    users = [signature_of(name, each.signature, each) for each in USER_FUNCTIONS.named(name)]
    return [*users, *built_in(name)]


@dataclass(frozen=True, slots=True)
class Argument:
    """Knowledge about an argument before the signature is chosen."""

    kind: SqlType
    is_literal: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """A signature, and the type that each argument has to be turned into; None for lambdas."""

    signature: Signature
    wanted: tuple[SqlType | None, ...]
    bindings: Bindings


def choose(name: str, arguments: Sequence[Argument]) -> Choice:
    """The signature that needs the least widening."""
    known = signatures_of(name)
    best: tuple[int, Choice] | None = None
    for signature in known:
        found = match(signature, arguments)
        if found is not None and (best is None or found[0] < best[0]):
            best = found
    if best is None:
        given = ", ".join(str(each.kind) for each in arguments)
        valid = "\n".join(each.text for each in known)
        raise SqlError(
            f"Function '{name}' does not accept parameters ({given}).\nValid alternatives are:\n{valid}"
        )
    return best[1]


def match(signature: Signature, arguments: Sequence[Argument]) -> tuple[int, Choice] | None:
    if not signature.takes(len(arguments)):
        return None
    bindings: Bindings = {}
    # Arrays and maps say what a letter is before a single value does: nothing widens inside of them.
    order = sorted(
        range(len(arguments)),
        key=lambda i: isinstance(signature.parameter(i), Variable) or _is_lambda(i, arguments),
    )
    for index in order:
        if not bind_type(signature.parameter(index), arguments[index], bindings):
            return None
    if "T" in bindings and signature.allowed and bindings["T"] != NULL:
        base = {"INTEGER": "INT"}.get(bindings["T"].base, bindings["T"].base)
        if base not in signature.allowed:
            return None
    cost = VARIADIC_COST if signature.is_variadic else NO_COST
    wanted: list[SqlType | None] = []
    for index, argument in enumerate(arguments):
        pattern = signature.parameter(index)
        if isinstance(pattern, LambdaPattern):
            wanted.append(None)
            continue
        kind = filled(pattern, bindings, argument.kind)
        step = cost_of(argument, kind)
        if step is None:
            return None
        cost += step + (1 if isinstance(pattern, Variable) else 0)
        wanted.append(kind)
    return cost, Choice(signature, tuple(wanted), bindings)


def _is_lambda(index: int, arguments: Sequence[Argument]) -> bool:
    return isinstance(arguments[index].kind, LambdaType)


def bind_type(pattern: Pattern, argument: Argument, bindings: Bindings) -> bool:
    """Note what the letters of a pattern are, as far as this argument says; False where it cannot fit."""
    kind = argument.kind
    if isinstance(pattern, LambdaPattern):
        return isinstance(kind, LambdaType) and kind.parameters == len(pattern.parameters)
    if isinstance(kind, LambdaType):
        return False
    if isinstance(pattern, Variable):
        before = bindings.get(pattern.name)
        if before is None or before == NULL:
            bindings[pattern.name] = kind
            return True
        if kind == NULL or before == kind:
            return True
        common = wider(before, kind)
        if common is None:
            return argument.is_literal and kind == STRING  # a literal text may still become the type
        bindings[pattern.name] = common
        return True
    if kind == NULL:
        return True
    if isinstance(pattern, ArrayPattern):
        return isinstance(kind, Array) and bind_type(pattern.item, Argument(kind.item), bindings)
    if isinstance(pattern, MapPattern):
        return (
            isinstance(kind, Map)
            and bind_type(pattern.key, Argument(kind.key), bindings)
            and bind_type(pattern.value, Argument(kind.value), bindings)
        )
    return True


def filled(pattern: Pattern, bindings: Bindings, given: SqlType = NULL) -> SqlType:
    """The type that a pattern stands for. `given` is the argument, for decimals of any size."""
    if isinstance(pattern, Variable):
        return bindings.get(pattern.name, NULL)
    if isinstance(pattern, ArrayPattern):
        return Array(filled(pattern.item, bindings, given.item if isinstance(given, Array) else NULL))
    if isinstance(pattern, MapPattern):
        inner = (given.key, given.value) if isinstance(given, Map) else (NULL, NULL)
        return Map(filled(pattern.key, bindings, inner[0]), filled(pattern.value, bindings, inner[1]))
    if isinstance(pattern, StructPattern):
        return Struct(tuple((name, filled(kind, bindings)) for name, kind in pattern.fields))
    if isinstance(pattern, AnyDecimal):
        if isinstance(given, Decimal) or given in WHOLE:
            narrow = as_decimal(given)
            return Decimal(narrow.precision - narrow.scale, 0) if pattern.is_whole else narrow
        return Decimal(38, 10)
    assert isinstance(pattern, SqlType)
    return pattern


def cost_of(argument: Argument, wanted: SqlType) -> int | None:
    """How much an argument must be widened; None where it does not fit."""
    kind = argument.kind
    if kind == wanted:
        return NO_COST
    if kind == NULL:
        return NULL_COST
    if is_number(kind) and is_number(wanted) and widens(kind, wanted):
        return 10 * (1 + WIDENING[wanted.base] - WIDENING[kind.base])
    if widens(kind, wanted):
        return 10
    if argument.is_literal and (wanted == STRING or kind == STRING) and coerces(kind, wanted):
        return LITERAL_COST
    return None


def coerces(kind: SqlType, wanted: SqlType) -> bool:
    """Whether a literal of a type may become one of another type."""
    plain = {INTEGER, BIGINT, DOUBLE}
    others = {"BOOLEAN", "DATE", "TIME", "TIMESTAMP"}
    if wanted == STRING:
        return kind in plain or isinstance(kind, Decimal) or kind.base == "BOOLEAN"
    return kind == STRING and (is_number(wanted) or wanted.base in others)


def result_of(choice: Choice, arguments: Sequence[Argument]) -> SqlType:
    given = next((each.kind for each in arguments if isinstance(each.kind, Decimal)), NULL)
    return filled(choice.signature.result, choice.bindings, given)
