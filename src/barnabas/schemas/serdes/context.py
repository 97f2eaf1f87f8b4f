"""Topic and field of a record, and the error of a record that cannot be written or read.

In: topic, field, headers. Out: values. Does not know: schemas. Contexts of confluent-kafka have the same
attributes and are accepted wherever these are.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol


class MessageField(StrEnum):
    KEY = "key"
    VALUE = "value"


class Context(Protocol):
    """The part of a context that serializers read: of ours, or of confluent-kafka's."""

    @property
    def topic(self) -> str | None: ...

    @property
    def field(self) -> Any: ...

    @property
    def headers(self) -> Any: ...


@dataclass(slots=True)
class SerializationContext:
    """The topic and the field of a record. Headers are a list of pairs or a dict; serializers add to them."""

    topic: str | None
    field: MessageField = MessageField.VALUE
    headers: Any = None


class SerializationError(ValueError):
    """A record cannot be written or read; the text names its topic and field."""


def is_key(context: Context) -> bool:
    return bool(context.field == MessageField.KEY)


def described(context: Context) -> str:
    field = "key" if is_key(context) else "value"
    return (
        f"the {field} of a record of topic {context.topic}" if context.topic else f"the {field} of a record"
    )


def failure(context: Context, verb: str, reason: object) -> SerializationError:
    return SerializationError(f"{described(context)} cannot be {verb}: {reason}")
