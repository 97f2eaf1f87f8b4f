"""Tables of schema pairs: files that say what keeps a new schema from reading old data, and the reverse.

`pairs/<type>/*.yaml` holds lists of pairs. `old` and `new` are texts, or values that stand for their JSON.
`backward` lists why the new schema cannot read data of the old one, `forward` why the old one cannot read
data of the new one: a kind, or a kind and a path. `policy` is STRICT or LENIENT. `references` is a list of
{name, text}, for both schemas.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml

from barnabas.schemas.model import CompatibilityPolicy, ParsedSchema, Reference, ResolvedReference, SchemaType
from barnabas.schemas.parsing import PARSERS, parse

FOLDER = Path(__file__).parent / "pairs"
KEYS = {"name", "old", "new", "backward", "forward", "policy", "references"}


@dataclass(frozen=True, slots=True)
class Pair:
    schema_type: SchemaType
    table: str
    name: str
    old: str
    new: str
    backward: tuple[str, ...]
    forward: tuple[str, ...]
    policy: CompatibilityPolicy
    references: tuple[ResolvedReference, ...]

    def __str__(self) -> str:
        return f"{self.schema_type.lower()}/{self.table}: {self.name}"

    def parsed(self) -> tuple[ParsedSchema, ParsedSchema]:
        old, new = (parse(self.schema_type, text, self.references) for text in (self.old, self.new))
        return old, new

    def is_compatible(self, level: str) -> bool:
        """The verdict of the table at a level, against one version."""
        if level == "NONE":
            return True
        base = level.removesuffix("_TRANSITIVE")
        return not ((base != "FORWARD" and self.backward) or (base != "BACKWARD" and self.forward))


def _text(schema: Any) -> str:
    return schema if isinstance(schema, str) else json.dumps(schema)


def _pair(schema_type: SchemaType, table: str, row: dict[str, Any]) -> Pair:
    assert row.keys() <= KEYS, f"{table}: unknown keys in {row}"
    references = tuple(
        ResolvedReference(Reference(found["name"], found["name"], 1), found["text"])
        for found in row.get("references", ())
    )
    return Pair(
        schema_type,
        table,
        row["name"],
        _text(row["old"]),
        _text(row["new"]),
        tuple(row["backward"]),
        tuple(row["forward"]),
        CompatibilityPolicy(row.get("policy", "STRICT")),
        references,
    )


def pairs_of(schema_type: SchemaType) -> list[Pair]:
    """All pairs of a type, in the order of the files."""
    found = []
    for path in sorted((FOLDER / schema_type.lower()).glob("*.yaml")):
        rows = yaml.load(path.read_text(), Loader=yaml.CSafeLoader)
        found += [_pair(schema_type, path.stem, row) for row in rows]
    return found


def all_pairs() -> list[Pair]:
    """The pairs of all types that can be parsed."""
    return [
        pair
        for schema_type, module in PARSERS.items()
        if find_spec(module.rpartition(".")[0]) and find_spec(module)
        for pair in pairs_of(schema_type)
    ]


def told(reader: ParsedSchema, writer: ParsedSchema, pair: Pair, expected: tuple[str, ...]) -> list[str]:
    """Kinds that the comparison finds, with paths where the table has them."""
    found = reader.incompatibilities(writer, pair.policy)
    if all(" " not in one for one in expected) and expected:
        return sorted(one.kind for one in found)
    return sorted(f"{one.kind} {one.path}" for one in found)
