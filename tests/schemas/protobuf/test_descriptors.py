"""Descriptors of Protobuf schemas: as protoc makes them, and as clients send and ask for them."""

from __future__ import annotations

import base64
import subprocess
import sys
from pathlib import Path
from typing import Any

import google.type
import grpc_tools
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.message_factory import GetMessageClass
from grpc_tools import protoc

from barnabas.schemas.client.values import PROTOBUF, Schema
from barnabas.schemas.model import Reference, ResolvedReference
from barnabas.schemas.protobuf.parsing import ProtobufSchema, parse
from barnabas.schemas.protobuf.rendering import json_name
from barnabas.schemas.serdes.protobuf import ProtobufCodec

INCLUDES = [Path(grpc_tools.__file__).parent / "_proto", Path(next(iter(google.type.__path__))).parents[1]]
SHIPPED = sorted(
    str(found.relative_to(root))
    for root, folder in (
        (INCLUDES[0], "google/protobuf"),
        (INCLUDES[1], "google/type"),
        (INCLUDES[1], "google/api"),
    )
    for found in (root / folder).glob("*.proto")
)

EVERYTHING = """
syntax = "proto3";
package a.b;
import "google/protobuf/descriptor.proto";
import public "google/protobuf/any.proto";
option java_package = "com.example";
option optimize_for = SPEED;
option (file_note) = "n";
extend google.protobuf.FileOptions { string file_note = 50000; }
extend google.protobuf.FieldOptions { repeated Note notes = 50000; optional Level level = 50001; }
extend google.protobuf.EnumValueOptions { float weight = 50000; }
enum Level { LOW = 0; HIGH = 5 [(weight) = 0.1, deprecated = true]; reserved 7 to 9; reserved "MIDDLE"; }
message Note { string text = 1; map<string, int64> counts = 2; Note next = 3; bytes raw = 4; }
message Outer {
  message Inner { Outer.Inner self = 1; a.b.Outer up = 2; .a.b.Note note = 3; }
  optional int32 maybe = 1;
  repeated Inner inners = 2 [(notes) = {text: "x"}];
  map<int32, Inner> by_id = 3;
  map<string, Level> levels = 4;
  oneof choice { string name = 5 [(level) = HIGH]; Inner inner = 6; }
  google.protobuf.Any any_thing = 7 [json_name = "thing"];
  optional string other = 8;
  reserved 20, 30 to 40, 100 to max;
  reserved "gone";
}
service Things {
  rpc Get (Outer) returns (stream Outer.Inner);
  rpc Put (stream Note) returns (Note) {
    option idempotency_level = NO_SIDE_EFFECTS;
    option deprecated = true;
  }
}
"""

OLD_STYLE = r"""
package old;
message M {
  required int32 a = 1 [default = 7];
  optional group Part = 2 {
    repeated sint64 n = 1 [packed = true];
    enum K { X = 1; Y = 2; }
    optional K k = 2;
  }
  optional Part.K k = 3 [default = Y];
  optional double d = 4 [default = 2.5e-300];
  optional float f = 5 [default = 0.1];
  optional bytes raw = 6 [default = "\000\"\'\\\377z"];
  optional string s = 7 [default = "tab\tnew\nline é", ctype = CORD];
  extensions 100 to 199, 500 to max;
  extend M { optional M nested_ext = 150; }
  message Inner { extend M { optional string from_inside = 160; } }
  oneof o { group Choice = 8 { optional bool b = 1; } float x = 9; }
}
extend M { repeated string names = 100; optional group Ext = 101 { optional int32 z = 1; } }
"""


def compiled(path: Path, name: str) -> FileDescriptorProto:
    """The descriptor that protoc makes of a file."""
    out = path / "out.bin"
    arguments = ["protoc", *(f"-I{one}" for one in (path, *INCLUDES)), f"--descriptor_set_out={out}", name]
    assert protoc.main(arguments) == 0
    found: FileDescriptorProto = FileDescriptorSet.FromString(out.read_bytes()).file[0]
    return found


