"""Generates the function that encodes one version of one message.

Out: straight-line Python code that passes pieces of bytes to a function, usually `list.append`. `records` are
passed unchanged. After an error, `writing` checks the message again to name the field.
"""

from __future__ import annotations

import struct

from barnabas.protocol import wire
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.message import Struct
from barnabas.protocol.schema import Field
from barnabas.protocol.source import Source
from barnabas.protocol.types import FIXED_FORMATS


class EncodeSource(Source):
    """In the generated code, `m` is the message and `w` the function for the pieces."""

    def __init__(self, version: int, flexible: bool, *, in_steps: bool = False) -> None:
        super().__init__(version, flexible, in_steps=in_steps)
        self.write = "w"

    def function(self, cls: type[Struct]) -> str:
        self.names.update(
            pack=struct.pack,
            Malformed=wire.Malformed,
            ONE_BYTE=wire.ONE_BYTE,
            varint=wire.varint,
            string_length=wire.string_length,
            tag_section=wire.tag_section,
            unsupported=unsupported,
            KafkaError=KafkaError,
        )
        with self.block("try:"):
            self.struct(cls, "m")
            self.flush()
            self.end_of_element()
        with self.block("except KafkaError:"):
            self.emit("raise")
        with self.block("except Exception as error:"):
            self.emit("explain(m, error)")
            self.emit("raise")
        return "\n".join(["def function(m, w):", *self.lines])

    def struct(self, cls: type[Struct], source: str) -> None:
        tagged = []
        for field in cls.schema.fields:
            value = f"{source}.{field.name}"
            if self.version not in field.versions:
                if not field.ignorable:
                    refuse = f"unsupported({source}, {field.name!r}, {self.version})"
                    self.emit(f"if {self.differs(field, value)}: {refuse}")
            elif field.tag is not None:
                tagged.append(field)
            else:
                self.value(field, value)
        if self.flexible:
            self.tags(tagged, source)

    def tags(self, fields: list[Field], source: str) -> None:
        """Emit the tag section at the end of a struct. It is nearly always empty, which is one zero byte."""
        fields.sort(key=lambda field: field.tag or 0)
        conditions = [self.differs(field, f"{source}.{field.name}") for field in fields]
        unknown = f"{source}.unknown_tagged_fields"
        with self.block(f"if {' or '.join([*conditions, unknown])}:"):
            held = self.run.copy()
            self.flush()
            section = self.variable("tags")
            self.emit(f"{section} = []")
            for field, condition in zip(fields, conditions, strict=True):
                with self.block(f"if {condition}:"):
                    pieces, outer = self.variable("parts"), self.write
                    self.write = self.variable("w")
                    self.emit(f"{pieces} = []")
                    self.emit(f"{self.write} = {pieces}.append")
                    self.value(field, f"{source}.{field.name}")
                    self.flush()
                    self.write = outer
                    self.emit(f"{section}.append(({field.tag}, b''.join({pieces})))")
            self.emit(f"{self.write}(tag_section({section}, {unknown}))")
        with self.block("else:"):
            self.run = [*held, ("x", "")]
            self.flush()

    def value(self, field: Field, value: str) -> None:
        nullable = self.is_nullable(field)
        if field.is_array:
            self.array(field, value, nullable)
        elif field.struct is not None:
            self.nested(field, field.struct, value, nullable)
        else:
            self.scalar(field, value, nullable)

    def scalar(self, field: Field, value: str, nullable: bool) -> None:
        if field.type in FIXED_FORMATS:
            self.run.append((FIXED_FORMATS[field.type], value))
            return
        data = self.variable("data")
        is_string = field.type == "String"
        self.emit(f"{data} = {value}" if nullable or not is_string else f"{data} = {value}.encode()")
        wide = "h" if is_string else "i"
        if nullable:
            run = self.null_branch(field, data, wide)
            with self.block("else:"):
                self.run = run
                if is_string:
                    self.emit(f"{data} = {data}.encode()")
                self.length(field, data, wide)
                self.emit(f"{self.write}({data})")
        else:
            self.length(field, data, wide)
            self.emit(f"{self.write}({data})")

    def null_branch(self, field: Field, data: str, wide: str) -> list[tuple[str, str]]:
        """Emit the branch that writes null after the pending values. Returns the pending values for the other
        branch."""
        held = self.run.copy()
        with self.block(f"if {data} is None:"):
            self.run.append(("x", "") if self.is_compact(field) else (wide, "-1"))
            self.flush()
        return held

    def length(self, field: Field, data: str, wide: str) -> None:
        """Write a length together with the fixed-width values in front of it."""
        if not self.is_compact(field):
            self.run.append((wide, f"len({data})"))
            self.flush()
            return
        length = self.variable("n")
        long = "string_length" if field.type == "String" and not field.is_array else "varint"
        self.emit(f"{length} = len({data}) + 1")
        if not self.run:
            self.emit(f"{self.write}(ONE_BYTE[{length}] if {length} < 128 else {long}({length}))")
            return
        plain = self.packed()
        self.run.append(("B", length))
        self.emit(f"{self.write}({self.packed()} if {length} < 128 else {plain} + {long}({length}))")
        self.run.clear()

    def array(self, field: Field, value: str, nullable: bool) -> None:
        array = self.variable("list")
        self.emit(f"{array} = {value}")
        if nullable:
            run = self.null_branch(field, array, "i")
            with self.block("else:"):
                self.run = run
                self.elements(field, array)
        else:
            self.elements(field, array)

    def elements(self, field: Field, array: str) -> None:
        self.length(field, array, "i")
        if field.type == "Uuid":
            self.emit(f"{self.write}(pack('>' + '16s' * len({array}), *{array}))")
        elif field.type in FIXED_FORMATS:
            self.emit(f'{self.write}(pack(f">{{len({array})}}{FIXED_FORMATS[field.type]}", *{array}))')
        else:
            item = self.variable("item")
            with self.block(f"for {item} in {array}:"):
                if field.struct is not None:
                    self.struct(field.struct, item)
                else:
                    self.scalar(field, item, False)
                self.flush()
                self.end_of_element()

    def nested(self, field: Field, cls: type[Struct], value: str, nullable: bool) -> None:
        item = self.variable("item")
        self.emit(f"{item} = {value}")
        if not nullable:
            self.struct(cls, item)
            return
        held = self.run.copy()
        with self.block(f"if {item} is None:"):
            self.run.append(("b", str(field.null_marker)))
            self.flush()
        with self.block("else:"):
            self.run = [*held, ("b", "1")]
            self.struct(cls, item)
            self.flush()

    def packed(self) -> str:
        """An expression for the bytes of everything pending."""
        formats = "".join(code for code, _ in self.run)
        if formats.strip("x") == "":
            return repr(bytes(len(formats)))
        name = "pack_" + formats.replace("?", "o")
        self.names[name] = struct.Struct(">" + formats).pack
        return f"{name}({', '.join(value for _, value in self.run if value)})"

    def flush(self) -> None:
        if self.run:
            self.emit(f"{self.write}({self.packed()})")
            self.run.clear()


def unsupported(struct: Struct, field: str, version: int) -> None:
    raise KafkaError(
        ErrorCode.UNSUPPORTED_VERSION,
        f"{struct.schema.cls.__qualname__} has no field {field} in version {version}",
    )
