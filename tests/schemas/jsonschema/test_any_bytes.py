"""Whatever is sent as a JSON schema is parsed and compared, or refused with InvalidSchema."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from barnabas.schemas.jsonschema.parsing import JsonSchema, parse
from barnabas.schemas.model import CompatibilityPolicy, InvalidSchema, Reference, ResolvedReference

from .test_json_parsing import DRAFTS

ADDRESSES = [
    "#",
    "#/definitions/a",
    "#/$defs/a",
    "#a",
    "a.json",
    "a.json#/properties/a",
    "http://x/y",
    "x/",
    "//[",
]
PATTERNS = ["^a", "(a+)+$", "(?=a)", "[", "\\p{L}", "a", "", "é"]
TYPES = ["string", "number", "integer", "object", "array", "null", "boolean"]
NAMES = st.sampled_from(["a", "b", "c", "é", "$ref", "properties"])
NUMBERS = st.sampled_from([0, 1, 2, 3, 10, 2**70, 0.5, 1e300, -0.0, -1])
SCALARS = st.one_of(st.none(), st.booleans(), NUMBERS, st.sampled_from([*ADDRESSES, *PATTERNS, *TYPES]))
LISTS_OF_NAMES = st.lists(NAMES, max_size=2, unique=True)
SIMPLE: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(["$ref", "$id", "id", "$dynamicRef", "$recursiveRef"], st.sampled_from(ADDRESSES)),
    **dict.fromkeys(
        ["$anchor", "$dynamicAnchor", "title", "description", "format"], st.sampled_from(["a", "b"])
    ),
    "$schema": st.sampled_from([*DRAFTS, "http://unknown/"]),
    "type": st.one_of(st.sampled_from(TYPES), st.lists(st.sampled_from(TYPES), min_size=1, unique=True)),
    "pattern": st.sampled_from(PATTERNS),
    "connect.type": st.just("bytes"),
    "required": LISTS_OF_NAMES,
    "dependentRequired": st.dictionaries(NAMES, LISTS_OF_NAMES, max_size=2),
    **dict.fromkeys(["nullable", "uniqueItems", "$recursiveAnchor"], st.booleans()),
    **dict.fromkeys(["const", "default", "examples"], SCALARS),
    "enum": st.lists(SCALARS, min_size=1, max_size=3, unique_by=json.dumps),
    **dict.fromkeys(
        """minLength maxLength minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minItems maxItems
        minContains maxContains minProperties maxProperties""".split(),  # noqa: SIM905
        NUMBERS,
    ),
}


def schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Objects with keywords of any draft, with values that are mostly of the right kind."""
    named = st.dictionaries(NAMES, inner, max_size=2)
    members = st.lists(inner, min_size=1, max_size=3)
    of_schemas: dict[str, st.SearchStrategy[Any]] = {
        **dict.fromkeys(["allOf", "anyOf", "oneOf", "prefixItems"], members),
        **dict.fromkeys(["properties", "definitions", "$defs", "dependentSchemas"], named),
        "dependencies": st.dictionaries(NAMES, st.one_of(inner, LISTS_OF_NAMES), max_size=2),
        "patternProperties": st.dictionaries(st.sampled_from(PATTERNS), inner, max_size=2),
        "items": st.one_of(inner, members),
        **dict.fromkeys(
            """not if then else contains propertyNames additionalItems unevaluatedItems additionalProperties
            unevaluatedProperties""".split(),  # noqa: SIM905
            st.one_of(inner, st.booleans()),
        ),
    }
    known = {**SIMPLE, **of_schemas}
    pairs = st.sampled_from(sorted(known)).flatmap(
        lambda key: st.tuples(
            st.just(key), st.integers(0, 30).flatmap(lambda dice: known[key] if dice else SCALARS)
        )
    )
    return st.lists(pairs, min_size=1, max_size=5).map(dict)


ANYTHING = st.recursive(
    st.one_of(st.just({"type": "string"}), st.booleans(), st.just({})), schemas, max_leaves=12
)


def parsed(value: Any) -> JsonSchema | None:
    reference = ResolvedReference(
        Reference("a.json", "a", 1), '{"type":"object","properties":{"a":{"$ref":"#"}}}'
    )
    try:
        return parse(json.dumps(value), [reference])
    except InvalidSchema as refusal:
        assert str(refusal)
        return None


def check(values: list[Any]) -> None:
    good = [schema for value in values if (schema := parsed(value)) is not None]
    event(f"{len(good)} of {len(values)} are schemas")
    for schema in good:
        assert schema.normalized().canonical
        schema.field_names()
        for other in good:
            for policy in CompatibilityPolicy:
                found = schema.incompatibilities(other, policy)
                assert all(one.text and one.path.startswith("#/") for one in found)
                if schema is other or schema.canonical == other.canonical:
                    assert found == []


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(ANYTHING, min_size=1, max_size=2))
def test_any_json_is_judged(values: list[Any]) -> None:
    check(values)


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.text(max_size=200))
def test_any_text_is_judged(text: str) -> None:
    try:
        parse(text)
    except InvalidSchema as refusal:
        assert str(refusal)


@pytest.mark.long
@settings(max_examples=1_500, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(ANYTHING, min_size=1, max_size=3))
def test_much_more_json_is_judged(values: list[Any]) -> None:
    check(values)
