"""The text that a registry stores for a Protobuf schema, as it came and in normal form."""

from __future__ import annotations

import pytest

from barnabas.schemas.model import Reference, ResolvedReference
from barnabas.schemas.protobuf.parsing import parse

SENT = (
    'syntax="proto3"; package p; import "google/protobuf/timestamp.proto"; option java_package="x"; '
    "enum E { A=0; } message M { map<string,int32> m=2; string a=1 [deprecated=true]; oneof o { int32 c=5; } "
    "E e=6; google.protobuf.Timestamp t=7; message N { int32 z=1; } reserved 10 to 12; } "
    "service S { rpc G(M) returns (M); }"
)
STORED = """\
syntax = "proto3";
package p;

import "google/protobuf/timestamp.proto";

option java_package = "x";

message M {
  reserved 10 to 12;

  map<string, int32> m = 2;
  string a = 1 [deprecated = true];
  E e = 6;
  google.protobuf.Timestamp t = 7;

  oneof o {
    int32 c = 5;
  }

  message N {
    int32 z = 1;
  }
}
enum E {
  A = 0;
}

service S {
  rpc G (M) returns (M);
}
"""
NORMAL = (
    STORED.replace("  map<string, int32> m = 2;\n", "")
    .replace("[deprecated = true];\n", "[deprecated = true];\n  map<string, int32> m = 2;\n")
    .replace("  E e", "  .p.E e")
    .replace("  google.protobuf.Timestamp", "  .google.protobuf.Timestamp")
    .replace("(M)", "(.p.M)")
)


def test_a_schema_is_stored_in_a_fixed_layout() -> None:
    assert parse(SENT, strict=True).canonical == STORED


def test_normalize_sorts_and_qualifies() -> None:
    assert parse(SENT, strict=True).normalized().canonical == NORMAL


def stored(text: str) -> str:
    """The canonical text, which must print as itself again."""
    schema = parse(text, strict=True)
    assert parse(schema.canonical, strict=True).canonical == schema.canonical
    assert schema.formatted("no such format") == schema.canonical
    return schema.canonical


def normal(text: str) -> str:
    """The normal form, which must be the normal form of itself and of the descriptor."""
    schema = parse(text, strict=True)
    found = schema.normalized()
    assert found.normalized().canonical == found.canonical
    assert parse(schema.formatted("serialized")).normalized().canonical == found.canonical
    assert parse(found.formatted("serialized")).normalized().canonical == found.canonical
    return found.canonical


def test_without_syntax_and_package_the_text_starts_with_an_empty_line() -> None:
    assert stored("message M { optional int32 a = 1; }") == "\nmessage M {\n  optional int32 a = 1;\n}\n"
    assert stored("message M { }") == "\nmessage M {}\n"


def test_the_syntax_line_stays_as_written_and_proto2_is_dropped_by_normalize() -> None:
    assert stored('syntax = "proto2"; message M { }') == 'syntax = "proto2";\n\nmessage M {}\n'
    assert normal('syntax = "proto2"; message M { }') == "\nmessage M {}\n"
    assert normal('syntax = "proto3"; message M { }') == 'syntax = "proto3";\n\nmessage M {}\n'


def test_a_field_of_proto2_without_a_label_stays_without() -> None:
    text = "\nmessage M {\n  int32 a = 1;\n  optional .M b = 2;\n}\n"
    assert stored(text) == text
    assert normal(text) == text


def test_comments_are_dropped_also_inside_declarations() -> None:
    text = "// a\nmessage /* b */ M { // c\n int32 /* d */ a = /* e */ 1; /* f */ }\n// g"
    assert stored('syntax = "proto3";' + text) == 'syntax = "proto3";\n\nmessage M {\n  int32 a = 1;\n}\n'


def test_empty_lines_of_inner_blocks_are_indented() -> None:
    text = stored("message A { message B { optional int32 x = 1; message C { } } }")
    assert text == "\nmessage A {\n  message B {\n    optional int32 x = 1;\n  \n    message C {}\n  }\n}\n"


def test_several_field_options_stand_on_lines_of_their_own_default_and_json_name_last() -> None:
    text = stored('message M { optional int32 a = 1 [json_name = "x", default = 5, deprecated = true]; }')
    assert text == (
        "\nmessage M {\n  optional int32 a = 1 [\n    deprecated = true,\n    default = 5,\n"
        '    json_name = "x"\n  ];\n}\n'
    )


