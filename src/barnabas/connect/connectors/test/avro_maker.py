"""Makes values up that fit an Avro schema, as Confluent's datagen does.

In: a schema whose types may carry `arg.properties` (`options`, `range`, `regex`, `iteration`, `length`,
`odds`, for maps `keys`). Out:
a schema of Connect, and a function from a random generator and a row's number to a value. Does not know:
topics, offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

from barnabas.connect.connectors.test.regex_maker import regex_maker
from barnabas.connect.data import (
    BOOLEAN,
    BYTES,
    DATE,
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    STRING,
    TIME,
    TIMESTAMP,
    Schema,
    array,
    decimal,
    mapping,
    struct,
)
from barnabas.connect.plugins import ConnectError

Maker = Callable[[Random, int], Any]
PRIMITIVES = {
    "boolean": BOOLEAN,
    "int": INT32,
    "long": INT64,
    "float": FLOAT32,
    "double": FLOAT64,
    "string": STRING,
    "bytes": BYTES,
}
RANGES = {"int": (-(2**31), 2**31 - 1), "long": (-(2**63), 2**63 - 1)}
FLOATS = ("float", "double")
EPOCH = date(1970, 1, 1)
LOGICAL: dict[tuple[str, Any], tuple[Schema, Callable[[int], Any]]] = {
    ("long", "timestamp-millis"): (TIMESTAMP, lambda each: each),
    ("int", "date"): (DATE, lambda days: EPOCH + timedelta(days=days)),
    ("int", "time-millis"): (TIME, lambda ms: (datetime.min + timedelta(milliseconds=ms)).time()),
}
LETTERS = "abcdefghijklmnopqrstuvwxyz"
LENGTH_MAX = 10_000


def maker_of(avro: Any, path: str = "schema") -> tuple[Schema, Maker]:
    """The schema and the maker of an Avro schema. ConnectError names the part that is wrong."""
    if isinstance(avro, list):
        return union_of(avro, path)
    given: Mapping[str, Any] = {"type": avro} if isinstance(avro, str) else avro
    if not isinstance(given, Mapping) or "type" not in given:
        raise ConnectError(f"{path}: {avro!r} is no Avro type")
    kind, hints = given["type"], given.get("arg.properties") or {}
    if isinstance(kind, (dict, list)):
        if isinstance(kind, dict) and hints and "arg.properties" not in kind:
            kind = {**kind, "arg.properties": hints}  # of a field, in place of its type
        return maker_of(kind, path)
    if kind in ("record", "array", "map") and "options" in hints:
        schema, make = maker_of({**given, "arg.properties": {}}, path)[0], chosen_from(hints, path)
        names = set(schema.field_names) if kind == "record" else set()
        if names and any(not isinstance(each, dict) or set(each) != names for each in hints["options"]):
            raise ConnectError(
                f"{path}: each of options must have the fields {', '.join(schema.field_names)}"
            )
        return schema, make
    if kind == "record":
        return record_of(given, path)
    if kind == "enum":
        symbols = list(given["symbols"])
        return STRING, lambda rng, n: rng.choice(symbols)
    if kind == "array":
        item, make = maker_of(given["items"], f"{path}[]")
        low, high = length_of(hints, path)
        return array(item), lambda rng, n: [make(rng, n) for _ in range(rng.randint(low, high))]
    if kind == "map":
        item, make = maker_of(given["values"], f"{path}{{}}")
        low, high = length_of(hints, path)
        name = simple("string", hints.get("keys") or {"length": 6}, f"{path} keys")
        return mapping(STRING, item), lambda rng, n: {
            name(rng, n): make(rng, n) for _ in range(rng.randint(low, high))
        }
    if kind not in PRIMITIVES:
        raise ConnectError(
            f"{path}: the type {kind!r} is none of record, enum, array, map, {', '.join(PRIMITIVES)}"
        )
    if (kind, given.get("logicalType")) == ("bytes", "decimal"):
        return decimal_of(given, hints, path)
    make = simple(kind, hints, path)
    found = LOGICAL.get((kind, given.get("logicalType")))
    if found is None:
        return PRIMITIVES[kind], make
    schema, turned = found
    return schema, lambda rng, n: turned(make(rng, n))


def chosen_from(hints: Mapping[str, Any], path: str) -> Maker:
    options = hints["options"]
    if not isinstance(options, list) or not options:
        raise ConnectError(f"{path}: options must be a list with entries")
    return lambda rng, n: rng.choice(options)


def decimal_of(given: Mapping[str, Any], hints: Mapping[str, Any], path: str) -> tuple[Schema, Maker]:
    """Decimals of a precision and a scale, between the bounds of `range`."""
    scale, precision = given.get("scale", 0), given.get("precision", 9)
    if not (isinstance(scale, int) and isinstance(precision, int) and 0 <= scale <= precision <= 38):
        raise ConnectError(f"{path}: a decimal needs 0 <= scale <= precision <= 38")
    unit = 10**scale
    low, high = bounds(hints, (0, (10**precision - 1) / unit))
    least, most = int(low * unit), int(high * unit)
    return decimal(scale), lambda rng, n: Decimal(rng.randint(least, max(least, most))).scaleb(-scale)


def record_of(given: Mapping[str, Any], path: str) -> tuple[Schema, Maker]:
    parts = {str(each["name"]): maker_of(each, f"{path}.{each['name']}") for each in given.get("fields", ())}
    if not parts:
        raise ConnectError(f"{path}: a record needs fields")
    space = given.get("namespace")
    name = f"{space}.{given['name']}" if space and "name" in given else given.get("name")
    schema = struct({field: found[0] for field, found in parts.items()}, name=name)
    makers = [(field, found[1]) for field, found in parts.items()]
    return schema, lambda rng, n: {field: make(rng, n) for field, make in makers}


def union_of(avro: list[Any], path: str) -> tuple[Schema, Maker]:
    others = [each for each in avro if each != "null"]
    if len(others) != 1:
        raise ConnectError(f"{path}: a union must have one type beside null")
    schema, make = maker_of(others[0], path)
    if len(avro) == 1:
        return schema, make
    return schema.as_optional(), lambda rng, n: None if rng.random() < 0.5 else make(rng, n)


def simple(kind: str, hints: Mapping[str, Any], path: str) -> Maker:
    """The maker of a primitive type."""
    if "options" in hints:
        return chosen_from(hints, path)
    if "iteration" in hints:
        start, step = hints["iteration"].get("start", 0), hints["iteration"].get("step", 1)
        end = hints["iteration"].get("restart")
        period = None if end is None else max(1, (end - start) // step)
        kept: Callable[[Any], Any] = str if kind == "string" else float if kind in FLOATS else int
        return lambda rng, n: kept(start + step * (n if period is None else n % period))
    if kind in ("int", "long"):
        low, high = bounds(hints, RANGES[kind])
        return lambda rng, n: rng.randrange(int(low), int(high)) if high > low else int(low)
    if kind in FLOATS:
        low, high = bounds(hints, (0.0, 1.0))
        return lambda rng, n: rng.uniform(low, high)
    if kind == "boolean":
        return lambda rng, n: rng.random() < hints.get("odds", 0.5)
    if kind == "bytes":
        least, most = length_of(hints, path)
        return lambda rng, n: rng.randbytes(rng.randint(least, most))
    if "regex" in hints:
        make = regex_maker(str(hints["regex"]), path)
        return lambda rng, n: make(rng)
    least, most = length_of(hints, path)
    return lambda rng, n: word(rng, rng.randint(least, most))


def bounds(hints: Mapping[str, Any], default: tuple[Any, Any]) -> tuple[Any, Any]:
    given = hints.get("range") or {}
    return given.get("min", default[0]), given.get("max", default[1])


def length_of(hints: Mapping[str, Any], path: str) -> tuple[int, int]:
    given = hints.get("length", {"min": 1, "max": 10})
    low, high = (given, given) if isinstance(given, int) else (given.get("min", 0), given.get("max", 10))
    if not 0 <= low <= high <= LENGTH_MAX:
        raise ConnectError(f"{path}: length must be between 0 and {LENGTH_MAX}, min below max")
    return int(low), int(high)


def word(rng: Random, length: int) -> str:
    return "".join(rng.choices(LETTERS, k=length))
