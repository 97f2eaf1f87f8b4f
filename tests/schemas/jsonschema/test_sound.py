"""A schema that is declared compatible accepts what the other one accepts.

The comparison follows the rules of Confluent's registry, and some of them are looser than that. So these
schemas are generated without:
- keywords that are not compared: format, if/then/else, propertyNames, patternProperties (except that their
  schemas cover properties), what `contains` accepts;
- names in `required` that are no properties;
- keywords without a `type`: a limit on texts counts as a schema of texts;
- `oneOf` whose members overlap: a value of one member may become one of two;
- properties that become required with a default: the reader fills the default in;
- undeclared properties beside patternProperties in an open model, and the policy LENIENT.
"""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from barnabas.schemas.jsonschema.parsing import parse
from barnabas.schemas.model import CompatibilityPolicy

Schema = dict[str, Any]
STRICT = CompatibilityPolicy.STRICT
NAMES = ["a", "b", "c", "d"]


def limits(low: str, high: str, most: int) -> st.SearchStrategy[Schema]:
    """A lower limit below an upper one; each may be absent."""
    return st.tuples(st.integers(0, most), st.integers(0, most), st.booleans(), st.booleans()).map(
        lambda drawn: {
            **({low: min(drawn[:2])} if drawn[2] else {}),
            **({high: max(drawn[:2])} if drawn[3] else {}),
        }
    )


