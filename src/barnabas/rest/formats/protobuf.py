"""Protobuf data in Protobuf's JSON mapping, as messages and back.

In: a Protobuf schema with its references. Out: a codec. New data are the first message of the file; records
that are read name their message by indexes. Fields without presence are printed also when they are not set,
as Confluent's proxy prints them.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import json_format
from google.protobuf.message import DecodeError, EncodeError

from barnabas.rest.formats.errors import DataMismatch, SchemaRefused
from barnabas.rest.formats.source import KnownSchema
from barnabas.schemas.client.values import PROTOBUF, Schema
from barnabas.schemas.model import InvalidSchema, ResolvedReference, SchemaType
from barnabas.schemas.parsing import parse
from barnabas.schemas.serdes.framing import BadFrame, read_indexes, written_indexes
from barnabas.schemas.serdes.protobuf import SERIALIZED
from barnabas.schemas.serdes.protobuf import ProtobufCodec as Messages

NESTING_MAX = 100
FIRST = (0,)


class ProtobufCodec:
    def __init__(self, schema: KnownSchema) -> None:
        try:
            self._messages = Messages(*described(schema))
            self._first = self._messages.message_class(FIRST)
        except (InvalidSchema, TypeError, KeyError, ValueError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise SchemaRefused(f"The Protobuf schema {schema.schema_id} cannot be used: {reason}") from None
        self._indexes = written_indexes(FIRST)

    def encode(self, data: Any) -> bytes:
        message = self._first()
        try:
            json_format.ParseDict(data, message, max_recursion_depth=NESTING_MAX)
            encoded: bytes = message.SerializeToString()
        except (json_format.ParseError, EncodeError, ValueError, TypeError, AttributeError) as error:
            raise DataMismatch(f"the data do not fit {self._first.DESCRIPTOR.full_name}: {error}") from None
        except RecursionError:
            raise DataMismatch("the data are nested too deeply") from None
        return self._indexes + encoded

    def decode(self, payload: bytes) -> Any:
        try:
            indexes, position = read_indexes(payload, 0)
            kind = self._messages.message_class(indexes)
            message = kind.FromString(payload[position:])
            return json_format.MessageToDict(message, always_print_fields_with_no_presence=True)
        except BadFrame as error:
            raise DataMismatch(f"the record is no Protobuf: {error}") from None
        except (DecodeError, json_format.Error, ValueError, TypeError, RecursionError) as error:
            raise DataMismatch(f"the record is no message of its schema: {error}") from None


def described(schema: KnownSchema) -> tuple[Schema, list[ResolvedReference]]:
    """The schema and its references as descriptors."""
    known: list[ResolvedReference] = []
    found: list[ResolvedReference] = []
    for each in schema.references:
        found.append(ResolvedReference(each.reference, descriptor(each.text, known), each.references))
        known.append(each)
    return Schema(descriptor(schema.text, known), PROTOBUF), found


def descriptor(text: str, references: list[ResolvedReference]) -> str:
    return parse(SchemaType.PROTOBUF, text, references).formatted(SERIALIZED)