def comparable(file: FileDescriptorProto) -> str:
    """The descriptor without what differs on purpose: default JSON names, the order of fields and entries."""

    def sort(message: Any) -> None:
        for repeated, key in ((message.nested_type, "name"), (message.field, "number")):
            ordered = sorted(
                (type(one).FromString(one.SerializeToString()) for one in repeated),
                key=lambda one: getattr(one, key),
            )
            del repeated[:]
            repeated.extend(ordered)
        oneofs = [one.name for one in message.oneof_decl]
        for field in (*message.field, *message.extension):
            if field.json_name == json_name(field.name):
                field.ClearField("json_name")
            if field.HasField("oneof_index"):
                field.default_value += f" in {oneofs[field.oneof_index]}"
                field.ClearField("oneof_index")
        del message.oneof_decl[:]
        for one in message.nested_type:
            sort(one)
        for one in message.extension_range:
            one.options.ClearField("declaration")  # protoc keeps these out of descriptors
            if not one.options.ByteSize():
                one.ClearField("options")

    copy = FileDescriptorProto.FromString(file.SerializeToString())
    copy.name = ""
    for extension in copy.extension:
        if extension.json_name == json_name(extension.name):
            extension.ClearField("json_name")
    for message in copy.message_type:
        sort(message)
    ordered = sorted(
        (type(one).FromString(one.SerializeToString()) for one in copy.message_type), key=lambda one: one.name
    )
    del copy.message_type[:]
    copy.message_type.extend(ordered)
    return str(copy)


def with_imports(path: str) -> tuple[str, list[ResolvedReference]]:
    """The text of a shipped file, and its imports as references."""
    found: dict[str, ResolvedReference] = {}

    def text(name: str) -> str:
        return next(root / name for root in INCLUDES if (root / name).exists()).read_text()

    def add(name: str) -> None:
        if name not in found:
            for line in text(name).splitlines():
                if line.startswith("import "):
                    add(line.split('"')[1])
            found[name] = ResolvedReference(Reference(name, name, 1), text(name))

    add(path)
    found.pop(path)
    return text(path), list(found.values())


@pytest.mark.parametrize("path", SHIPPED)
def test_shipped_files_are_described_as_protoc_describes_them(path: str, tmp_path: Path) -> None:
    text, references = with_imports(path)
    schema = parse(text, references, strict=True)
    assert comparable(schema.file) == comparable(compiled(tmp_path, path))
    again = parse(schema.formatted("serialized"), references, strict=True)
    assert again.normalized().canonical == schema.normalized().canonical
    assert again.canonical == parse(again.formatted("serialized"), references).canonical


@pytest.mark.parametrize("text", [EVERYTHING, OLD_STYLE], ids=["proto3", "proto2"])
def test_a_file_of_everything_is_described_as_protoc_describes_it(text: str, tmp_path: Path) -> None:
    (tmp_path / "x.proto").write_text(text)
    schema = parse(text, strict=True)
    made = compiled(tmp_path, "x.proto")
    assert comparable(schema.file) == comparable(made)
    assert parse(schema.canonical, strict=True).file == schema.file
    sent = parse(base64.b64encode(made.SerializeToString()).decode(), strict=True)
    assert sent.normalized().canonical == schema.normalized().canonical
    assert parse(sent.canonical, strict=True).canonical == sent.canonical


def test_a_descriptor_is_stored_as_registries_print_descriptors() -> None:
    text = 'syntax = "proto3"; package p; message M { map<string, E> m = 1; reserved 3, 5 to 6; }'
    sent = parse(parse(text + " enum E { A = 0; }").formatted("serialized"), strict=True)
    assert sent.canonical == (
        """syntax = "proto3";
package p;

message M {
  reserved 3;
  reserved 5 to 6;

  repeated .p.M.MEntry m = 1;

  message MEntry {
    option map_entry = true;
  
    string key = 1;
    .p.E value = 2;
  }
}
enum E {
  A = 0;
}
"""  # noqa: W293
    )


def test_json_names_of_a_descriptor_stay_until_normalize_drops_the_default_ones(tmp_path: Path) -> None:
    (tmp_path / "x.proto").write_text(
        'syntax = "proto3"; message M { int32 a_b = 1; int32 c = 2 [json_name = "d"]; }'
    )
    sent = parse(base64.b64encode(compiled(tmp_path, "x.proto").SerializeToString()).decode())
    assert 'int32 a_b = 1 [json_name = "aB"];' in sent.canonical
    assert "int32 a_b = 1;" in sent.normalized().canonical
    assert 'int32 c = 2 [json_name = "d"];' in sent.normalized().canonical


