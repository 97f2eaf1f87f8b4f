"""Turns keys and values of records into text: as plain text, or decoded as records of an internal topic.

In: one record. Out: the text of its key and of its value, each None if it is absent. If a record cannot be
decoded, the text says so; the dump continues. Does not know: files, batches.
"""

import base64
import struct
from collections.abc import Callable
from types import ModuleType
from typing import Any

from barnabas.cli.frame.message_json import compact, to_json
from barnabas.cli.frame.parsing import ToolError
from barnabas.protocol import KafkaError, Message, ProtocolError
from barnabas.records.record import Record

Decoded = tuple[str | None, str | None]
Decoder = Callable[[Record], Decoded]

_version = struct.Struct(">h")
CONSUMER_PROTOCOL = "consumer"


def as_text(record: Record) -> Decoded:
    key = None if record.key is None else record.key.decode("utf-8", "replace")
    return key, None if record.value is None else record.value.decode("utf-8", "replace")


def reader_of_class(name: str | None) -> Callable[[bytes], str]:
    """The decoder for keys or values with the name of a class of Kafka's."""
    short = (name or "StringDecoder").rpartition(".")[2]
    numbers = {"IntegerDecoder": ">i", "LongDecoder": ">q"}
    if short not in (*numbers, "StringDecoder", "DefaultDecoder"):
        known = ", ".join(("StringDecoder", *numbers))
        raise ToolError(f"Failed to load decoder class (give one of {known}, not {name})")
    if short in numbers:
        codec = struct.Struct(numbers[short])
        return lambda data: str(codec.unpack(data)[0]) if len(data) == codec.size else repr(data)
    return lambda data: data.decode("utf-8", "replace")


def cluster_metadata(record: Record) -> Decoded:
    """Records of `__cluster_metadata`: type, version and fields."""
    from barnabas.metadata import serde

    value = record.value or b""
    try:
        message = serde.decode(value)
    except (ProtocolError, KafkaError) as error:
        return None, f"Error at {record.offset}, skipping. {error}"
    version = value[2]
    data = {"type": record_type(message), "version": version, "data": to_json(message, version)}
    return None, compact(data)


def record_type(message: Message) -> str:
    """`FeatureLevelRecord` -> `FEATURE_LEVEL_RECORD`."""
    name = type(message).__name__
    return "".join(
        f"_{letter}" if letter.isupper() and place else letter for place, letter in enumerate(name)
    ).upper()


def offsets(record: Record) -> Decoded:
    """Records of `__consumer_offsets`."""
    from barnabas.protocol.log_records import consumer_offsets

    return by_key_type(consumer_offsets, record, group_value)


def transaction_log(record: Record) -> Decoded:
    """Records of `__transaction_state`."""
    from barnabas.protocol.log_records import transaction_state

    return by_key_type(transaction_state, record, to_json)


def share_state(record: Record) -> Decoded:
    """Records of `__share_group_state`."""
    from barnabas.protocol.log_records import share_state as declarations

    return by_key_type(declarations, record, to_json)


def remote_log_metadata(record: Record) -> Decoded:
    """Records of `__remote_log_metadata`."""
    from barnabas.cli.files.remote_log_text import text_of

    try:
        return None, text_of(record.value or b"")
    except ValueError as error:
        return None, f"Error at offset {record.offset}, skipping. {error}"


def by_key_type(
    declarations: ModuleType, record: Record, value_json: Callable[[Any, int], dict[str, Any]]
) -> Decoded:
    """Decode by the type in the first two bytes of the key and the version in the first two of the value."""
    key, value = record.key, record.value
    if key is None or len(key) < _version.size:
        return None, f"Failed to decode message at offset {record.offset} using the decoder: it has no type"
    (kind,) = _version.unpack_from(key)
    classes = {each.__name__: each for each in messages_of(declarations) if each.schema.key == kind}
    key_class = next((cls for name, cls in classes.items() if name.endswith("Key")), None)
    value_class = next((cls for name, cls in classes.items() if name.endswith("Value")), None)
    if key_class is None or value_class is None:
        return f"Unknown record type {kind} at offset {record.offset}, skipping.", None
    try:
        shown_key = compact({"type": str(kind), "data": to_json(key_class.decode(key[2:], 0), 0)})
        if value is None:
            return shown_key, "<DELETE>"
        (version,) = _version.unpack_from(value)
        content = value_class.decode(value[2:], version)
        return shown_key, compact({"version": str(version), "data": value_json(content, version)})
    except (ProtocolError, KafkaError, struct.error) as error:
        return f"Error at offset {record.offset}, skipping. {error}", None


def group_value(message: Message, version: int) -> dict[str, Any]:
    """A group's record as JSON, with the subscription and assignment of members decoded, too."""
    data = to_json(message, version)
    if data.get("protocolType") != CONSUMER_PROTOCOL:
        return data
    from barnabas.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
    from barnabas.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

    for member in data.get("members", ()):
        for name, cls in (
            ("subscription", ConsumerProtocolSubscription),
            ("assignment", ConsumerProtocolAssignment),
        ):
            inner = base64.b64decode(member.get(name) or "")
            try:
                (inner_version,) = _version.unpack_from(inner)
                member[name] = to_json(cls.decode(inner[2:], inner_version), inner_version)
            except (ProtocolError, KafkaError, struct.error):
                continue  # bytes that cannot be decoded stay base64
    return data


def messages_of(declarations: ModuleType) -> list[type[Message]]:
    found = [
        each for each in vars(declarations).values() if isinstance(each, type) and issubclass(each, Message)
    ]
    return [each for each in found if each is not Message]
