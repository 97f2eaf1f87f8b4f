"""JSON schemas are parsed, printed as they were written, and refused with a path where they are none."""

from __future__ import annotations

import json

import pytest

from barnabas.schemas.jsonschema import steps, texts
from barnabas.schemas.jsonschema.parsing import JsonSchema, parse
from barnabas.schemas.model import (
    CompatibilityPolicy,
    InvalidSchema,
    ParsedSchema,
    Reference,
    ResolvedReference,
    SchemaType,
)
from barnabas.schemas.parsing import parse as parse_any_type

DRAFTS = [
    "http://json-schema.org/draft-04/schema#",
    "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
]


def referring_to(name: str, text: str, *inner: Reference) -> ResolvedReference:
    return ResolvedReference(Reference(name, f"subject-of-{name}", 1), text, inner)


def test_a_schema_is_found_by_its_type() -> None:
    schema: ParsedSchema = parse_any_type("JSON", '{"title": "T", "properties": {"a": {}, "b": {}}}')
    assert schema.schema_type is SchemaType.JSON
    assert schema.name == "T"
    assert schema.field_names() == {"a", "b"}
    assert schema.formatted("resolved") == schema.canonical


@pytest.mark.parametrize(
    ("text", "canonical", "normalized"),
    [
        ('{ "b" : 1, "a" : 2 }', '{"b":1,"a":2}', '{"a":2,"b":1}'),
        (
            '{"maximum": 1.0, "minimum": -1e5, "x": [1E+2, 1.10, -0, 12345678901234567890]}',
            '{"maximum":1.0,"minimum":-1e5,"x":[1E+2,1.10,-0,12345678901234567890]}',
            '{"maximum":1.0,"minimum":-1e5,"x":[1E+2,1.10,-0,12345678901234567890]}',
        ),
        (
            '{"x":{"b":[{"d":1,"c":2}],"a":0}}',
            '{"x":{"b":[{"d":1,"c":2}],"a":0}}',
            '{"x":{"a":0,"b":[{"c":2,"d":1}]}}',
        ),
        ('{"x":"\\u00e9\\/\\u001f\\n\\ud83d\\ude00"}', '{"x":"é/\\u001F\\n😀"}', '{"x":"é/\\u001F\\n😀"}'),
        ('{"\\uff5e":1,"\\ud83d\\ude00":2}', '{"～":1,"😀":2}', '{"😀":2,"～":1}'),
        (" true ", "true", "true"),
        ("false", "false", "false"),
        ("{}", "{}", "{}"),
    ],
)
def test_texts_lose_spaces_and_nothing_else(text: str, canonical: str, normalized: str) -> None:
    schema = parse(text)
    assert schema.canonical == canonical
    assert schema.normalized().canonical == normalized
    assert parse(canonical).canonical == canonical
    assert schema.normalized() == parse(normalized).normalized()


def test_references_are_sorted_and_made_unique_by_normalizing() -> None:
    b, a = referring_to("b.json", "{}"), referring_to("a.json", "true")
    schema = parse('{"allOf":[{"$ref":"a.json"},{"$ref":"b.json"}]}', [b, a])
    assert [found.name for found in schema.references] == ["b.json", "a.json"]
    assert [found.name for found in schema.normalized().references] == ["a.json", "b.json"]


def test_references_of_references_are_resolved_but_not_the_schemas_own() -> None:
    inner = referring_to("inner.json", '{"type":"integer"}')
    outer = referring_to("outer.json", '{"properties":{"i":{"$ref":"inner.json"}}}', inner.reference)
    schema = parse('{"properties":{"o":{"$ref":"outer.json"}}}', [inner, outer])
    assert schema.references == (outer.reference,)
    wide = parse('{"properties":{"o":{"properties":{"i":{"type":"number"}}}}}')
    assert wide.incompatibilities(schema, CompatibilityPolicy.STRICT) == []
    assert [found.path for found in schema.incompatibilities(wide, CompatibilityPolicy.STRICT)] == [
        "#/properties/o/properties/i"
    ]


def test_references_are_found_by_the_text_of_ref_and_by_address() -> None:
    money = referring_to(
        "https://example.org/money.json", '{"$id":"https://example.org/money.json","type":"integer"}'
    )
    for reference in ("https://example.org/money.json", "money.json", "https://example.org/money.json#"):
        order = {"$id": "https://example.org/order.json", "items": {"$ref": reference}}
        wide = parse('{"items":{"type":"number"}}')
        assert wide.incompatibilities(parse(json.dumps(order), [money]), CompatibilityPolicy.STRICT) == []


