"""Drafts of JSON Schema: which one a text is in, which keywords hold schemas, and whether a text keeps to it.

In: the tree of a schema. Out: its draft, its subschemas with their paths, or InvalidSchema with the path.
Does not know: references, comparing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from jsonschema import validators
from jsonschema.protocols import Validator
from referencing import Specification
from referencing.jsonschema import DRAFT4, DRAFT6, DRAFT7, DRAFT201909, DRAFT202012

from barnabas.schemas.jsonschema import patterns
from barnabas.schemas.jsonschema.texts import Json, written
from barnabas.schemas.model import InvalidSchema

MESSAGE_MAX = 300  # characters of the library's messages, which quote the schema

# Texts of small schemas that were found valid, by draft. Most schemas hold the same few, such as a text.
REMEMBERED_MAX = 5_000
REMEMBERED_CHARACTERS_MAX = 500
_valid: set[tuple[int, str]] = set()

# Keywords whose value is a schema, a list of schemas, or an object of schemas; the first draft that has them.
OF_ONE = {
    "additionalItems": 4,
    "additionalProperties": 4,
    "contains": 6,
    "contentSchema": 2019,
    "else": 7,
    "if": 7,
    "items": 4,
    "not": 4,
    "propertyNames": 6,
    "then": 7,
    "unevaluatedItems": 2019,
    "unevaluatedProperties": 2019,
}
OF_LISTS = {"allOf": 4, "anyOf": 4, "items": 4, "oneOf": 4, "prefixItems": 2020}
OF_OBJECTS = {
    "$defs": 2019,
    "definitions": 4,
    "dependencies": 4,
    "dependentSchemas": 2019,
    "patternProperties": 4,
    "properties": 4,
}
# Keywords that only describe. Other registries accept any value of them.
UNCHECKED = frozenset(
    {"$comment", "contentEncoding", "contentMediaType", "deprecated", "examples", "readOnly", "writeOnly"}
)
DROPPED = {"additionalItems": 2020}  # the first draft without the keyword


NO_DRAFT = 9999


@dataclass(frozen=True, slots=True)
class Draft:
    number: int  # 4, 6, 7, 2019, 2020: in order
    uri: str
    specification: Specification[Any]  # what `referencing` knows of it

    @property
    def id_key(self) -> str:
        return "id" if self.number == 4 else "$id"


DRAFTS = (
    Draft(4, "http://json-schema.org/draft-04/schema", DRAFT4),
    Draft(6, "http://json-schema.org/draft-06/schema", DRAFT6),
    Draft(7, "http://json-schema.org/draft-07/schema", DRAFT7),
    Draft(2019, "https://json-schema.org/draft/2019-09/schema", DRAFT201909),
    Draft(2020, "https://json-schema.org/draft/2020-12/schema", DRAFT202012),
)
DRAFT_BY_NUMBER = {draft.number: draft for draft in DRAFTS}
DEFAULT = DRAFT_BY_NUMBER[7]
DRAFT_BY_PLACE = {draft.uri.partition("//")[2]: draft for draft in DRAFTS}  # http or https


def draft_of(tree: Json, default: Draft = DEFAULT) -> Draft:
    """The draft that `$schema` names; the default if there is none, or one that nobody knows."""
    uri = tree.get("$schema") if isinstance(tree, dict) else None
    if uri is None:
        return default
    if not isinstance(uri, str):
        raise InvalidSchema("#/$schema: the draft must be a text")
    return DRAFT_BY_PLACE.get(uri.rstrip("#").partition("//")[2], default)


def children(schema: dict[str, Json], draft: Draft) -> Iterator[tuple[str, Json]]:
    """The schemas directly inside a schema, with their paths from there. References are not followed."""
    for key, found in schema.items():
        if draft.number >= DROPPED.get(key, draft.number + 1):
            continue
        if isinstance(found, dict | bool) and OF_ONE.get(key, NO_DRAFT) <= draft.number:
            yield key, found
        elif isinstance(found, list) and OF_LISTS.get(key, NO_DRAFT) <= draft.number:
            yield from ((f"{key}/{index}", member) for index, member in enumerate(found))
        elif isinstance(found, dict) and OF_OBJECTS.get(key, NO_DRAFT) <= draft.number:
            for name, member in found.items():
                if isinstance(member, dict | bool):  # a dependency may be a list of names
                    yield f"{key}/{name}", member


def subschemas(schema: Json, draft: Draft, path: str = "#") -> Iterator[tuple[str, dict[str, Json]]]:
    """A schema and all schemas inside it that are objects, with their paths."""
    waiting = [(path, schema)]
    while waiting:
        where, found = waiting.pop()
        if isinstance(found, dict):
            yield where, found
            waiting.extend((f"{where}/{inner}", child) for inner, child in children(found, draft))


def check(tree: Json, draft: Draft, path: str = "#") -> None:
    """InvalidSchema unless the tree is a schema of that draft."""
    if not isinstance(tree, dict | bool):
        raise InvalidSchema(f"{path}: a JSON schema is an object, true or false")
    if isinstance(tree, bool) and draft.number == 4:
        raise InvalidSchema(f"{path}: a schema of draft 4 is an object")
    for where, schema in subschemas(tree, draft, path):
        _check_one(schema, draft, where)
        _check_patterns(schema, where)


def _check_one(schema: dict[str, Json], draft: Draft, path: str) -> None:
    alone = _alone(schema, draft)
    key = (draft.number, written(alone))
    if key in _valid:
        return
    for error in _meta_validator(draft).iter_errors(alone):
        at = [str(segment) for segment in error.absolute_path]
        if len(at) != 1 or at[0] not in UNCHECKED:
            raise InvalidSchema(f"{'/'.join([path, *at])}: {error.message[:MESSAGE_MAX]}")
    if len(key[1]) <= REMEMBERED_CHARACTERS_MAX:
        if len(_valid) >= REMEMBERED_MAX:
            _valid.clear()
        _valid.add(key)


def _alone(schema: dict[str, Json], draft: Draft) -> dict[str, Json]:
    """A schema whose inner schemas are replaced by one that accepts all. They are checked one by one: the
    library calls itself for each level, and Python allows few of its calls."""
    anything: Json = {} if draft.number == 4 else True
    found = dict(schema)
    for key, value in schema.items():
        if draft.number >= DROPPED.get(key, NO_DRAFT + 1):
            continue
        if isinstance(value, dict) and OF_ONE.get(key, NO_DRAFT) <= draft.number:
            found[key] = anything
        elif isinstance(value, list) and OF_LISTS.get(key, NO_DRAFT) <= draft.number:
            found[key] = [anything if isinstance(member, dict) else member for member in value]
        elif isinstance(value, dict) and OF_OBJECTS.get(key, NO_DRAFT) <= draft.number:
            found[key] = {name: anything if isinstance(one, dict) else one for name, one in value.items()}
    return found


def _check_patterns(schema: dict[str, Json], path: str) -> None:
    pattern = schema.get("pattern")
    if isinstance(pattern, str):
        patterns.check(pattern, f"{path}/pattern")
    by_pattern = schema.get("patternProperties")
    if isinstance(by_pattern, dict):
        for key in by_pattern:
            patterns.check(key, f"{path}/patternProperties/{key}")


@cache
def _meta_validator(draft: Draft) -> Validator:
    found = validators.validator_for({"$schema": draft.uri + ("#" if draft.number <= 7 else "")})
    # No formats: the library would compile regular expressions and parse addresses of whoever sends a schema.
    return found(found.META_SCHEMA)
