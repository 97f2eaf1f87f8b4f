"""The parts of a .proto file as values: files, messages, fields, enums, services and options.

In: nothing. Out: frozen values that readers make and printers and describers take.
Does not know: text, descriptors, or whether a name that it holds leads anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

NUMBER_MAX = (1 << 29) - 1  # of fields
ENUM_NUMBER_MAX = (1 << 31) - 1
EDITIONS = {"2023": 1000, "2024": 1001}  # names and numbers in descriptors
DEPTH_MAX = 32  # messages in messages, and braces in option values; protoc has the same bound

SCALARS = frozenset(
    [
        "double",
        "float",
        "int32",
        "int64",
        "uint32",
        "uint64",
        "sint32",
        "sint64",
        "fixed32",
        "fixed64",
        "sfixed32",
        "sfixed64",
        "bool",
        "string",
        "bytes",
    ]
)


class Label(StrEnum):
    OPTIONAL = "optional"
    REQUIRED = "required"
    REPEATED = "repeated"


@dataclass(frozen=True, slots=True)
class Text:
    """A quoted string, its escapes resolved. Bytes, because an escape may make any byte."""

    value: bytes


@dataclass(frozen=True, slots=True)
class Word:
    """A bare word: true, false, inf, nan or the name of an enum's value."""

    text: str


@dataclass(frozen=True, slots=True)
class Number:
    """A number as it was written, with its sign."""

    text: str


@dataclass(frozen=True, slots=True)
class Many:
    """A list in brackets."""

    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Braces:
    """A message in braces; a key is a field's name, or an extension's in brackets. Each key once."""

    entries: tuple[tuple[str, Value], ...]


Value = Text | Word | Number | Many | Braces


@dataclass(frozen=True, slots=True)
class NamePart:
    text: str
    is_extension: bool = False  # in parentheses


@dataclass(frozen=True, slots=True)
class Option:
    name: tuple[NamePart, ...]
    value: Value
    line: int = 0

    @property
    def plain_name(self) -> str | None:
        """The name of an option that is neither an extension nor a part of another option."""
        return self.name[0].text if len(self.name) == 1 and not self.name[0].is_extension else None


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers from start to end, both included."""

    start: int
    end: int
    single: bool = False  # written as one number


@dataclass(frozen=True, slots=True)
class Reserved:
    ranges: tuple[Range, ...] = ()
    names: tuple[str, ...] = ()
    line: int = 0


@dataclass(frozen=True, slots=True)
class Extensions:
    ranges: tuple[Range, ...]
    options: tuple[Option, ...] = ()
    line: int = 0


@dataclass(frozen=True, slots=True)
class Field:
    """A field; a map has the type of its keys, a group has the message that it declares."""

    name: str
    number: int
    type: str
    label: Label | None = None
    key_type: str | None = None
    body: Message | None = None
    options: tuple[Option, ...] = ()  # `default` and `json_name` among them
    line: int = 0


@dataclass(frozen=True, slots=True)
class OneOf:
    name: str
    fields: tuple[Field, ...] = ()
    options: tuple[Option, ...] = ()
    line: int = 0


@dataclass(frozen=True, slots=True)
class EnumValue:
    name: str
    number: int
    options: tuple[Option, ...] = ()
    line: int = 0


@dataclass(frozen=True, slots=True)
class Enum:
    name: str
    values: tuple[EnumValue, ...] = ()
    options: tuple[Option, ...] = ()
    reserved: tuple[Reserved, ...] = ()
    line: int = 0


@dataclass(frozen=True, slots=True)
class Extend:
    extendee: str
    fields: tuple[Field, ...] = ()
    line: int = 0


@dataclass(frozen=True, slots=True)
class Message:
    name: str
    fields: tuple[Field, ...] = ()  # those outside oneofs
    oneofs: tuple[OneOf, ...] = ()
    messages: tuple[Message, ...] = ()
    enums: tuple[Enum, ...] = ()
    options: tuple[Option, ...] = ()
    reserved: tuple[Reserved, ...] = ()
    extensions: tuple[Extensions, ...] = ()
    extends: tuple[Extend, ...] = ()
    line: int = 0


@dataclass(frozen=True, slots=True)
class Method:
    name: str
    input_type: str
    output_type: str
    client_streaming: bool = False
    server_streaming: bool = False
    options: tuple[Option, ...] = ()
    line: int = 0


@dataclass(frozen=True, slots=True)
class Service:
    name: str
    methods: tuple[Method, ...] = ()
    options: tuple[Option, ...] = ()
    line: int = 0


@dataclass(frozen=True, slots=True)
class Import:
    path: str
    kind: str = ""  # public, weak, or nothing
    line: int = 0


@dataclass(frozen=True, slots=True)
class File:
    syntax: str | None = None  # proto2, proto3; none is proto2
    edition: str | None = None
    package: str = ""
    imports: tuple[Import, ...] = ()
    options: tuple[Option, ...] = ()
    messages: tuple[Message, ...] = ()
    enums: tuple[Enum, ...] = ()
    extends: tuple[Extend, ...] = ()
    services: tuple[Service, ...] = ()
