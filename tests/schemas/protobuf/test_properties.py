"""Properties of generated Protobuf schemas: texts, descriptors, data that move between versions."""

from __future__ import annotations

import base64
from typing import Any

from google.protobuf.message_factory import GetMessageClass
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.schemas.model import CompatibilityPolicy, InvalidSchema
from barnabas.schemas.protobuf.parsing import ProtobufSchema, parse
from barnabas.schemas.protobuf.syntax import SCALARS

STRICT = CompatibilityPolicy.STRICT
KEYS = ("int32", "string", "bool", "sint64", "fixed32")
NAMES = ("a", "b", "c_d", "e1", "name")

types = st.sampled_from([*sorted(SCALARS), "N", "E", "M", "M.Inner"])
option_texts = st.sampled_from(
    ["", " [deprecated = true]", ' [json_name = "j"]', ' [deprecated = true, json_name = "k"]']
)


@st.composite
def bodies(draw: st.DrawFn) -> str:
    """The fields of a message: some outside oneofs, some inside, some maps."""
    numbers = draw(st.lists(st.integers(1, 9), unique=True, max_size=5))
    outside: list[str] = []
    inside: dict[str, list[str]] = {"o": [], "p": []}
    for number in numbers:
        kind, options = draw(types), draw(option_texts)
        name = f"{draw(st.sampled_from(NAMES))}{number}"
        if '"j"' in options or '"k"' in options:
            options = options.replace('"j"', f'"j{number}"').replace('"k"', f'"k{number}"')
        where = draw(st.sampled_from(["outside", "o", "p", "map"]))
        if where == "map":
            outside.append(f"map<{draw(st.sampled_from(KEYS))}, {kind}> {name} = {number}{options};")
        elif where == "outside":
            label = draw(st.sampled_from(["", "repeated ", "optional "]))
            outside.append(f"{label}{kind} {name} = {number}{options};")
        else:
            inside[where].append(f"{kind} {name} = {number}{options};")
    oneofs = [f"oneof {name} {{ {' '.join(fields)} }}" for name, fields in inside.items() if fields]
    reserved = draw(
        st.sampled_from(["", "reserved 20, 30 to 40;", 'reserved "gone";', "reserved 50 to max;"])
    )
    return " ".join(draw(st.permutations([*outside, *oneofs, reserved])))


@st.composite
def schemas(draw: st.DrawFn) -> str:
    package = draw(st.sampled_from(["", "package p;", "package p.q;"]))
    values = " ".join(f"V{n} = {n};" for n in range(draw(st.integers(1, 3))))
    parts = [
        f"message M {{ {draw(bodies())} message Inner {{ {draw(bodies())} }} }}",
        f"message N {{ {draw(bodies())} }}",
        f"enum E {{ {values} }}",
    ]
    return f'syntax = "proto3"; {package} {" ".join(draw(st.permutations(parts)))}'


@settings(max_examples=60, deadline=None)
@given(schemas())
def test_texts_and_descriptors_lead_to_each_other(text: str) -> None:
    schema = parse(text, strict=True)
    again = parse(schema.canonical, strict=True)
    assert again.canonical == schema.canonical
    assert again.file == schema.file
    sent = parse(schema.formatted("serialized"), strict=True)
    assert parse(sent.canonical).canonical == sent.canonical
    assert parse(sent.formatted("serialized")).canonical == sent.canonical
    normal = schema.normalized()
    assert sent.normalized().canonical == normal.canonical
    assert normal.normalized().canonical == normal.canonical
    for other in (again, sent, normal):
        assert schema.incompatibilities(other, STRICT) == []
        assert other.incompatibilities(schema, STRICT) == []
        assert other.name == schema.name


@settings(max_examples=100, deadline=None)
@given(schemas(), schemas(), st.data())
def test_a_compatible_reader_keeps_the_values_of_fields_that_both_have(
    old: str, new: str, data: st.DataObject
) -> None:
    writer, reader = parse(old), parse(new)
    if reader.incompatibilities(writer, STRICT):
        return
    name = f"{writer.file.package}.M".lstrip(".")
    written = _message(writer, name, data)
    read = GetMessageClass(reader.pool.FindMessageTypeByName(name)).FromString(written.SerializeToString())
    shared = {field.number: field for field in read.DESCRIPTOR.fields}
    for field, value in written.ListFields():
        target = shared.get(field.number)
        if target is None or field.is_repeated or target.is_repeated or field.message_type is not None:
            continue
        got = getattr(read, target.name)
        if isinstance(value, (str, bytes)):
            assert _bytes(got) == _bytes(value)
        elif isinstance(value, float):
            assert got == value
        else:
            # Small numbers survive every change within a kind; booleans keep whether it was zero.
            assert bool(got) == bool(value)


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else value.encode()


def _message(schema: ProtobufSchema, name: str, data: st.DataObject) -> Any:
    message = GetMessageClass(schema.pool.FindMessageTypeByName(name))()
    for field in message.DESCRIPTOR.fields:
        if field.message_type is not None or field.is_repeated or not data.draw(st.booleans()):
            continue
        if field.cpp_type == field.CPPTYPE_STRING:
            text = data.draw(st.text(max_size=4))
            setattr(message, field.name, text if field.type == field.TYPE_STRING else text.encode())
        elif field.cpp_type in (field.CPPTYPE_FLOAT, field.CPPTYPE_DOUBLE):
            setattr(message, field.name, data.draw(st.floats(width=32, allow_nan=False)))
        elif field.cpp_type == field.CPPTYPE_BOOL:
            setattr(message, field.name, data.draw(st.booleans()))
        else:
            setattr(message, field.name, data.draw(st.integers(0, 2)))
    return message


SIGNS = tuple("{}[]();=,.<>'\\")
WORDS = st.sampled_from(
    (
        *SIGNS,
        *("message", "enum", "M", "N", '"x"', "1", "0x1", "1.5", "-1", "int32", "string", "map", "oneof"),
        *("optional", "repeated", "option", "reserved", "to", "max", "extensions", "extend", "import"),
        *("package", "syntax", "service", "rpc", "returns", "stream", "group", "//", "/*"),
    )
)


@settings(max_examples=200, deadline=None)
@given(st.one_of(st.text(max_size=60), st.lists(WORDS, max_size=30).map(" ".join)))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        schema = parse(text)
    except InvalidSchema:
        return
    assert parse(schema.canonical).canonical == schema.canonical


@settings(max_examples=100, deadline=None)
@given(schemas(), st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=4))
def test_any_descriptor_is_parsed_or_refused(text: str, changes: list[tuple[int, int]]) -> None:
    data = bytearray(parse(text).file.SerializeToString())
    for at, value in changes:
        data[at % len(data)] = value
    try:
        schema = parse(base64.b64encode(data).decode())
    except InvalidSchema:
        return
    assert parse(schema.canonical).canonical == schema.canonical
    assert parse(schema.formatted("serialized")).normalized().canonical == schema.normalized().canonical
