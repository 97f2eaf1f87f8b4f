"""Message indexes: how a record says which message of its file it is.

In: a FileDescriptorProto. Out: the path of a message by its full name, and back.
Does not know: how the indexes are written in a record.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto

from barnabas.schemas.protobuf.names import qualified


def message_name(file: FileDescriptorProto, indexes: Sequence[int]) -> str:
    """The full name of the message at this path; ValueError if there is none."""
    messages: Sequence[DescriptorProto] = file.message_type
    name = str(file.package)
    for index in indexes:
        if not 0 <= index < len(messages):
            raise ValueError(f"the schema has no message at the indexes {list(indexes)}")
        name = qualified(name, messages[index].name)
        messages = messages[index].nested_type
    if not indexes:
        raise ValueError("message indexes are empty")
    return name


def message_indexes(file: FileDescriptorProto, name: str) -> tuple[int, ...]:
    """The path of a message by its full name; ValueError if the file does not declare it."""
    for full_name, path in _walk(file.message_type, file.package, ()):
        if full_name == name.removeprefix("."):
            return path
    raise ValueError(f"the schema declares no message {name!r}")


def _walk(
    messages: Sequence[DescriptorProto], scope: str, path: tuple[int, ...]
) -> Iterator[tuple[str, tuple[int, ...]]]:
    for index, message in enumerate(messages):
        full_name = qualified(scope, message.name)
        yield full_name, (*path, index)
        yield from _walk(message.nested_type, full_name, (*path, index))
