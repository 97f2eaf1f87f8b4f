"""Random statements and random records: expressions of every type over columns of every type."""

from __future__ import annotations

import json
import random
from typing import Any

from tests.streams.columns.batches import Given

PLAIN = "i INT, b BIGINT, d DOUBLE, t STRING, f BOOLEAN"
DECIMALS = "m DECIMAL(6, 2)"
NESTED = "w TIMESTAMP, o STRUCT<a INT, x STRING>, l ARRAY<INT>, y BYTES, dd DATE"
READ = (
    "'yyyy-MM-dd'",
    "'yyyy-MM-dd''T''HH:mm:ss'",
    "'yyyy-MM-dd''T''HH:mm:ss.SSS', 'UTC'",
    "'yyyy-MM-dd', 'Europe/Oslo'",
    "'yyyy-M-d'",
)
WRITTEN = (
    "'yyyy-MM-dd HH:mm:ss.SSS'",
    "'EEE d MMMM yy, h:mm a X', 'UTC'",
    "'D/uuuu k Z z e'",
    "'HH:mm', 'Europe/Oslo'",
    "'SSSSSS'",
    "'YYYY'",
)
PATHS = ("'$.k[1].z'", "'$.k'", "'$.k[0]'", "'$'", "'$.u'", "'k'")
PADS = ("'*'", "'ü'", "'ab'", "''")
OLD = ("'a'", "''", "t")
PATTERNS = ("%a%", "b%", "%", "a_c%", "%\\%", "Straße", "", "_", "%e")
TEXTS = (
    "abc",
    "b",
    "",
    "a c",
    "12",
    "-7",
    "1e3",
    " 5 ",
    "true",
    "Straße",
    "ΣΑΣ",
    '"q"\\',
    "a\nb",
    "😀x",
    "1.50",
    "99999999999999999999",
    '{"k":[1,{"z":"ü"}]}',
    "2024-02-30",
    "2024-03-05T10:00:00",
    "2024-02-29",
    "1969-12-31T23:59:59.999",
    "0000-01-01",
    '{"k":[-0,1.50,null],"u":true,"u":"Ü"}',
)
WHOLE = (0, 1, -1, 2, 7, 10, -3, 2**31 - 1, -(2**31), 100_000)
LONG = (*WHOLE, 2**63 - 1, -(2**63), 2**53 + 1, 1_700_000_000_000)
REAL = (2.0**53, 0.0, -0.0, 1.5, -2.5, 1e-5, 1e17, 3.0, 1e308, 0.1, 123456789.125)


def source(value_format: str, *, nested: bool = True, decimals: bool = True) -> str:
    columns = ", ".join((PLAIN, *([DECIMALS] if decimals else []), *([NESTED] if nested else [])))
    return (
        f"CREATE STREAM s (k STRING KEY, {columns}) WITH (KAFKA_TOPIC='s', KEY_FORMAT='KAFKA', "
        f"VALUE_FORMAT='{value_format}', PARTITIONS=1);"
    )