def test_a_message_has_its_parts_in_a_fixed_order() -> None:
    text = """
    message M {
      enum E { option allow_alias = true; A = 0; B = 0; reserved 5 to max, 3; reserved "X", "Y"; }
      message N { }
      extend M { optional int32 x = 100; }
      extensions 100 to 200, 300;
      optional group G = 9 { optional int32 g = 1; }
      oneof o { string a = 1; int32 b = 2; }
      repeated string s = 3;
      option deprecated = true;
      reserved 50, 60 to max;
      reserved "foo", 'bar';
    }"""
    with pytest.raises(ValueError, match="overlaps"):
        parse(text, strict=True)  # 60 to max covers the extension ranges
    assert stored(text.replace("60 to max", "60 to 70")) == (
        """
message M {
  reserved 50, 60 to 70;
  reserved "foo", "bar";

  option deprecated = true;

  repeated string s = 3;

  oneof o {
    string a = 1;
    int32 b = 2;
  }

  optional group G = 9 {
    optional int32 g = 1;
  }

  extensions 100 to 200, 300;

  extend M {
    optional int32 x = 100;
  }

  message N {}
  enum E {
    reserved 5 to max, 3;
    reserved "X", "Y";
    option allow_alias = true;
    A = 0;
    B = 0;
  }
}
"""
    )


def test_services_with_options_and_streams() -> None:
    text = """
    syntax = "proto3";
    message M { }
    service S {
      rpc A (stream M) returns (stream M) { option deprecated = true; option idempotency_level = IDEMPOTENT; }
      rpc B (M) returns (M) {}
      option deprecated = true;
    }"""
    assert stored(text) == (
        """syntax = "proto3";

message M {}

service S {
  option deprecated = true;

  rpc A (stream M) returns (stream M) {
    option deprecated = true;
    option idempotency_level = IDEMPOTENT;
  };
  rpc B (M) returns (M);
}
"""
    )


CUSTOM = """
syntax = "proto3";
package p;
import "google/protobuf/descriptor.proto";
message Rule { string text = 1; repeated int32 numbers = 2; Rule inner = 3; double ratio = 4; }
extend google.protobuf.FieldOptions { Rule rule = 50001; repeated string tags = 50002; }
extend google.protobuf.MessageOptions { bool audited = 50001; }
message M {
  option (audited) = true;
  string a = 1 [(p.rule) = { text: "it's", numbers: [1, 0x10] inner { text: 'x' } ratio: 1.50 }];
  string b = 2 [(rule).text = "t", (.p.tags) = "one", (tags) = "two"];
}
"""


def test_custom_options_print_as_written() -> None:
    assert stored(CUSTOM).endswith(
        """message M {
  option (audited) = true;

  string a = 1 [(p.rule) = {
    text: "it\\'s",
    numbers: [
      1,
      0x10
    ],
    inner: {
      text: "x"
    },
    ratio: 1.50
  }];
  string b = 2 [
    (rule).text = "t",
    (.p.tags) = "one",
    (tags) = "two"
  ];
}

extend google.protobuf.FieldOptions {
  Rule rule = 50001;
  repeated string tags = 50002;
}
extend google.protobuf.MessageOptions {
  bool audited = 50001;
}
"""
    )


def test_normalize_qualifies_and_sorts_custom_options() -> None:
    assert normal(CUSTOM).endswith(
        """message M {
  option (p.audited) = true;

  string a = 1 [(p.rule) = {
    inner: {
      text: "x"
    },
    numbers: [
      1,
      16
    ],
    ratio: 1.5,
    text: "it\\'s"
  }];
  string b = 2 [
    (p.rule) = {
      text: "t"
    },
    (p.tags) = "one",
    (p.tags) = "two"
  ];
}

extend .google.protobuf.FieldOptions {
  .p.Rule rule = 50001;
  repeated string tags = 50002;
}
extend .google.protobuf.MessageOptions {
  bool audited = 50001;
}
"""
    )


def test_ignore_extensions_leaves_confluents_options() -> None:
    text = """
    syntax = "proto2";
    import "google/protobuf/descriptor.proto";
    import "confluent/meta.proto";
    message M {
      extensions 100 to max;
      extend M { optional int32 e = 100; }
      optional int32 a = 1 [(mine) = 1, deprecated = true, (confluent.field_meta).doc = "d"];
    }
    extend google.protobuf.FieldOptions { optional int32 mine = 50001; }
    """
    assert parse(text, strict=True).formatted("ignore_extensions") == (
        """syntax = "proto2";

import "google/protobuf/descriptor.proto";
import "confluent/meta.proto";

message M {
  optional int32 a = 1 [
    deprecated = true,
    (confluent.field_meta).doc = "d"
  ];
}
"""
    )


