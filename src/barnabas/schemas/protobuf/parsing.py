"""Parses Protobuf schemas: text, or a FileDescriptorProto in base64, which many clients send.

In: text and references. Out: a ProtobufSchema, or InvalidSchema that names line or place.
Does not know: subjects, versions, ids. Work grows with the length of the text, which is bounded; callers on
an event loop parse in a thread.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, Message

from barnabas.schemas.model import (
    CompatibilityPolicy,
    Incompatibility,
    InvalidSchema,
    Reference,
    ResolvedReference,
    SchemaType,
)
from barnabas.schemas.protobuf.comparing import compare
from barnabas.schemas.protobuf.describing import Describer
from barnabas.schemas.protobuf.extending import set_extensions
from barnabas.schemas.protobuf.files import Files
from barnabas.schemas.protobuf.indexes import message_indexes, message_name
from barnabas.schemas.protobuf.names import qualified
from barnabas.schemas.protobuf.printing import print_file
from barnabas.schemas.protobuf.reading import read
from barnabas.schemas.protobuf.rendering import Renderer
from barnabas.schemas.protobuf.syntax import File
from barnabas.schemas.protobuf.thinning import without_extensions

SIZE_MAX = 1 << 20  # characters of one file
SIZE_OF_REFERENCES_MAX = 8 << 20  # of all files that a schema needs
MAIN_PATH = "default"  # the name of a file that has none; clients give it their own

_BASE64 = re.compile(r"[A-Za-z0-9+/\s]+={0,2}\s*\Z")


@dataclass(frozen=True, eq=False)
class ProtobufSchema:
    """A .proto file that was checked, with the files that it imports."""

    canonical: str
    references: tuple[Reference, ...]
    file: FileDescriptorProto
    imports: tuple[FileDescriptorProto, ...]  # imports before importers
    resolved: tuple[ResolvedReference, ...] = ()

    @property
    def schema_type(self) -> SchemaType:
        return SchemaType.PROTOBUF

    @property
    def name(self) -> str | None:
        """The full name of the first message, else of the first enum.

        A file that declares neither passes on the types of its public imports.
        """
        imported = {one.name: one for one in self.imports}
        public = [imported.get(self.file.dependency[index]) for index in self.file.public_dependency]
        for file in (self.file, *(one for one in public if one is not None)):
            first = next(iter((*file.message_type, *file.enum_type)), None)
            if first is not None:
                return qualified(file.package, first.name)
        return None

    def normalized(self) -> ProtobufSchema:
        pool = self.descriptor_pool()
        text = print_file(Renderer(self.file, pool, normal=True).render())
        references = sorted(set(self.references), key=lambda one: (one.subject, one.version, one.name))
        file, imports = _described(text, self.resolved, strict=False)
        return ProtobufSchema(text, tuple(references), file, imports, self.resolved)

    def formatted(self, form: str) -> str:
        if form == "serialized":
            return base64.b64encode(self.file.SerializeToString(deterministic=True)).decode()
        if form == "ignore_extensions":
            return print_file(without_extensions(read(self.canonical)))
        return self.canonical

    def field_names(self) -> frozenset[str]:
        return frozenset(field.name for message in self.file.message_type[:1] for field in message.field)

    def incompatibilities(self, writer: ProtobufSchema, policy: CompatibilityPolicy) -> list[Incompatibility]:
        same = {
            one.name
            for one in self.references
            if any(
                (one.name, one.subject, one.version) == (w.name, w.subject, w.version)
                for w in writer.references
            )
        }
        return compare(writer.file, writer.imports, self.file, self.imports, same)

    def message_indexes(self, name: str) -> tuple[int, ...]:
        """The path of a message by its full name: its index at the top, then inside each message."""
        return message_indexes(self.file, name)

    def message_name(self, indexes: Sequence[int]) -> str:
        return message_name(self.file, indexes)

    def descriptor_pool(self) -> DescriptorPool:
        """A new pool with this file, named MAIN_PATH, and its imports."""
        return _pool([*self.imports, self.file])

    @cached_property
    def pool(self) -> DescriptorPool:
        """The pool of this schema, made once: serializers take message classes from it."""
        return self.descriptor_pool()


def parse(text: str, references: Sequence[ResolvedReference] = (), *, strict: bool = False) -> ProtobufSchema:
    """A schema from its text or its descriptor. Strict: every import must be found."""
    _check_sizes(text, references)
    descriptor = _descriptor(text)
    if descriptor is not None:
        text = _text_of(descriptor, references, strict)
    file = read(text)
    if not (file.messages or file.enums or file.services or file.extends or file.imports or file.options):
        raise InvalidSchema("the schema declares nothing: no message, enum, service or extension")
    described, imports = _described(file, references, strict=strict)
    imported = {one.path for one in file.imports}
    brought = {inner for one in references for inner in one.references}
    own = tuple(one.reference for one in references if _is_direct(one, imported, brought))
    return ProtobufSchema(print_file(file), own, described, imports, tuple(references))


def _check_sizes(text: str, references: Sequence[ResolvedReference]) -> None:
    if len(text) > SIZE_MAX:
        raise InvalidSchema(f"the schema has {len(text)} characters, the limit is {SIZE_MAX}")
    total = sum(len(one.text) for one in references)
    if total > SIZE_OF_REFERENCES_MAX:
        raise InvalidSchema(f"the references have {total} characters, the limit is {SIZE_OF_REFERENCES_MAX}")


def _is_direct(one: ResolvedReference, imported: Iterable[str], brought: Iterable[Reference]) -> bool:
    return one.reference.name in imported or one.reference not in brought


def _descriptor(text: str) -> FileDescriptorProto | None:
    """The descriptor if the text is one in base64: a .proto file has other characters too."""
    if not _BASE64.match(text):
        return None
    file = FileDescriptorProto()
    try:
        file.ParseFromString(base64.b64decode("".join(text.split()), validate=True))
    except (ValueError, DecodeError):
        return None
    _check_strings(file)
    return file


def _check_strings(message: Message) -> None:
    """Refuse strings that are not UTF-8: the library hands them over as bytes."""
    for field, value in message.ListFields():
        # An option is a message with maps where another library has registered its type for everybody.
        is_map = isinstance(value, Mapping)
        for one in (*value, *value.values()) if is_map else value if field.is_repeated else [value]:
            if isinstance(one, Message):
                _check_strings(one)
            elif field.type == field.TYPE_STRING and isinstance(one, bytes):
                raise InvalidSchema(f"the descriptor has a {field.name} that is not UTF-8")


def _text_of(descriptor: FileDescriptorProto, references: Sequence[ResolvedReference], strict: bool) -> str:
    """The text of a descriptor; its imports explain custom options."""
    descriptor.name = MAIN_PATH
    files = _files(references)
    for path in descriptor.dependency:
        if files.load(path) is None and strict:
            raise InvalidSchema(f"import {path!r} is neither a reference nor a known file")
    missing = [path for path in descriptor.dependency if files.load(path) is None]
    pool = DescriptorPool() if missing else _pool([*files.loaded, descriptor])
    try:
        return print_file(Renderer(descriptor, pool, normal=False).render())
    except RecursionError:
        raise InvalidSchema("the descriptor is nested too deeply") from None


def _described(
    source: File | str, references: Sequence[ResolvedReference], *, strict: bool
) -> tuple[FileDescriptorProto, tuple[FileDescriptorProto, ...]]:
    """The descriptor of a file, checked by a descriptor pool, and those of its imports."""
    files = _files(references)
    file = read(source) if isinstance(source, str) else source
    describer = Describer(file, MAIN_PATH, files, strict=strict)
    described = describer.describe()
    pool = _pool([*files.loaded, described])
    set_extensions(describer.pending, pool, describer.extension_name, strict=strict)
    return described, files.loaded


def _files(references: Sequence[ResolvedReference]) -> Files:
    return Files({one.reference.name: one.text for one in references}, _describe_import)


def _describe_import(path: str, text: str, files: Files) -> FileDescriptorProto:
    descriptor = _descriptor(text)
    if descriptor is not None:
        for inner in descriptor.dependency:
            files.load(inner)
        descriptor.name = path
        text = print_file(Renderer(descriptor, _pool([*files.loaded, descriptor]), normal=False).render())
    describer = Describer(read(text), path, files, strict=False)
    described = describer.describe()
    if describer.pending:
        pool = _pool([*files.loaded, described])
        set_extensions(describer.pending, pool, describer.extension_name, strict=False)
    return described


def _pool(files: Iterable[FileDescriptorProto]) -> DescriptorPool:
    """A pool of these files; it is the last judge of whether they are sound."""
    pool = DescriptorPool()
    for file in files:
        try:
            pool.AddSerializedFile(file.SerializeToString())
        except (TypeError, ValueError) as problem:
            reason = str(problem).removeprefix("Couldn't build proto file into descriptor pool: ")
            place = "" if file.name == MAIN_PATH else f"in {file.name!r}: "
            raise InvalidSchema(f"{place}{reason}") from None
    return pool