class Expressions:
    """Texts of expressions, over sources with and without columns of types with parts, and decimals."""

    def __init__(self, rng: random.Random, *, nested: bool = True, decimals: bool = True) -> None:
        self.rng, self.nested, self.decimals = rng, nested, decimals

    def of(self, kind: str, depth: int = 3) -> str:
        made: str = getattr(self, f"_{kind}")(depth - 1)
        return made

    def _pick(self, leaves: list[str], deep: list[Any], depth: int) -> str:
        if depth <= 0 or self.rng.random() < 0.2:
            return self.rng.choice(leaves)
        found: str = self.rng.choice(deep)()
        return found

    def _case(self, kind: str, depth: int) -> str:
        otherwise = f" ELSE {self.of(kind, depth)}" if self.rng.random() < 0.6 else ""
        return f"CASE WHEN {self.of('bool', depth)} THEN {self.of(kind, depth)}{otherwise} END"

    def _int(self, depth: int) -> str:
        leaves = ["i", "i", str(self.rng.choice((0, 1, 2, 3, 7, 2147483647)))]
        if self.nested:
            leaves += ["o->a", "l[1]", "l[-2]"]
        return self._pick(
            leaves,
            [
                lambda: f"({self.of('int', depth)} {self.rng.choice('+-*/%')} {self.of('int', depth)})",
                lambda: f"CAST({self.of(self.rng.choice(('long', 'real', 'text')), depth)} AS INT)",
                lambda: f"LEN({self.of('text', depth)})",
                lambda: f"ABS({self.of('int', depth)})",
                lambda: f"COALESCE({self.of('int', depth)}, {self.of('int', depth)})",
                lambda: f"(0 - {self.of('int', depth)})",
                lambda: f"-({self.of('int', depth)})",
                lambda: f"GREATEST({self.of('int', depth)}, {self.of('int', depth)})",
                lambda: f"INSTR({self.of('text', depth)}, 'a')",
                lambda: f"SIGN({self.of(self.rng.choice(('int', 'long', 'real')), depth)})",
                lambda: self._case("int", depth),
            ],
            depth,
        )

    def _long(self, depth: int) -> str:
        return self._pick(
            ["b", "b", "ROWTIME", "ROWOFFSET", "3000000000"],
            [
                lambda: f"({self.of('long', depth)} {self.rng.choice('+-*/%')} {self.of('int', depth)})",
                lambda: f"CAST({self.of(self.rng.choice(('real', 'text', 'int')), depth)} AS BIGINT)",
                lambda: f"ROUND({self.of('real', depth)})",
                lambda: f"TRUNC({self.of(self.rng.choice(('real', 'int')), depth)})",
                lambda: f"STRINGTOTIMESTAMP({self.of('text', depth)}, {self.rng.choice(READ)})",
                lambda: f"UNIX_TIMESTAMP(FROM_UNIXTIME({self.of('long', depth)}))",
                lambda: f"NULLIF({self.of('long', depth)}, {self.of('long', depth)})",
                lambda: f"IFNULL({self.of('long', depth)}, {self.of('long', depth)})",
                lambda: f"LEAST({self.of('long', depth)}, {self.of('long', depth)})",
                lambda: self._case("long", depth),
            ],
            depth,
        )

    def _real(self, depth: int) -> str:
        return self._pick(
            ["d", "d", "1.5E0", "0E0", "1E300"],
            [
                lambda: f"({self.of('real', depth)} {self.rng.choice('+-*/%')} {self.of('real', depth)})",
                lambda: f"({self.of('int', depth)} {self.rng.choice('+-*/%')} {self.of('real', depth)})",
                lambda: f"CAST({self.of(self.rng.choice(('int', 'long', 'text')), depth)} AS DOUBLE)",
                lambda: f"FLOOR({self.of('real', depth)})",
                lambda: f"CEIL({self.of('real', depth)})",
                lambda: f"ABS({self.of('real', depth)})",
                lambda: f"SQRT({self.of(self.rng.choice(('real', 'long')), depth)})",
                lambda: f"ROUND({self.of('real', depth)}, {self.rng.choice((0, 1, 2, 3, -1))})",
                lambda: f"TRUNC({self.of('real', depth)}, 1)",
                lambda: self._case("real", depth),
            ],
            depth,
        )

    def _text(self, depth: int) -> str:
        leaves = ["t", "t", "k", "'abc'", "'Straße'", "''"]
        if self.nested:
            leaves += ["o->x"]
        rng = self.rng
        return self._pick(
            leaves,
            [
                lambda: f"{rng.choice(('UCASE', 'LCASE', 'TRIM', 'INITCAP'))}({self.of('text', depth)})",
                lambda: f"CONCAT({self.of('text', depth)}, {self.of('text', depth)})",
                lambda: f"({self.of('text', depth)} + {self.of('text', depth)})",
                lambda: (
                    f"SUBSTRING({self.of('text', depth)}, {rng.choice((0, 1, 2, -2))}"
                    f"{rng.choice(('', ', 2', ', 0'))})"
                ),
                lambda: f"REPLACE({self.of('text', depth)}, {rng.choice(OLD)}, 'xy')",
                lambda: f"CAST({self.of(rng.choice(('int', 'long', 'real', 'bool')), depth)} AS STRING)",
                lambda: f"EXTRACTJSONFIELD({self.of('text', depth)}, {rng.choice(PATHS)})",
                lambda: f"CONCAT_WS('-', {self.of('text', depth)}, {self.of('text', depth)}, 'x')",
                lambda: (
                    f"{rng.choice('LR')}PAD({self.of('text', depth)}, {rng.choice((0, 3, 7, -1))}, "
                    f"{rng.choice(PADS)})"
                ),
                lambda: f"TIMESTAMPTOSTRING({self.of('long', depth)}, {rng.choice(WRITTEN)})",
                lambda: f"FORMAT_TIMESTAMP(FROM_UNIXTIME({self.of('long', depth)}), {rng.choice(WRITTEN)})",
                lambda: (
                    f"FORMAT_TIMESTAMP(PARSE_TIMESTAMP({self.of('text', depth)}, {rng.choice(READ)}), "
                    f"{rng.choice(WRITTEN)})"
                ),
                lambda: f"SPLIT({self.of('text', depth)}, 'b')[1]",
                lambda: f"NULLIF({self.of('text', depth)}, 'b')",
                lambda: self._case("text", depth),
            ]
            + (
                [
                    lambda: "FORMAT_TIMESTAMP(w, 'yyyy-MM-dd HH:mm:ss')",
                    lambda: "CAST(w AS STRING)",
                ]
                if self.nested
                else []
            ),
            depth,
        )

    def _bool(self, depth: int) -> str:
        rng = self.rng
        compare = ("=", "<>", "<", "<=", ">", ">=")
        numbers = ("int", "long", "real")
        deep = [
            lambda: (
                f"({self.of(rng.choice(numbers), depth)} {rng.choice(compare)} "
                f"{self.of(rng.choice(numbers), depth)})"
            ),
            lambda: f"({self.of('text', depth)} {rng.choice(compare)} {self.of('text', depth)})",
            lambda: f"({self.of('bool', depth)} {rng.choice(('AND', 'OR'))} {self.of('bool', depth)})",
            lambda: f"(NOT {self.of('bool', depth)})",
            lambda: f"({self.of(rng.choice((*numbers, 'text')), depth)} IS {rng.choice(('', 'NOT '))}NULL)",
            lambda: (
                f"({self.of('int', depth)} {rng.choice(('', 'NOT '))}BETWEEN 0 AND {self.of('int', depth)})"
            ),
            lambda: f"({self.of('int', depth)} {rng.choice(('', 'NOT '))}IN (1, 2, 7))",
            lambda: f"({self.of('text', depth)} IN ('abc', 'b', ''))",
            lambda: f"({self.of('text', depth)} {rng.choice(('', 'NOT '))}LIKE '{rng.choice(PATTERNS)}')",
            lambda: self._case("bool", depth),
        ]
        if self.nested:
            deep += [lambda: "(w >= '2024-01-01T00:00:00')", lambda: "(o IS NULL)"]
        if self.decimals:
            deep += [lambda: "(m > 1.5)", lambda: "(CAST(m AS STRING) = '2.25')"]
        return self._pick(["f", "f", "(i > 1)", "(t = 'b')", "(b = d)", "(d < b)"], deep, depth)

    def _decimal(self, depth: int) -> str:
        return self._pick(["m"], [lambda: "(m * m)", lambda: "(m + 1)", lambda: "(m / i)"], depth)

    def kinds(self) -> list[str]:
        return ["int", "long", "real", "text", "bool", *(["decimal"] if self.decimals else [])]