def test_normalize_sorts_everything_but_messages() -> None:
    text = """
    syntax = "proto3";
    import public "google/protobuf/any.proto";
    import "google/type/date.proto";
    import "confluent/type/decimal.proto";
    option ruby_package = "r";
    option java_package = "j";
    message Z {
      oneof second { string s9 = 9; string s4 = 4; }
      oneof first { google.type.Date d = 3; }
      reserved 12, 10 to 11;
      reserved "y", "x";
      repeated A a = 2;
      map<string, A> m = 1;
    }
    message A { enum E { B = 0; D = 2; C = 1; } }
    """
    assert normal(text) == (
        """syntax = "proto3";

import "confluent/type/decimal.proto";
import "google/type/date.proto";
import public "google/protobuf/any.proto";

option java_package = "j";
option ruby_package = "r";

message Z {
  reserved 10 to 11;
  reserved 12;
  reserved "x";
  reserved "y";

  map<string, .A> m = 1;
  repeated .A a = 2;

  oneof first {
    .google.type.Date d = 3;
  }
  oneof second {
    string s4 = 4;
    string s9 = 9;
  }
}
message A {
  enum E {
    B = 0;
    C = 1;
    D = 2;
  }
}
"""
    )


DEFAULTS = r"""
message M {
  enum E { A = 1; B = 2; }
  optional E e = 1 [default = B];
  optional double d = 2 [default = -1.250];
  optional float f = 3 [default = inf];
  optional string s = 4 [default = "a\"\n\x41é"];
  optional bytes b = 5 [default = "\001\377a"];
  optional uint64 u = 6 [default = 0xFFFFFFFFFFFFFFFF];
  optional bool t = 7 [default = true];
  optional int32 o = 8 [default = -010];
  optional float g = 9 [default = 1e10];
}
"""


def test_defaults_of_proto2_keep_their_values() -> None:
    text = stored(DEFAULTS)
    assert r'optional string s = 4 [default = "a\"\nAé"];' in text
    assert r'optional bytes b = 5 [default = "\001\377a"];' in text
    sorted_text = normal(DEFAULTS)
    for line in (
        "optional .M.E e = 1 [default = B];",
        "optional double d = 2 [default = -1.25];",
        "optional float f = 3 [default = inf];",
        r'optional bytes b = 5 [default = "\001\377a"];',
        "optional uint64 u = 6 [default = 18446744073709551615];",
        "optional int32 o = 8 [default = -8];",
    ):
        assert line in sorted_text


def test_editions_are_printed_with_bare_reserved_names() -> None:
    text = 'edition = "2023"; message M { reserved foo; int32 a = 1 [features.field_presence = IMPLICIT]; }'
    assert stored(text) == (
        'edition = "2023";\n\nmessage M {\n  reserved foo;\n\n'
        "  int32 a = 1 [features.field_presence = IMPLICIT];\n}\n"
    )
    assert "features.field_presence = IMPLICIT" in normal(text)


def test_weak_and_public_imports_and_groups_in_oneofs() -> None:
    text = """
    import weak "google/protobuf/any.proto";
    import public "google/protobuf/empty.proto";
    import "google/protobuf/api.proto";
    message M { oneof o { group G = 2 { required string s = 1; } int32 i = 1; } }
    """
    assert stored(text) == (
        """
import "google/protobuf/api.proto";
import public "google/protobuf/empty.proto";
import weak "google/protobuf/any.proto";

message M {
  oneof o {
    int32 i = 1;
  
    group G = 2 {
      required string s = 1;
    }
  }
}
"""  # noqa: W293
    )
    normal(text)


def test_each_extension_range_keeps_its_options() -> None:
    text = """message M {
      extensions 9, 20 to 30 [verification = UNVERIFIED];
      extensions 5;
      extensions 7 [verification = DECLARATION];
    }"""
    assert normal(text) == (
        """
message M {
  extensions 5;
  extensions 7 [verification = DECLARATION];
  extensions 9 [verification = UNVERIFIED];
  extensions 20 to 30 [verification = UNVERIFIED];
}
"""
    )


def test_references_are_sorted_by_normalize_and_come_once() -> None:
    a, b = Reference("a.proto", "a", 1), Reference("b.proto", "b", 2)
    given = [ResolvedReference(b, "message B { }"), ResolvedReference(a, "message A { }")]
    text = 'import "b.proto"; import "a.proto"; message M { optional A a = 1; optional B b = 2; }'
    schema = parse(text, given, strict=True)
    assert schema.references == (b, a)
    assert schema.normalized().references == (a, b)


@pytest.mark.parametrize(
    ("text", "name", "fields"),
    [
        (
            "package p.q; enum E { A = 0; } message M { optional int32 a = 1; oneof o { int32 b = 2; } }",
            "p.q.M",
            "ab",
        ),
        ("enum E { A = 0; }", "E", ""),
        ("message A { } message B { optional int32 x = 1; }", "A", ""),
        ('import public "google/protobuf/any.proto";', "google.protobuf.Any", ""),
    ],
)
def test_a_schema_is_named_by_its_first_message(text: str, name: str, fields: str) -> None:
    schema = parse(text)
    assert schema.name == name
    assert schema.field_names() == frozenset(fields)
