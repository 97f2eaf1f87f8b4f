"""The canonical text of an Avro schema is the one that Avro's Java library prints."""

from __future__ import annotations

import pytest

from barnabas.schemas.avro.json_text import java_double
from barnabas.schemas.avro.parsing import parse
from barnabas.schemas.model import Reference, ResolvedReference

CANONICAL = {
    "a primitive": ('  "string" ', '"string"'),
    "a primitive in an object": ('{"type": "string"}', '"string"'),
    "a logical type": ('{"logicalType":"date","type":"int"}', '{"type":"int","logicalType":"date"}'),
    "a union": ('[ "null" , {"type":"long"} ]', '["null","long"]'),
    "an array": ('{"items":{"type":"int"},"x":1,"type":"array"}', '{"type":"array","items":"int","x":1}'),
    "a map": ('{"values":"int","type":"map"}', '{"type":"map","values":"int"}'),
    "attributes of a record": (
        '{"fields":[],"z":1,"aliases":["B"],"doc":"d","namespace":"n","a":2,"name":"A","type":"record"}',
        '{"type":"record","name":"A","namespace":"n","doc":"d","fields":[],"z":1,"a":2,"aliases":["B"]}',
    ),
    "attributes of a field": (
        '{"type":"record","name":"A","fields":[{"x":1,"aliases":["b"],"order":"ignore","default":1,"doc":"d",'
        '"type":"int","name":"a"}]}',
        '{"type":"record","name":"A","fields":[{"name":"a","type":"int","doc":"d","default":1,"order":"ignore",'
        '"aliases":["b"],"x":1}]}',
    ),
    "ascending is not printed": (
        '{"type":"record","name":"A","fields":[{"name":"a","type":"int","order":"ascending"}]}',
        '{"type":"record","name":"A","fields":[{"name":"a","type":"int"}]}',
    ),
    "attributes of an enum": (
        '{"type":"enum","aliases":["n.F"],"x":1,"default":"A","symbols":["A","B"],"doc":"d","name":"E"}',
        '{"type":"enum","name":"E","doc":"d","symbols":["A","B"],"default":"A","x":1,"aliases":["n.F"]}',
    ),
    "attributes of a fixed": (
        '{"scale":2,"type":"fixed","size":8,"precision":9,"logicalType":"decimal","name":"n.F"}',
        '{"type":"fixed","name":"F","namespace":"n","size":8,"scale":2,"precision":9,"logicalType":"decimal"}',
    ),
    "a namespace in the name": (
        '{"type":"record","name":"a.b.R","fields":[]}',
        '{"type":"record","name":"R","namespace":"a.b","fields":[]}',
    ),
    "a namespace in the name wins": (
        '{"type":"record","name":"a.b.R","namespace":"c","fields":[]}',
        '{"type":"record","name":"R","namespace":"a.b","fields":[]}',
    ),
    "the enclosing namespace is dropped": (
        '{"type":"record","name":"R","namespace":"n","fields":[{"name":"e","type":{"type":"enum","name":"E",'
        '"namespace":"n","symbols":["A"]}}]}',
        '{"type":"record","name":"R","namespace":"n","fields":[{"name":"e","type":{"type":"enum","name":"E",'
        '"symbols":["A"]}}]}',
    ),
    "another namespace inside": (
        '{"type":"record","name":"R","namespace":"n","fields":[{"name":"e","type":{"type":"record","name":"m.S",'
        '"fields":[{"name":"f","type":{"type":"fixed","name":"F","size":1}}]}},{"name":"g","type":"m.F"}]}',
        '{"type":"record","name":"R","namespace":"n","fields":[{"name":"e","type":{"type":"record","name":"S",'
        '"namespace":"m","fields":[{"name":"f","type":{"type":"fixed","name":"F","size":1}}]}},'
        '{"name":"g","type":"m.F"}]}',
    ),
    "the null namespace inside of another": (
        '{"type":"record","name":"R","namespace":"n","fields":[{"name":"e","type":{"type":"enum","name":"E",'
        '"namespace":"","symbols":["A"]}},{"name":"f","type":"E"}]}',
        '{"type":"record","name":"R","namespace":"n","fields":[{"name":"e","type":{"type":"enum","name":"E",'
        '"namespace":"","symbols":["A"]}},{"name":"f","type":"E"}]}',
    ),
    "a full name becomes relative": (
        '{"type":"record","name":"R","namespace":"n","fields":[{"name":"r","type":["null","n.R"]}]}',
        '{"type":"record","name":"R","namespace":"n","fields":[{"name":"r","type":["null","R"]}]}',
    ),
    "a name in an object": (
        '{"type":"record","name":"R","fields":[{"name":"r","type":["null",{"type":"R"}]}]}',
        '{"type":"record","name":"R","fields":[{"name":"r","type":["null","R"]}]}',
    ),
    "a name before its definition": (
        '{"type":"record","name":"a.A","fields":[{"name":"b","type":"B"},{"name":"c","type":"C"},{"name":"d",'
        '"type":{"type":"record","name":"B","fields":[{"name":"a","type":"A"},{"name":"e","type":{"type":'
        '"enum","name":"C","symbols":["X"]}}]}}]}',
        '{"type":"record","name":"A","namespace":"a","fields":[{"name":"b","type":{"type":"record","name":"B",'
        '"fields":[{"name":"a","type":"A"},{"name":"e","type":{"type":"enum","name":"C","symbols":["X"]}}]}},'
        '{"name":"c","type":"C"},{"name":"d","type":"B"}]}',
    ),
    "aliases relative to their type": (
        '{"type":"record","name":"R","namespace":"n","aliases":["n.A","m.B","C"],"fields":[]}',
        '{"type":"record","name":"R","namespace":"n","fields":[],"aliases":["A","m.B","C"]}',
    ),
    "an error": (
        '{"type":"error","name":"R","fields":[]}',
        '{"type":"error","name":"R","fields":[]}',
    ),
    "defaults": (
        '{"type":"record","name":"R","fields":[{"name":"a","type":{"type":"map","values":"int"},"default":'
        '{"z":1,"a":2}},{"name":"b","type":"double","default":1e10},{"name":"c","type":"double","default":"NaN"},'
        '{"name":"d","type":["null","int"],"default":null},{"name":"e","type":"double","default":100}]}',
        '{"type":"record","name":"R","fields":[{"name":"a","type":{"type":"map","values":"int"},"default":'
        '{"z":1,"a":2}},{"name":"b","type":"double","default":1.0E10},{"name":"c","type":"double","default":"NaN"},'
        '{"name":"d","type":["null","int"],"default":null},{"name":"e","type":"double","default":100}]}',
    ),
    "escapes": (
        r'{"type":"string","x":"\u0041\u00e9\u0001\u001f\n\t\"\\\/\u2028","y":"é😀"}',
        '{"type":"string","x":"Aé\\u0001\\u001F\\n\\t\\"\\\\/\u2028","y":"é😀"}',
    ),
    "numbers": (
        '{"type":"string","a":1.0,"b":1.50,"c":1e-7,"d":12345678.9,"e":123456789012345678901234567890,"f":-0}',
        '{"type":"string","a":1.0,"b":1.5,"c":1.0E-7,"d":1.23456789E7,"e":123456789012345678901234567890,"f":0}',
    ),
    "comments": (
        '// a schema\n{"type":"string", /* odd */ "x":"// no comment"}',
        '{"type":"string","x":"// no comment"}',
    ),
}


