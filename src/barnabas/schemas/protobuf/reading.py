"""Reads the text of a .proto file.

In: text. Out: a syntax.File, or InvalidSchema that names line and column.
Does not know: other files, or whether names lead to types; describing.py checks those.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from barnabas.schemas.protobuf.option_reading import OptionReader
from barnabas.schemas.protobuf.syntax import (
    DEPTH_MAX,
    ENUM_NUMBER_MAX,
    NUMBER_MAX,
    Enum,
    EnumValue,
    Extend,
    Extensions,
    Field,
    File,
    Import,
    Label,
    Message,
    Method,
    OneOf,
    Option,
    Range,
    Reserved,
    Service,
)
from barnabas.schemas.protobuf.tokens import Kind

LABELS = {str(label): label for label in Label}


def read(text: str) -> File:
    """The file that a text declares."""
    return Reader(text).file()


@dataclass(slots=True)
class _Body:
    """Declarations inside of a message, in the order of the text."""

    fields: list[Field] = field(default_factory=list)
    oneofs: list[OneOf] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    enums: list[Enum] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)
    reserved: list[Reserved] = field(default_factory=list)
    extensions: list[Extensions] = field(default_factory=list)
    extends: list[Extend] = field(default_factory=list)

    def message(self, name: str, line: int) -> Message:
        return Message(
            name,
            tuple(self.fields),
            tuple(self.oneofs),
            tuple(self.messages),
            tuple(self.enums),
            tuple(self.options),
            tuple(self.reserved),
            tuple(self.extensions),
            tuple(self.extends),
            line,
        )


class Reader(OptionReader):
    """Reads declarations by recursive descent; the depth is bounded."""

    def file(self) -> File:
        found = self._first_line()
        imports: list[Import] = []
        body = _Body()
        services: list[Service] = []
        package = ""
        while self.kind is not Kind.END:
            line = self.line
            match self.word():
                case "import":
                    imports.append(self._import(line))
                case "package":
                    if package:
                        raise self.refuse("a second package")
                    package = self.dotted()
                    self.expect(";")
                case "message":
                    body.messages.append(self._message(line, 1))
                case "service":
                    services.append(self._service(line))
                case "enum":
                    body.enums.append(self._enum(line))
                case "extend":
                    body.extends.append(self._extend(line, 1))
                case "option":
                    body.options.append(self.option(line))
                case ";":
                    pass
                case other:
                    raise self.refuse(f"expected a declaration, found {other!r}")
        return replace(
            found,
            package=package,
            imports=tuple(imports),
            options=tuple(body.options),
            messages=tuple(body.messages),
            enums=tuple(body.enums),
            extends=tuple(body.extends),
            services=tuple(services),
        )

    def _first_line(self) -> File:
        if self.peek() == "syntax":
            self.word()
            self.expect("=")
            syntax = self.string()
            if syntax not in ("proto2", "proto3"):
                raise self.refuse(f"unknown syntax {syntax!r}, known are proto2 and proto3")
            self.expect(";")
            return File(syntax=syntax)
        if self.peek() == "edition":
            self.word()
            self.expect("=")
            edition = self.string()
            self.expect(";")
            return File(edition=edition)
        return File()

    def _import(self, line: int) -> Import:
        kind = self.word() if self.peek() in ("public", "weak") else ""
        path = self.string()
        self.expect(";")
        return Import(path, kind, line)

    def _message(self, line: int, depth: int) -> Message:
        name = self.identifier()
        return self._body(name, line, depth)

    def _body(self, name: str, line: int, depth: int) -> Message:
        if depth > DEPTH_MAX:
            raise self.refuse(f"messages are nested more than {DEPTH_MAX} deep")
        body = _Body()
        self.expect("{")
        for statement, at in self._statements():
            match statement:
                case "message":
                    body.messages.append(self._message(at, depth + 1))
                case "enum":
                    body.enums.append(self._enum(at))
                case "extend":
                    body.extends.append(self._extend(at, depth + 1))
                case "option":
                    body.options.append(self.option(at))
                case "oneof":
                    body.oneofs.append(self._oneof(at, depth))
                case "reserved":
                    body.reserved.append(self._reserved(at, NUMBER_MAX))
                case "extensions":
                    body.extensions.append(self._extensions(at))
                case _:
                    body.fields.append(self._field(statement, at, depth))
        return body.message(name, line)

    def _statements(self) -> Iterator[tuple[str, int]]:
        """First words of the statements up to the closing brace, with their lines."""
        while True:
            line = self.line
            word = self.word()
            if word == "}":
                return
            if word != ";":
                yield word, line

    def _field(self, first: str, line: int, depth: int, *, labels: bool = True) -> Field:
        label = None
        if labels and first in LABELS:
            label = LABELS[first]
            first = self.word()
        key_type = None
        if first == "map" and self.peek() == "<":
            if label is not None:
                raise self.refuse("a map has no label")
            self.expect("<")
            key_type = self.type_name(self.word())
            self.expect(",")
            type_name = self.type_name(self.word())
            self.expect(">")
        elif first == "group":
            type_name = first
        else:
            type_name = self.type_name(first)
        name = self.identifier()
        self.expect("=")
        number = self.integer(NUMBER_MAX)
        options = self.options()
        if first != "group":
            self.expect(";")
            return Field(name, number, type_name, label, key_type, None, options, line)
        if not name[0].isupper():
            raise self.refuse(f"the name of group {name!r} must start with a capital letter")
        body = self._body(name, line, depth + 1)
        return Field(name.lower(), number, name, label, None, body, options, line)

    def _oneof(self, line: int, depth: int) -> OneOf:
        name = self.identifier()
        fields: list[Field] = []
        options: list[Option] = []
        self.expect("{")
        for statement, at in self._statements():
            if statement == "option":
                options.append(self.option(at))
            elif statement in LABELS:
                raise self.refuse("a field in a oneof has no label")
            else:
                fields.append(self._field(statement, at, depth, labels=False))
                if fields[-1].key_type is not None:
                    raise self.refuse("a map cannot be in a oneof")
        return OneOf(name, tuple(fields), tuple(options), line)

    def _extend(self, line: int, depth: int) -> Extend:
        extendee = self.type_name(self.word())
        fields: list[Field] = []
        self.expect("{")
        for statement, at in self._statements():
            fields.append(self._field(statement, at, depth))
        return Extend(extendee, tuple(fields), line)

    def _reserved(self, line: int, most: int) -> Reserved:
        ranges: list[Range] = []
        names: list[str] = []
        while True:
            if self.kind is Kind.STRING:
                names.append(self.string())
            elif self.kind is Kind.WORD:
                names.append(self.identifier())  # as editions write it
            else:
                ranges.append(self._range(most))
            if self.peek() != ",":
                break
            self.word()
        self.expect(";")
        return Reserved(tuple(ranges), tuple(names), line)

    def _extensions(self, line: int) -> Extensions:
        ranges = [self._range(NUMBER_MAX)]
        while self.peek() == ",":
            self.word()
            ranges.append(self._range(NUMBER_MAX))
        options = self.options()
        self.expect(";")
        return Extensions(tuple(ranges), options, line)

    def _range(self, most: int) -> Range:
        signed = most == ENUM_NUMBER_MAX
        start = self.integer(most, signed=signed)
        if self.peek() != "to":
            return Range(start, start, single=True)
        self.word()
        if self.peek() == "max":
            self.word()
            end = most
        else:
            end = self.integer(most, signed=signed)
        if end < start:
            raise self.refuse(f"a range ends at {end}, before its start {start}")
        return Range(start, end)

    def _enum(self, line: int) -> Enum:
        name = self.identifier()
        values: list[EnumValue] = []
        options: list[Option] = []
        reserved: list[Reserved] = []
        self.expect("{")
        for statement, at in self._statements():
            if statement == "option" and self.peek() != "=":
                options.append(self.option(at))
            elif statement == "reserved" and self.peek() != "=":
                reserved.append(self._reserved(at, ENUM_NUMBER_MAX))
            else:
                self.check_identifier(statement)
                self.expect("=")
                number = self.integer(ENUM_NUMBER_MAX, signed=True)
                values.append(EnumValue(statement, number, self.options(), at))
                self.expect(";")
        return Enum(name, tuple(values), tuple(options), tuple(reserved), line)

    def _service(self, line: int) -> Service:
        name = self.identifier()
        methods: list[Method] = []
        options: list[Option] = []
        self.expect("{")
        for statement, at in self._statements():
            if statement == "option":
                options.append(self.option(at))
            elif statement == "rpc":
                methods.append(self._method(at))
            else:
                raise self.refuse(f"expected rpc or option, found {statement!r}")
        return Service(name, tuple(methods), tuple(options), line)

    def _method(self, line: int) -> Method:
        name = self.identifier()
        input_type, client_streaming = self._method_type()
        self.expect("returns")
        output_type, server_streaming = self._method_type()
        options: list[Option] = []
        if self.peek() == "{":
            self.word()
            for statement, at in self._statements():
                if statement != "option":
                    raise self.refuse(f"expected option, found {statement!r}")
                options.append(self.option(at))
        else:
            self.expect(";")
        return Method(name, input_type, output_type, client_streaming, server_streaming, tuple(options), line)

    def _method_type(self) -> tuple[str, bool]:
        self.expect("(")
        first = self.word()
        streaming = first == "stream" and self.peek() != ")" and self.peek() != "."
        if first == "stream" and self.peek() == ".":
            # `stream.T` is a name, `stream .T` a stream: only the space tells them apart
            streaming = self.spaced()
        type_name = self.type_name(self.word() if streaming else first)
        self.expect(")")
        return type_name, streaming