@pytest.mark.parametrize("draft", DRAFTS)
def test_five_drafts_are_checked(draft: str) -> None:
    parse(json.dumps({"$schema": draft, "type": "object", "properties": {"a": {"type": ["string", "null"]}}}))
    with pytest.raises(InvalidSchema, match=r"^#/properties/a/type: "):
        parse(json.dumps({"$schema": draft, "properties": {"a": {"type": "text"}}}))
    with pytest.raises(InvalidSchema, match=r"^#/allOf/0/minLength: "):
        parse(json.dumps({"$schema": draft, "allOf": [{"minLength": -1}]}))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("  \n", "empty"),
        ("{", "no JSON"),
        ("{'a': 1}", r"line 1 column 2"),
        ("{}{}", "Extra data"),
        ("[]", "#: a JSON schema is an object"),
        ('"string"', "#: a JSON schema is an object"),
        ("null", "#: a JSON schema is an object"),
        ('{"a":1,"a":2}', "key 'a' twice"),
        ('{"properties":{"x":{"type":"string","type":"number"}}}', "key 'type' twice"),
        ('{"maximum":NaN}', "NaN is no JSON number"),
        ('{"maximum":-Infinity}', "-Infinity is no JSON number"),
        ('{"maximum":1e999}', "1e999 is too large"),
        ('{"maximum":01}', "no JSON"),
        ('{"maximum":' + "9" * 2000 + "}", "2000 digits"),
        ('{"x":"\\ud800"}', "surrogate"),
        ('{"\\udfff":1}', "surrogate"),
        ('{"$schema":7}', "#/\\$schema: the draft must be a text"),
        ('{"$schema":"http://json-schema.org/draft-04/schema#","properties":{"a":true}}', "#/properties/a: "),
        ('{"pattern":"(a"}', "#/pattern: '\\(a' is no regular expression: missing closing"),
        ('{"properties":{"p":{"pattern":"*"}}}', "#/properties/p/pattern: "),
        ('{"patternProperties":{"[":{}}}', "#/patternProperties/\\[: "),
        (
            '{"pattern":"' + "(" * 5000 + ")" * 5000 + '"}',
            "#/pattern: the expression has more than 200 groups",
        ),
        ('{"pattern":"' + "a" * 20000 + '"}', "#/pattern: the expression has more than 16384 characters"),
        (
            '{"items":{"$ref":"#/definitions/none"}}',
            "#/items/\\$ref: Cannot resolve the reference '#/definitions/none'",
        ),
        ('{"$ref":"http://localhost:1/s.json"}', "Cannot resolve the reference 'http://localhost:1/s.json'"),
        ('{"$ref":"file:///etc/passwd"}', "Cannot resolve"),
        ('{"$ref":"#/properties","properties":{"a":5}}', "#/properties/a: 5 is not of type"),
        ('{"$ref":"#/title","title":"x"}', "does not lead to a schema"),
        ('{"$ref":"#/title/0","title":"x"}', "does not lead to a schema"),
        ('{"$ref":"#/enum/x","enum":[1]}', "Cannot resolve"),
        ('{"$ref":"#"}', "leads back to itself"),
        (
            '{"$ref":"#/definitions/a","definitions":{"a":{"$ref":"#/definitions/b"},"b":{"$ref":"#/definitions/a"}}}',
            "leads back to itself",
        ),
        ('{"$ref":"#/x/y","x":{"y":{"type":"nothing"}}}', "#/x/y/type: 'nothing'"),
        ('{"$id":"http://[::1"}', "no URI"),
        ('{"$ref":"http://[::1"}', "Cannot resolve"),
    ],
)
def test_what_is_no_schema_is_refused_with_a_reason(text: str, message: str) -> None:
    with pytest.raises(InvalidSchema, match=message):
        parse(text)


def test_references_that_are_no_schemas_are_refused() -> None:
    for text in ("", "[1]", '{"type":"text"}', '{"type":"string","type":"string"}'):
        with pytest.raises(InvalidSchema):
            parse('{"$ref":"a.json"}', [referring_to("a.json", text)])


@pytest.mark.parametrize("levels", [texts.DEPTH_MAX + 1, 5_000, 100_000])
def test_deep_schemas_are_refused(levels: int) -> None:
    for opened, closed in (('{"not":', "}"), ('{"enum":' + "[", "]}")):
        with pytest.raises(InvalidSchema, match="levels deep"):
            parse(opened * levels + "{}" + closed * levels)


@pytest.mark.parametrize("draft", DRAFTS)
def test_schemas_as_deep_as_allowed_are_parsed_and_compared(draft: str) -> None:
    levels = texts.DEPTH_MAX - 2

    def nested(last: str) -> JsonSchema:
        return parse(
            f'{{"$schema":"{draft}","not":' + '{"not":' * levels + f'{{"type":"{last}"}}' + "}" * levels + "}"
        )

    old, new = nested("integer"), nested("number")
    verdicts = [
        bool(one.incompatibilities(other, CompatibilityPolicy.STRICT))
        for one, other in ((new, old), (old, new))
    ]
    assert verdicts == [levels % 2 == 0, levels % 2 == 1], "each `not` turns the comparison round"