@pytest.mark.parametrize("label", CANONICAL)
def test_the_canonical_text(label: str) -> None:
    text, canonical = CANONICAL[label]

    found = parse(text, strict=True)

    assert found.canonical == canonical
    assert parse(canonical, strict=True) == found


@pytest.mark.parametrize(
    "number, text",
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (0.001, "0.001"),
        (0.0009, "9.0E-4"),
        (-123456.789, "-123456.789"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (float("inf"), '"Infinity"'),
        (float("-inf"), '"-Infinity"'),
    ],
)
def test_doubles_are_printed_as_java_prints_them(number: float, text: str) -> None:
    assert java_double(number) == text


NORMAL = {
    "unknown attributes are sorted": (
        '{"type":"string","z":{"b":1,"a":2},"a":1}',
        '{"type":"string","a":1,"z":{"a":2,"b":1}}',
    ),
    "the logical type comes first": (
        '{"type":"bytes","a":1,"scale":2,"precision":4,"logicalType":"decimal"}',
        '{"type":"bytes","logicalType":"decimal","precision":4,"scale":2,"a":1}',
    ),
    "a scale of zero is an attribute like others": (
        '{"type":"bytes","a":1,"scale":0,"precision":4,"logicalType":"decimal"}',
        '{"type":"bytes","logicalType":"decimal","precision":4,"a":1,"scale":0}',
    ),
    "an unknown logical type is sorted": (
        '{"type":"bytes","z":1,"logicalType":"mine","a":1}',
        '{"type":"bytes","a":1,"logicalType":"mine","z":1}',
    ),
    "aliases are sorted, an empty doc is dropped": (
        '{"type":"record","name":"n.R","doc":"","aliases":["n.Z","m.B","A"],"fields":['
        '{"name":"a","type":"int","doc":"","aliases":["z","b"]}]}',
        '{"type":"record","name":"R","namespace":"n","fields":[{"name":"a","type":"int","doc":"",'
        '"aliases":["b","z"]}],"aliases":["m.B","A","Z"]}',
    ),
    "numbers of defaults have their type": (
        '{"type":"record","name":"R","fields":[{"name":"a","type":"double","default":0},'
        '{"name":"b","type":"float","default":16777217},{"name":"c","type":["float","null"],"default":0.1},'
        '{"name":"d","type":{"type":"map","values":"double"},"default":{"z":1,"a":2}}]}',
        '{"type":"record","name":"R","fields":[{"name":"a","type":"double","default":0.0},'
        '{"name":"b","type":"float","default":1.6777216E7},{"name":"c","type":["float","null"],"default":0.1},'
        '{"name":"d","type":{"type":"map","values":"double"},"default":{"a":2.0,"z":1.0}}]}',
    ),
    "an error is a record": (
        '{"type":"error","name":"R","fields":[]}',
        '{"type":"record","name":"R","fields":[]}',
    ),
}


