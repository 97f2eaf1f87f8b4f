"""Which changes of a Protobuf schema are compatible, and how the others are named."""

from __future__ import annotations

import pytest

from barnabas.schemas.model import CompatibilityPolicy, Reference, ResolvedReference
from barnabas.schemas.protobuf.parsing import parse

from .pair import Pair, proto3
from .pairs import PAIRS

STRICT = CompatibilityPolicy.STRICT


def verdict(
    writer: str, reader: str, old: str = "", new: str = "", versions: tuple[int, int] = (1, 2)
) -> list[str]:
    """Kinds and paths, for schemas that may each have a reference t.proto."""
    parsed = []
    for text, reference, version in ((writer, old, versions[0]), (reader, new, versions[1])):
        given = [ResolvedReference(Reference("t.proto", "t", version), reference)] if reference else []
        parsed.append(parse(text, given, strict=True))
    return [f"{one.kind} {one.path}" for one in parsed[1].incompatibilities(parsed[0], STRICT)]


def test_the_table_is_long() -> None:
    assert len(PAIRS) >= 150
    assert len({pair.name for pair in PAIRS}) == len(PAIRS)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_a_pair_has_its_verdict(pair: Pair) -> None:
    found = parse(pair.reader).incompatibilities(parse(pair.writer), STRICT)
    assert tuple((one.kind, one.path) for one in found) == pair.expected


@pytest.mark.parametrize("pair", PAIRS[::7], ids=lambda pair: pair.name)
def test_normal_forms_and_descriptors_have_the_same_verdict(pair: Pair) -> None:
    writer, reader = parse(pair.writer), parse(pair.reader)
    for old in (writer, writer.normalized(), parse(writer.formatted("serialized"))):
        found = reader.normalized().incompatibilities(old, STRICT)
        assert sorted((one.kind, one.path) for one in found) == sorted(pair.expected)


def test_the_message_names_type_path_and_sides() -> None:
    old, new = proto3("message M { int32 a = 1; }"), proto3("message M { string a = 1; }")
    found = parse(new).incompatibilities(parse(old), STRICT)
    assert [one.printed() for one in found] == [
        """{errorType:"FIELD_SCALAR_KIND_CHANGED", description:"The kind of a SCALAR field at path '#/M/1' """
        """in the new schema does not match its kind in the old schema"}"""
    ]
    assert "in the old schema does not match its kind in the new schema" in found[0].printed(
        new_reads_old=False
    )


IMPORTER = 'import "t.proto"; message M { t.T t = 5; }'
T_INT = proto3("message T { int32 x = 1; }", "t")
T_STRING = proto3("message T { string x = 1; }", "t")
T_MORE = proto3("message T { int32 x = 1; int32 y = 2; }", "t")


def test_types_of_references_are_compared() -> None:
    text = proto3(IMPORTER)
    assert verdict(text, text, T_INT, T_MORE) == []
    assert verdict(text, text, T_INT, T_STRING) == [
        "FIELD_SCALAR_KIND_CHANGED #/T/1",
        "FIELD_NAMED_TYPE_CHANGED #/M/5",
    ]


def test_the_same_reference_is_not_compared_with_itself() -> None:
    text = proto3(IMPORTER)
    assert verdict(text, text, T_INT, T_INT, (1, 1)) == []


def test_a_type_that_moves_into_a_reference_is_a_message_removed() -> None:
    inside = proto3("message M { T t = 5; } message T { int32 x = 1; }")
    assert verdict(inside, proto3(IMPORTER), new=T_INT) == ["MESSAGE_REMOVED #/T"]
    inner = proto3("message M { T t = 5; message T { int32 x = 1; } }")
    assert verdict(inner, proto3(IMPORTER), new=T_INT) == [
        "FIELD_NAMED_TYPE_CHANGED #/M/5",
        "MESSAGE_REMOVED #/M/T",
    ]


def test_a_broken_type_breaks_the_types_that_use_it() -> None:
    text = proto3(IMPORTER)
    old = proto3("message T { U u = 1; } message U { V v = 1; T t = 2; } message V { int32 x = 1; }", "t")
    new = proto3("message T { U u = 1; } message U { V v = 1; T t = 2; } message V { float x = 1; }", "t")
    assert verdict(text, text, old, new) == [
        "FIELD_SCALAR_KIND_CHANGED #/V/1",
        "FIELD_NAMED_TYPE_CHANGED #/U/1",
        "FIELD_NAMED_TYPE_CHANGED #/T/1",
        "FIELD_NAMED_TYPE_CHANGED #/M/5",
        "FIELD_NAMED_TYPE_CHANGED #/U/2",
    ]


def test_types_that_use_each_other_twice_each_are_compared_in_linear_time() -> None:
    # 2 to the power of 200 paths lead through these types.
    def chain(last: str) -> str:
        links = [f"message T{n} {{ T{n + 1} a = 1; T{n + 1} b = 2; }}" for n in range(200)]
        return proto3(" ".join([*links, f"message T200 {{ {last} x = 1; }}"]), "t")

    text = proto3('import "t.proto"; message M { t.T0 t = 5; }')
    found = verdict(text, text, chain("int32"), chain("string"))
    assert len(found) == 1 + 2 * 200 + 1


def test_a_long_chain_of_types_does_not_exhaust_the_stack() -> None:
    def chain(last: str) -> str:
        links = [f"message T{n} {{ T{n + 1} a = 1; }}" for n in range(3000)]
        return proto3(" ".join([*links, f"message T3000 {{ {last} x = 1; }}"]), "t")

    text = proto3('import "t.proto"; message M { t.T0 t = 5; }')
    assert len(verdict(text, text, chain("int32"), chain("string"))) == 3002
