"""Kafka's protocol: field types, messages of all versions, codecs, API keys, error codes, ids.

Converts between bytes and values, without I/O. Messages are in `barnabas.protocol.messages`, one module for
each API; modules are imported on demand.
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