def with_type(name: str, keywords: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    return keywords.map(lambda found: {"type": name, **found})


SCALARS = st.one_of(
    with_type("string", limits("minLength", "maxLength", 5)),
    with_type("integer", limits("minimum", "maximum", 9)),
    with_type("number", limits("exclusiveMinimum", "exclusiveMaximum", 4).filter(lambda keys: len(keys) < 2)),
    with_type("integer", st.sampled_from([{}, {"multipleOf": 2}, {"multipleOf": 3}, {"multipleOf": 6}])),
    st.just({"type": "boolean"}),
    st.just({"type": "null"}),
    st.just({"type": ["string", "null"]}),
    st.just({"type": ["integer", "null"]}),
    st.lists(st.sampled_from(["x", "y", "z", 1, None]), min_size=1, unique_by=repr).map(
        lambda v: {"enum": v}
    ),
    st.sampled_from([{"const": 1}, {"const": "x"}]),
    st.just({}),
)


def nested(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    rest = st.one_of(st.just(True), st.just(False), inner)
    objects = st.builds(
        lambda properties, required, additional, counts: {
            "type": "object",
            "properties": properties,
            "required": [name for name in required if name in properties],
            "additionalProperties": additional,
            **counts,
        },
        st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
        st.lists(st.sampled_from(NAMES), unique=True, max_size=2),
        rest,
        limits("minProperties", "maxProperties", 5),
    )
    arrays = st.builds(
        lambda items, counts, unique: {"type": "array", "items": items, **counts, **unique},
        inner,
        limits("minItems", "maxItems", 3),
        st.sampled_from([{}, {"uniqueItems": True}]),
    )
    tuples = st.builds(
        lambda items, additional: {"type": "array", "items": items, "additionalItems": additional},
        st.lists(inner, min_size=1, max_size=3),
        rest,
    )
    members = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        objects,
        arrays,
        tuples,
        members.map(lambda found: {"anyOf": found}),
        members.map(lambda found: {"allOf": found}),
        inner.map(lambda found: {"not": found}),
    )


SCHEMAS = st.recursive(SCALARS, nested, max_leaves=6)


@st.composite
def evolved(draw: st.DrawFn, schema: Schema) -> Schema:
    """The schema with one change somewhere, of the kind that people make."""
    found = json.loads(json.dumps(schema))
    places = [found]
    for place in places:
        for key, value in place.items():
            if key in ("anyOf", "allOf") or (key == "items" and isinstance(value, list)):
                places += value
            elif key == "properties":
                places += value.values()
            elif key in ("items", "not", "additionalProperties", "additionalItems") and isinstance(
                value, dict
            ):
                places.append(value)
    place = draw(st.sampled_from(places))
    numbers = [
        key for key, value in place.items() if type(value) is int and key not in ("const", "multipleOf")
    ]
    changes = ["replace", "limit"] if numbers else ["replace"]
    if place.get("type") == "integer":
        changes += ["number"]
    if "properties" in place:
        changes += ["add", "drop", "required", "open", "close"]
    if "anyOf" in place or "allOf" in place or "enum" in place:
        changes += ["member", "fewer"]
    change = draw(st.sampled_from(changes))
    if change == "limit":
        key = draw(st.sampled_from(numbers))
        place[key] = max(0, place[key] + draw(st.sampled_from([-1, 1, 2])))
    elif change == "number":
        place["type"] = "number"
    elif change == "add":
        place["properties"][draw(st.sampled_from(NAMES))] = draw(SCALARS)
    elif change == "drop":
        place["properties"] = dict(list(place["properties"].items())[1:])
        place["required"] = [name for name in place["required"] if name in place["properties"]]
    elif change == "required":
        place["required"] = draw(st.sampled_from([[], list(place["properties"])]))
    elif change in ("open", "close"):
        place["additionalProperties"] = change == "open"
    elif change in ("member", "fewer"):
        key = next(key for key in ("anyOf", "allOf", "enum") if key in place)
        more = [*place[key], "w" if key == "enum" else draw(SCALARS)]
        place[key] = more if change == "member" else place[key][:1]
    else:
        fresh = draw(SCALARS)
        place.clear()
        place.update(fresh)
    return found


def values(schema: Schema | bool, depth: int = 0) -> st.SearchStrategy[Any]:
    """Values that the schema may accept: likely, not certainly."""
    if schema is False:
        return st.nothing()
    if schema is True or not schema or depth > 4:
        return st.sampled_from([None, True, 0, 1, -3, 2.5, "", "x", "xyz", [], [1], {}, {"a": 1}])
    for key in ("anyOf", "allOf"):
        if key in schema:
            return st.one_of([values(member, depth + 1) for member in schema[key]])
    if "enum" in schema or "const" in schema:
        return st.sampled_from(schema.get("enum", [schema.get("const")]))
    if "not" in schema:
        return values(True)
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return st.one_of([values_of(kind, schema, depth) for kind in kinds])


def values_of(kind: str, schema: Schema, depth: int) -> st.SearchStrategy[Any]:
    if kind == "object":
        rest = values(schema.get("additionalProperties", True), depth + 1)
        return st.fixed_dictionaries(
            {name: values(schema["properties"][name], depth + 1) for name in schema["required"]},
            optional={
                name: values(schema["properties"][name], depth + 1) if name in schema["properties"] else rest
                for name in NAMES
                if name not in schema["required"] and (name in schema["properties"] or not rest.is_empty)
            },
        )
    if kind == "array":
        items = schema["items"]
        if isinstance(items, list):
            rest = values(schema.get("additionalItems", True), depth + 1)
            first = st.tuples(*(values(item, depth + 1) for item in items)).map(list)
            more = st.just([]) if rest.is_empty else st.lists(rest, max_size=2)
            return st.tuples(first, more).map(lambda both: both[0] + both[1])
        return st.lists(values(items, depth + 1), min_size=schema.get("minItems", 0), max_size=3)
    simple: dict[str, st.SearchStrategy[Any]] = {
        "string": st.text("xy", max_size=6),
        "integer": st.integers(-2, 12),
        "number": st.sampled_from([-1, 0, 0.5, 1, 2, 2.5, 3, 4, 4.5, 6, 12]),
        "boolean": st.booleans(),
        "null": st.none(),
    }
    return simple[kind]


def is_satisfiable(strategy: st.SearchStrategy[Any]) -> bool:
    return not strategy.is_empty


def holds_for(data: st.DataObject, old: Schema, new: Schema) -> None:
    found = parse(json.dumps(new)).incompatibilities(parse(json.dumps(old)), STRICT)
    event("incompatible" if found else "compatible")
    assume(not found)
    candidates = values(old)
    assume(is_satisfiable(candidates))
    before, after = (jsonschema.Draft7Validator(schema) for schema in (old, new))
    for value in data.draw(st.lists(candidates, min_size=1, max_size=8)):
        if before.is_valid(value):
            assert after.is_valid(value), f"{value!r} is valid in {old}, not in {new}"


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(SCHEMAS, st.data())
def test_what_the_old_schema_accepts_a_compatible_new_one_accepts(old: Schema, data: st.DataObject) -> None:
    holds_for(data, old, data.draw(evolved(old)))


@pytest.mark.long
@settings(max_examples=5_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(SCHEMAS, st.data())
def test_the_same_with_many_more_schemas(old: Schema, data: st.DataObject) -> None:
    new = data.draw(evolved(old))
    holds_for(data, old, data.draw(st.one_of(st.just(new), evolved(new))))


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(SCALARS, SCALARS, st.data())
def test_unrelated_schemas_are_declared_compatible_only_if_they_are(
    old: Schema, new: Schema, data: st.DataObject
) -> None:
    holds_for(data, old, new)


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(SCHEMAS)
def test_a_schema_is_compatible_with_itself_written_in_another_way(schema: Schema) -> None:
    parsed = parse(json.dumps(schema))
    assert parsed.normalized().differences(parse(json.dumps(schema, indent=2)), STRICT) in (
        [],
        _of_negations(schema),
    )
    assert parse(json.dumps(schema, sort_keys=True)).incompatibilities(parsed, STRICT) == []


def _of_negations(schema: Schema) -> object:
    """A negation that stays is told as NOT_TYPE_NARROWED, which is compatible."""
    found = parse(json.dumps(schema)).differences(parse(json.dumps(schema)), STRICT)
    assert {difference.kind for difference in found} <= {"NOT_TYPE_NARROWED"}
    return found
