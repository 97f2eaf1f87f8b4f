"""Kafka's vocabulary: field types, messages of all versions, codecs, api keys, error codes, ids.

Pure: bytes in, values out, and back. Messages live in `barnabas.protocol.messages`, one module an API,
and are imported by those who need them.
"""

from barnabas.protocol.apis import ApiKey
from barnabas.protocol.errors import EncodingError, ErrorCode, KafkaError, ProtocolError
from barnabas.protocol.message import Message, Struct
from barnabas.protocol.types import NULL_UUID

__all__ = [
    "NULL_UUID",
    "ApiKey",
    "EncodingError",
    "ErrorCode",
    "KafkaError",
    "Message",
    "ProtocolError",
    "Struct",
]