@pytest.mark.parametrize("label", NORMAL)
def test_the_normal_text(label: str) -> None:
    text, normal = NORMAL[label]

    found = parse(text, strict=True).normalized()

    assert found.canonical == normal
    assert parse(normal).normalized() == found


ADDRESS = '{"type":"record","name":"shop.Address","fields":[{"name":"street","type":"string"}]}'
CUSTOMER = '{"type":"record","name":"shop.Customer","fields":[{"name":"home","type":"Address"}]}'


def resolved(name: str, text: str, *inner: Reference) -> ResolvedReference:
    return ResolvedReference(Reference(name, f"{name}-value", 1), text, inner)


def test_a_referenced_type_stays_a_name_and_is_inlined_on_request() -> None:
    found = parse(CUSTOMER, [resolved("shop.Address", ADDRESS)], strict=True)

    assert found.canonical == (
        '{"type":"record","name":"Customer","namespace":"shop","fields":[{"name":"home","type":"Address"}]}'
    )
    assert found.formatted("resolved") == (
        '{"type":"record","name":"Customer","namespace":"shop","fields":[{"name":"home","type":'
        '{"type":"record","name":"Address","fields":[{"name":"street","type":"string"}]}}]}'
    )
    assert found.formatted("unheard-of") == found.formatted("") == found.canonical
    assert found.references == (Reference("shop.Address", "shop.Address-value", 1),)
    assert parse(found.formatted("resolved")).formatted("resolved") == found.formatted("resolved")


def test_references_of_references_are_known_and_not_counted_as_its_own() -> None:
    address = resolved("shop.Address", ADDRESS)
    customer = resolved("shop.Customer", CUSTOMER, address.reference)
    text = '{"type":"record","name":"Order","namespace":"shop","fields":[{"name":"by","type":"Customer"}]}'

    found = parse(text, [address, customer], strict=True)

    assert found.references == (customer.reference,)
    assert found.canonical == text
    assert '"street"' in found.formatted("resolved")


def test_a_schema_that_is_only_a_reference() -> None:
    found = parse('"shop.Address"', [resolved("shop.Address", ADDRESS)])

    assert found.canonical == '"shop.Address"'
    assert found.name == "shop.Address"
    assert found.field_names() == {"street"}


def test_two_references_may_define_the_same_type_in_the_same_way() -> None:
    enum = '{"type":"enum","name":"E","symbols":["X"]}'
    one = f'{{"type":"record","name":"A","fields":[{{"name":"e","type":{enum}}}]}}'
    two = one.replace('"A"', '"B"', 1)

    known = [resolved("A", one), resolved("B", two)]
    found = parse('["A","B","E"]', known)

    assert found.canonical == f'["A","B",{enum}]'  # E is no reference: Java's library prints it in full
    assert parse(found.canonical, known) == found


def test_normal_references_are_sorted_and_each_there_once() -> None:
    refs = [
        resolved("shop.Address", ADDRESS),
        resolved("a.E", '{"type":"enum","name":"a.E","symbols":["X"]}'),
    ]

    found = parse('["shop.Address","a.E"]', [*refs, refs[0]]).normalized()

    assert [one.name for one in found.references] == ["a.E", "shop.Address"]


def test_a_long_chain_of_references_is_printed_inlined() -> None:
    chain = [resolved("R0", '{"type":"record","name":"R0","fields":[]}')]
    for index in range(1, 3000):
        text = f'{{"type":"record","name":"R{index}","fields":[{{"name":"f","type":"R{index - 1}"}}]}}'
        chain.append(resolved(f"R{index}", text, chain[-1].reference))

    found = parse('"R2999"', chain)

    assert found.formatted("resolved").count('"record"') == 3000


def test_names_for_subjects() -> None:
    assert parse('"string"').name is None
    assert parse('{"type":"enum","name":"n.E","symbols":[]}').name == "n.E"
    assert parse('["null","int"]').field_names() == frozenset()
