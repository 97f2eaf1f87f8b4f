"""Files that a schema imports: those that everybody knows, and those that come as references.

In: import paths and the texts of references. Out: FileDescriptorProtos, imports before importers.
Does not know: how a text becomes a descriptor; the caller passes that in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib import import_module

from google.protobuf.descriptor_pb2 import FileDescriptorProto

from barnabas.schemas.model import InvalidSchema

IMPORTS_MAX = 200  # files that one schema needs, with those that its imports need
IMPORT_DEPTH_MAX = 64

_PROTOBUF = "any api descriptor duration empty field_mask source_context struct timestamp type wrappers"
_TYPES = (
    "calendar_period color date datetime dayofweek decimal expr fraction interval latlng localized_text"
    " money month phone_number postal_address quaternion timeofday"
)
_MODULES = {
    **{f"google/protobuf/{name}.proto": f"google.protobuf.{name}_pb2" for name in _PROTOBUF.split()},
    **{f"google/type/{name}.proto": f"google.type.{name}_pb2" for name in _TYPES.split()},
}

# Confluent's own two files, written from what they declare.
_TEXTS = {
    "confluent/meta.proto": """
        syntax = "proto3";
        package confluent;
        import "google/protobuf/descriptor.proto";
        option go_package = "../confluent";
        message Meta {
          string doc = 1;
          map<string, string> params = 2;
          repeated string tags = 3;
          repeated Rule rules = 4;
        }
        message Rule { string name = 1; string doc = 2; string expr = 3; string sql = 4; }
        extend google.protobuf.FileOptions { Meta file_meta = 1088; }
        extend google.protobuf.MessageOptions { Meta message_meta = 1088; }
        extend google.protobuf.FieldOptions { Meta field_meta = 1088; }
        extend google.protobuf.EnumOptions { Meta enum_meta = 1088; }
        extend google.protobuf.EnumValueOptions { Meta enum_value_meta = 1088; }
    """,
    "confluent/type/decimal.proto": """
        syntax = "proto3";
        package confluent.type;
        option go_package = "../type";
        message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }
    """,
}

KNOWN = frozenset(_MODULES) | frozenset(_TEXTS)

Describe = Callable[[str, str, "Files"], FileDescriptorProto]


@cache
def _of_module(path: str) -> FileDescriptorProto:
    file = FileDescriptorProto()
    import_module(_MODULES[path]).DESCRIPTOR.CopyToProto(file)
    return file


class Files:
    """Loads imports depth-first; each file once."""

    def __init__(self, texts: Mapping[str, str], describe: Describe) -> None:
        self._texts = {**_TEXTS, **texts}
        self._describe = describe
        self._loaded: dict[str, FileDescriptorProto] = {}
        self._loading: list[str] = []

    @property
    def loaded(self) -> tuple[FileDescriptorProto, ...]:
        """All files loaded so far, imports before importers."""
        return tuple(self._loaded.values())

    def load(self, path: str) -> FileDescriptorProto | None:
        """The file of an import path, with everything it imports; none if nobody has it."""
        if path in self._loaded:
            return self._loaded[path]
        if path in self._loading:
            circle = " -> ".join([*self._loading[self._loading.index(path) :], path])
            raise InvalidSchema(f"the imports form a circle: {circle}")
        if len(self._loaded) >= IMPORTS_MAX or len(self._loading) >= IMPORT_DEPTH_MAX:
            raise InvalidSchema(f"too many imports, at {path!r}")
        self._loading.append(path)
        try:
            if path in _MODULES:
                file = _of_module(path)
                for inner in file.dependency:
                    self.load(inner)
            elif path in self._texts:
                try:
                    file = self._describe(path, self._texts[path], self)
                except InvalidSchema as problem:
                    raise InvalidSchema(f"in {path!r}: {problem}") from None
            else:
                return None
        finally:
            self._loading.pop()
        self._loaded[path] = file
        return file

    def visible(self, imports: Iterable[str]) -> list[FileDescriptorProto]:
        """The files whose types an importer may use: its imports and what those import publicly."""
        found: dict[str, FileDescriptorProto] = {}
        waiting = list(imports)
        while waiting:
            path = waiting.pop()
            file = self._loaded.get(path)
            if file is not None and path not in found:
                found[path] = file
                waiting += [file.dependency[index] for index in file.public_dependency]
        return list(found.values())
