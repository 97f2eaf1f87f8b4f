"""Codecs: a pair of functions for each message and version, compiled on first use.

`codec(cls, version)` returns an object with `.encode(message, append)` and `.decode(buffer, position)`, and
with generators that do the same in steps, for messages of many elements. Invalid bytes raise `ProtocolError`.
Messages that cannot be written raise `EncodingError`. Both name the path of the field.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from barnabas.protocol.decoding import DecodeSource
from barnabas.protocol.encoding import EncodeSource
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.message import Message
from barnabas.protocol.reading import explain_decoding
from barnabas.protocol.source import Source
from barnabas.protocol.writing import explain_encoding


class Codec:
    """The functions for one version of one message. Each is compiled separately: a broker rarely needs
    both."""

    __slots__ = ("cls", "decode", "decode_in_steps", "encode", "encode_in_steps", "version")

    encode: Callable[[Any, Callable[[Any], object]], None]
    decode: Callable[[Any, int], tuple[Any, int]]
    encode_in_steps: Callable[[Any, Callable[[Any], object]], Generator[None, None, None]]
    decode_in_steps: Callable[[Any, int], Generator[None, None, tuple[Any, int]]]

    def __init__(self, cls: type[Message], version: int) -> None:
        self.cls = cls
        self.version = version

    def __getattr__(self, name: str) -> Any:
        """Compile a function on first use."""
        if name == "encode":
            self.encode = compile_encode(self.cls, self.version)
        elif name == "decode":
            self.decode = compile_decode(self.cls, self.version)
        elif name == "encode_in_steps":
            self.encode_in_steps = compile_encode(self.cls, self.version, in_steps=True)
        elif name == "decode_in_steps":
            self.decode_in_steps = compile_decode(self.cls, self.version, in_steps=True)
        else:
            raise AttributeError(name)
        return object.__getattribute__(self, name)


def codec(cls: type[Message], version: int) -> Codec:
    """The codec of one version of a message."""
    found = cls.schema.codecs.get(version)
    if found is None:
        if version not in cls.schema.versions:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"{cls.__name__} has no version {version}: it has {cls.schema.versions}",
            )
        found = cls.schema.codecs[version] = Codec(cls, version)
    return found


def compile_encode(cls: type[Message], version: int, *, in_steps: bool = False) -> Any:
    source = EncodeSource(version, version in cls.schema.flexible, in_steps=in_steps)

    def explain(message: Message, error: Exception) -> None:
        explain_encoding(message, version, error)

    return compile_function(source, source.function(cls), f"<encode {cls.__name__} {version}>", explain)


def compile_decode(cls: type[Message], version: int, *, in_steps: bool = False) -> Any:
    source = DecodeSource(version, version in cls.schema.flexible, in_steps=in_steps)

    def explain(buffer: Any, position: int, error: Exception) -> None:
        explain_decoding(cls, version, buffer, position, error)

    return compile_function(source, source.function(cls), f"<decode {cls.__name__} {version}>", explain)


def compile_function(source: Source, text: str, file_name: str, explain: Callable[..., None]) -> Any:
    names = {**source.names, "explain": explain}
    exec(compile(text, file_name, "exec"), names)
    return names["function"]