def value(rng: random.Random) -> bytes | None:
    """A JSON document: mostly one that fits, sometimes one that needs coercions or cannot be read."""
    if rng.random() < 0.02:
        return None
    if rng.random() < 0.03:
        return rng.choice((b"{", b"[1]", b'"text"', b"null", b"7", b"\xff", b'{"i": {}}', b'["i"]'))
    row: dict[str, Any] = {
        "i": rng.choice(WHOLE),
        "b": rng.choice(LONG),
        "d": rng.choice(REAL),
        "t": rng.choice(TEXTS),
        "f": rng.random() < 0.5,
        "m": rng.choice((1, 2.25, "3.50", -1.5, 0)),
        "w": rng.choice((0, 1_709_632_800_123, 1_000)),
        "o": rng.choice(({"A": 1, "X": "x"}, {"a": None}, {}, {"x": "Ü", "more": [1]})),
        "l": rng.choice(([], [1, 2, 3], [None, -1])),
        "y": rng.choice(("", "AAEC")),
        "dd": rng.choice((0, 19_000)),
    }
    for name in rng.sample(list(row), rng.randrange(4)):
        if rng.random() < 0.5:
            del row[name]
        else:
            row[name] = None
    if rng.random() < 0.1:
        name, strange = rng.choice(
            (("i", "12"), ("i", 1.9), ("i", 2**40), ("i", "x"), ("b", True), ("d", 3), ("d", "2.5"), ("t", 7),
             ("t", 1.10), ("t", {"z": 1.5}), ("f", 1), ("m", "1.234"), ("w", "no"), ("o", 3), ("l", {}),
             ("y", "?"), ("b", 2**70), ("d", 2**60 + 1), ("I", 5), ("dd", "1"))
        )  # fmt: skip
        row[name] = strange
    shape = list(row.items())
    if rng.random() < 0.2:
        rng.shuffle(shape)

    return json.dumps(
        {(name.upper() if rng.random() < 0.02 else name): each for name, each in shape}
    ).encode()


def delimited(rng: random.Random) -> bytes | None:
    cells = [
        rng.choice((*map(str, WHOLE), "", " 5", "x", "+3", "1_0"))
        if rng.random() < 0.1
        else str(rng.choice(WHOLE)),
        str(rng.choice(LONG)),
        rng.choice(("", "1.5", "-0.25", "1e3", "NaN", "x"))
        if rng.random() < 0.1
        else str(rng.randrange(99) / 4),
        rng.choice(('"a,b"', '""""', "a b", "", "Straße"))
        if rng.random() < 0.1
        else rng.choice(("abc", "b", "x y")),
        rng.choice(("true", "false", "TRUE", "")),
    ]
    if rng.random() < 0.02:
        cells = cells[: rng.randrange(4)]
    return None if rng.random() < 0.02 else ",".join(cells).encode()


def records(rng: random.Random, count: int, make: Any = value, *, start: int = 0) -> list[Given]:
    found: list[Given] = []
    now = start
    for _ in range(count):
        now += rng.choice((0, 0, 1, 5_000, 30_000))
        key = None if rng.random() < 0.05 else rng.choice((b"a", b"bb", b"", "ü".encode(), b"a long key"))
        if rng.random() < 0.01:
            key = b"\xff"
        found.append((key, make(rng), max(0, now - rng.choice((0, 0, 1, 20_000)))))
    return found
