"""Turns bytes of keys, values and headers into text, by the class names of Kafka's deserializers.

In: a class name. Out: a function from bytes to printable bytes. It raises ToolError for data of another type.
"""

import struct
from collections.abc import Callable

from barnabas.cli.frame.parsing import ToolError

Deserializer = Callable[[bytes], bytes]

PACKAGE = "org.apache.kafka.common.serialization."


def raw(data: bytes) -> bytes:
    return data


def number(name: str, layout: str) -> Deserializer:
    codec = struct.Struct(layout)

    def read(data: bytes) -> bytes:
        if len(data) != codec.size:
            raise ToolError(f"Size of data received by {name} is not {codec.size}")
        return str(codec.unpack(data)[0]).encode()

    return read


def boolean(data: bytes) -> bytes:
    if data not in (b"\x00", b"\x01"):
        raise ToolError("Size of data received by BooleanDeserializer is not 1, or it is neither 0 nor 1")
    return b"true" if data == b"\x01" else b"false"


KNOWN: dict[str, Deserializer] = {
    "StringDeserializer": raw,
    "ByteArrayDeserializer": raw,
    "ByteBufferDeserializer": raw,
    "BytesDeserializer": raw,
    "UUIDDeserializer": raw,
    "BooleanDeserializer": boolean,
    "ShortDeserializer": number("ShortDeserializer", ">h"),
    "IntegerDeserializer": number("IntegerDeserializer", ">i"),
    "LongDeserializer": number("LongDeserializer", ">q"),
    "FloatDeserializer": number("FloatDeserializer", ">f"),
    "DoubleDeserializer": number("DoubleDeserializer", ">d"),
}


def deserializer(name: str) -> Deserializer:
    """The deserializer with a Java class name, with or without Kafka's package."""
    found = KNOWN.get(name.removeprefix(PACKAGE))
    if found is None:
        raise ToolError(f"there is no deserializer {name}: this tool knows {', '.join(KNOWN)}")
    return found
