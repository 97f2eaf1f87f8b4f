"""Generates the function that decodes one version of one message.

Out: straight-line Python code in which nested structs are inlined. A slice beyond the end of a buffer does
not raise in Python, but it moves the position beyond the end: every later read raises, and a final comparison
finds the rest. After an error, `reading` decodes the bytes again to name the field.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager

from barnabas.protocol import wire
from barnabas.protocol.message import Struct
from barnabas.protocol.schema import Field
from barnabas.protocol.source import Source, minimum_size
from barnabas.protocol.types import FIXED_FORMATS, FIXED_SIZES

FIXED_A_STEP = 1_000  # elements of a fixed size that one step reads


class DecodeSource(Source):
    """In the generated code `b` is the buffer, `p` the position and `e` the end."""

    def function(self, cls: type[Struct]) -> str:
        self.names.update(
            new=object.__new__,
            unpack=struct.unpack_from,
            Malformed=wire.Malformed,
            varint_rest=wire.varint_rest,
            read_varint=wire.read_varint,
            length_rest=wire.length_rest,
            string_rest=wire.string_rest,
            read_unknown_tags=wire.read_unknown_tags,
        )
        self.emit("start = p")
        with self.block("try:"):
            self.emit("e = len(b)")
            self.struct(cls, "m")
            self.flush()
            self.emit("if p > e: raise Malformed")
            self.end_of_element()
            self.emit("return m, p")
        with self.block("except Exception as error:"):
            self.emit("explain(b, start, error)")
            self.emit("raise")
        return "\n".join(["def function(b, p):", *self.lines])

    def struct(self, cls: type[Struct], target: str) -> None:
        self.emit(f"{target} = new({self.constant('struct', cls)})")
        tagged = []
        for field in cls.schema.fields:
            if self.version not in field.versions:
                self.emit(f"{target}.{field.name} = {self.default(field)}")
            elif field.tag is not None:
                self.emit(f"{target}.{field.name} = {self.default(field)}")
                tagged.append(field)
            else:
                self.value(field, f"{target}.{field.name}")
        if not self.flexible:
            self.emit(f"{target}.unknown_tagged_fields = None")
        elif tagged:
            self.known_tags(tagged, target)
        else:
            self.flush()
            unknown = f"{target}.unknown_tagged_fields"
            with self.block("if b[p]:"):
                self.emit(f"{unknown}, p = read_unknown_tags(b, p)")
                if self.in_steps:
                    self.emit(f"yield len({unknown} or ())")
            self.emit(f"else: {unknown} = None; p += 1")

    def known_tags(self, fields: list[Field], target: str) -> None:
        count, number, end = self.variable("n"), self.variable("tag"), self.variable("end")
        self.prefix("B", count)
        self.emit(f"{target}.unknown_tagged_fields = None")
        with self.block(f"if {count}:"):
            self.emit(f"if {count} > 127: {count}, p = varint_rest(b, p, {count})")
            self.emit(f"if {count} * 2 > e - p or {count} > {wire.TAGS_MAX}: raise Malformed")
            if self.in_steps:
                self.emit(f"yield {count}")
            with self.block(f"while {count}:"):
                self.emit(f"{count} -= 1")
                self.emit(f"{number}, p = read_varint(b, p)")
                self.emit(f"{end}, p = read_varint(b, p)")
                self.emit(f"{end} += p")
                self.emit(f"if {end} > e: raise Malformed")
                keyword = "if"
                for field in fields:
                    with self.block(f"{keyword} {number} == {field.tag}:"):
                        self.value(field, f"{target}.{field.name}")
                        self.flush()
                        self.emit(f"if p != {end}: raise Malformed")
                    keyword = "elif"
                with self.block("else:"):
                    unknown = f"{target}.unknown_tagged_fields"
                    self.emit(f"if {unknown} is None: {unknown} = []")
                    self.emit(f"{unknown}.append(({number}, bytes(b[p:{end}])))")
                    self.emit(f"p = {end}")

    def value(self, field: Field, target: str) -> None:
        if field.is_array:
            self.array(field, target)
        elif field.struct is not None:
            self.nested(field, field.struct, target)
        else:
            self.scalar(field, target, self.is_nullable(field))

    def scalar(self, field: Field, target: str, nullable: bool) -> None:
        if field.type in FIXED_FORMATS:
            self.run.append((FIXED_FORMATS[field.type], target))
            return
        compact = self.is_compact(field)
        length, end = self.variable("n"), self.variable("end")
        if field.type == "String" and compact:
            self.prefix("B", length)
            with self.block(f"if 0 < {length} < 128:"):
                self.emit(f"{end} = p + {length} - 1")
                self.emit(f'{target} = str(b[p:{end}], "utf-8")')
                self.emit(f"p = {end}")
            if nullable:
                self.emit(f"elif not {length}: {target} = None")
            self.emit(f"else: {target}, p = string_rest(b, p, {length})")
            return
        taken = f"b[p:{end}]"
        if field.type == "String":
            taken = f'str({taken}, "utf-8")'
        elif field.type == "Bytes":
            taken = f"bytes({taken})"
        with self.present(compact, "h" if field.type == "String" else "i", target, length, nullable):
            self.emit(f"{end} = p + {length}")
            self.emit(f"{target} = {taken}")
            self.emit(f"p = {end}")

    @contextmanager
    def present(self, compact: bool, wide: str, target: str, length: str, nullable: bool) -> Iterator[None]:
        """Emit a null check. Code emitted inside the `with` runs only if the value is not null."""
        self.prefix("B" if compact else wide, length)
        if not compact:
            with self.block(f"if {length} >= 0:"):
                yield
            if nullable:
                self.emit(f"elif {length} == -1: {target} = None")
            self.emit("else: raise Malformed")
        elif nullable:
            self.emit(f"if not {length}: {target} = None")
            with self.block("else:"):
                self.emit(f"if {length} > 127: {length}, p = varint_rest(b, p, {length})")
                self.emit(f"{length} -= 1")
                yield
        else:
            self.emit(f"if not 0 < {length} < 128: {length}, p = length_rest(b, p, {length})")
            self.emit(f"{length} -= 1")
            yield

    def array(self, field: Field, target: str) -> None:
        count = self.variable("n")
        size = minimum_size(field, self.version, self.flexible, element=True)
        with self.present(self.is_compact(field), "i", target, count, self.is_nullable(field)):
            self.emit(f"if {count}{f' * {size}' if size > 1 else ''} > e - p: raise Malformed")
            if field.type not in FIXED_FORMATS:
                self.elements(field, target, count)
                return
            self.emit(f"{target} = []")
            if self.in_steps:
                with self.block(f"while {count} > {FIXED_A_STEP}:"):
                    self.fixed_elements(field, target, str(FIXED_A_STEP))
                    self.emit(f"{count} -= {FIXED_A_STEP}")
                    self.emit(f"yield {FIXED_A_STEP}")
            self.fixed_elements(field, target, count)

    def fixed_elements(self, field: Field, target: str, count: str) -> None:
        """Read `count` elements of a fixed size."""
        if field.type == "Uuid":
            end, i = self.variable("end"), self.variable("i")
            self.emit(f"{end} = p + {count} * 16")
            self.emit(f"{target} += [bytes(b[{i} : {i} + 16]) for {i} in range(p, {end}, 16)]")
            self.emit(f"p = {end}")
        else:
            self.emit(f'{target} += unpack(f">{{{count}}}{FIXED_FORMATS[field.type]}", b, p)')
            self.emit(f"p += {count} * {FIXED_SIZES[field.type]}")

    def elements(self, field: Field, target: str, count: str) -> None:
        array, element = self.variable("list"), self.variable("item")
        self.emit(f"{target} = {array} = []")
        with self.block(f"while {count}:"):
            self.emit(f"{count} -= 1")
            if field.struct is not None:
                self.struct(field.struct, element)
            else:
                self.scalar(field, element, False)
            self.flush()
            self.emit(f"{array}.append({element})")
            self.end_of_element()

    def nested(self, field: Field, cls: type[Struct], target: str) -> None:
        item = self.variable("item")
        if not self.is_nullable(field):
            self.struct(cls, item)
            self.emit(f"{target} = {item}")
            return
        marker = self.variable("n")
        self.prefix("b", marker)
        with self.block(f"if {marker} == 1:"):
            self.struct(cls, item)
            self.flush()
            self.emit(f"{target} = {item}")
        self.emit(f"elif {marker} == {field.null_marker}: {target} = None")
        self.emit("else: raise Malformed")

    def prefix(self, code: str, variable: str) -> None:
        """Read a length together with the fixed-width values in front of it."""
        self.run.append((code, variable))
        self.flush()

    def flush(self) -> None:
        if not self.run:
            return
        formats = "".join(code for code, _ in self.run)
        targets = ", ".join(target for _, target in self.run)
        if formats == "B":
            self.emit(f"{targets} = b[p]; p += 1")
        else:
            fixed = struct.Struct(">" + formats)
            name = "unpack_" + formats.replace("?", "o")
            self.names[name] = fixed.unpack_from
            self.emit(f"{targets}{',' if len(self.run) == 1 else ''} = {name}(b, p); p += {fixed.size}")
        self.run.clear()