def test_values_of_keywords_that_only_describe_are_not_checked() -> None:
    parse('{"examples":{"a":1},"$comment":5,"readOnly":"yes","properties":{"examples":{"type":"string"}}}')
    with pytest.raises(InvalidSchema, match=r"^#/properties/examples: "):
        parse('{"properties":{"examples":5}}')


def test_huge_schemas_are_refused() -> None:
    with pytest.raises(InvalidSchema, match="characters"):
        parse('{"title":"' + "a" * texts.TEXT_MAX + '"}')
    with pytest.raises(InvalidSchema, match="values"):
        parse(json.dumps({"enum": list(range(texts.VALUES_MAX))}))


@pytest.mark.parametrize(
    "pattern",
    [
        "^(?=a)b",
        "(?<year>[0-9]{4})",
        "\\p{L}+",
        "(?!x)\\p{Lu}",
        "\\/",
        "[^\\s]",
        "a{2,}",
        "\\u00e9",
        "(a+)+$",
    ],
)
def test_expressions_of_ecma_are_accepted(pattern: str) -> None:
    parse(json.dumps({"pattern": pattern, "patternProperties": {pattern: {}}}))


def test_values_of_enumerations_and_defaults_are_no_schemas() -> None:
    parse(
        '{"enum":[{"$ref":"#/nowhere"},{"pattern":"("}],"default":{"$ref":"x"},"examples":[{"type":"text"}]}'
    )


def test_a_property_may_have_the_name_of_a_keyword() -> None:
    schema = parse(
        '{"properties":{"$ref":{"type":"string"},"$id":{"type":"string"},"pattern":{"type":"string"}}}'
    )
    assert schema.field_names() == {"$ref", "$id", "pattern"}


def test_field_names_are_those_of_the_schema_that_the_top_refers_to() -> None:
    assert parse('{"$ref":"#/definitions/r","definitions":{"r":{"properties":{"a":{}}}}}').field_names() == {
        "a"
    }
    assert parse("true").field_names() == frozenset()
    assert parse('{"type":"string"}').name is None


def test_messages_name_the_new_and_the_old_side() -> None:
    old = parse('{"type":"object","properties":{}}')
    new = parse('{"type":"object","properties":{"f":{"type":"string"}}}')
    [reason] = new.incompatibilities(old, CompatibilityPolicy.STRICT)
    assert reason.printed() == (
        '{errorType:"OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL", description:"The new schema has an open '
        "content model and has a property or item at path '#/properties/f' which is missing in the old "
        'schema"}'
    )
    assert "The old schema has an open content model" in reason.printed(new_reads_old=False)


def union_of_types(count: int, identity: str = "string") -> JsonSchema:
    """Types that all refer to all others by unions."""
    names = [f"T{index}" for index in range(count)]
    union = {"oneOf": [{"$ref": f"#/definitions/{name}"} for name in names]}
    definitions = {
        name: {
            "type": "object",
            "properties": {"id": {"type": identity if name == "T0" else "string"}, "a": union, "b": union},
        }
        for name in names
    }
    return parse(json.dumps({"definitions": definitions, "properties": {"root": union}}))


def test_unions_that_refer_to_each_other_are_compared_in_bounded_steps() -> None:
    same, other = union_of_types(10), union_of_types(10, "number")
    assert union_of_types(10).differences(same, CompatibilityPolicy.STRICT) == []
    assert [found.kind for found in other.incompatibilities(same, CompatibilityPolicy.STRICT)] == [
        "COMBINED_TYPE_SUBSCHEMAS_CHANGED"
    ]


def test_schemas_that_are_too_complex_to_compare_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "STEPS_MAX", 5_000)
    old, new = union_of_types(20), union_of_types(20, "number")
    with pytest.raises(InvalidSchema, match="too complex to compare"):
        new.incompatibilities(old, CompatibilityPolicy.STRICT)


def test_a_long_chain_of_references_is_compared_without_deep_calls() -> None:
    def chain(last: str) -> JsonSchema:
        definitions: dict[str, object] = {
            f"t{index}": {"type": "object", "properties": {"n": {"$ref": f"#/definitions/t{index + 1}"}}}
            for index in range(1500)
        }
        definitions["t1500"] = {"type": last}
        return parse(json.dumps({"$ref": "#/definitions/t0", "definitions": definitions}))

    [reason] = chain("string").incompatibilities(chain("number"), CompatibilityPolicy.STRICT)
    assert reason.path == "#/" + "/".join(["properties/n"] * 1500)


def test_a_chain_of_references_with_keywords_beside_them_is_no_deep_call() -> None:
    definitions: dict[str, object] = {
        f"t{index}": {"$ref": f"#/$defs/t{index + 1}", "maxLength": index + 10} for index in range(300)
    }
    definitions["t300"] = {"type": "string"}
    schema = {"$schema": DRAFTS[4], "$ref": "#/$defs/t0", "$defs": definitions}
    old, new = parse(json.dumps(schema)), parse(json.dumps({**schema, "title": "x"}))
    assert new.incompatibilities(old, CompatibilityPolicy.STRICT) == []