def test_confluents_metadata_prints_in_its_fixed_order() -> None:
    text = """
    syntax = "proto3";
    import "confluent/meta.proto";
    import "confluent/type/decimal.proto";
    message M {
      confluent.type.Decimal d = 1 [(confluent.field_meta) = {
        tags: ["PII"], doc: "money", params: [{key: "scale", value: "2"}, {key: "precision", value: "9"}] }];
    }"""
    sent = parse(parse(text, strict=True).formatted("serialized"), strict=True)
    assert sent.canonical.endswith(
        """
  .confluent.type.Decimal d = 1 [(confluent.field_meta) = {
    doc: "money",
    params: [
      {
        value: "9",
        key: "precision"
      },
      {
        value: "2",
        key: "scale"
      }
    ],
    tags: [
      "PII"
    ]
  }];
}
"""
    )


def test_the_python_client_of_confluent_reads_and_writes_the_same_schema() -> None:
    from confluent_kafka.schema_registry.common.protobuf import _schema_to_str, _str_to_proto
    from google.type import date_pb2, interval_pb2

    for module in (date_pb2, interval_pb2):
        sent = parse(_schema_to_str(module.DESCRIPTOR), strict=True)
        read = _str_to_proto(module.DESCRIPTOR.name, sent.formatted("serialized"))
        assert [one.name for one in read.message_type] == list(module.DESCRIPTOR.message_types_by_name)
        text, _ = with_imports(module.DESCRIPTOR.name)
        assert sent.normalized().canonical == parse(text, strict=True).normalized().canonical


NESTED = """
syntax = "proto3";
package p;
message A { map<string, B> m = 1; message B { message C { } } message D { } }
message E { }
"""


@pytest.mark.parametrize(
    ("name", "indexes"),
    [("p.A", (0,)), ("p.A.B", (0, 0)), ("p.A.B.C", (0, 0, 0)), ("p.A.D", (0, 1)), ("p.E", (1,))],
)
def test_message_indexes_count_the_messages_of_the_text(name: str, indexes: tuple[int, ...]) -> None:
    schema = parse(NESTED)
    assert schema.message_indexes(name) == indexes
    assert schema.message_name(indexes) == name


@pytest.mark.parametrize("indexes", [(), (2,), (-1,), (0, 0, 0, 0)])
def test_indexes_of_no_message_are_refused(indexes: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="indexes"):
        parse(NESTED).message_name(indexes)
    with pytest.raises(ValueError, match=r"no message 'p\.X'"):
        parse(NESTED).message_indexes("p.X")


def test_the_pool_of_a_schema_gives_message_classes() -> None:
    schema: ProtobufSchema = parse(NESTED)
    kind = GetMessageClass(schema.pool.FindMessageTypeByName("p.A"))
    message = kind(m={"x": kind.DESCRIPTOR.nested_types_by_name["B"]._concrete_class()})
    assert kind.FromString(message.SerializeToString()) == message


@pytest.mark.parametrize("form", ["", "serialized"])
def test_deserializers_know_the_files_that_need_no_reference(form: str) -> None:
    text = """
    syntax = "proto3";
    import "confluent/meta.proto";
    import "google/type/date.proto";
    message M { google.type.Date d = 1 [(confluent.field_meta).doc = "x"]; }
    """
    codec = ProtobufCodec(Schema(parse(text, strict=True).formatted(form), PROTOBUF), [])
    kind = codec.message_class((0,))
    assert kind.FromString(b"\x0a\x02\x08\x05").d.year == 5


def test_options_are_read_beside_a_library_that_knows_their_types() -> None:
    """confluent-kafka registers Confluent's options for a whole process, so this takes one of its own."""
    program = """
import confluent_kafka.schema_registry.protobuf
from barnabas.schemas.protobuf.parsing import parse
option = '(confluent.field_meta) = { doc: "d", params: [{key: "k", value: "v"}] }'
text = f'syntax = "proto3"; import "confluent/meta.proto"; message M {{ int32 a = 1 [{option}]; }}'
sent = parse(text, strict=True)
print(parse(sent.formatted("serialized"), strict=True).canonical)
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert 'doc: "d"' in found.stdout and 'key: "k"' in found.stdout, found.stderr
