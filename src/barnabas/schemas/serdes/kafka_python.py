"""Serializers as kafka-python's version 3 wants them: instances of its own classes.

In: a serializer or deserializer. Out: one that kafka-python takes without a warning. Does not know: schemas.
kafka-python is imported when this is used.
"""

from __future__ import annotations

from typing import Any


def as_kafka_python_serializer(serializer: Any) -> Any:
    from kafka.serializer import Serializer  # type: ignore[import-untyped]

    class Wrapped(Serializer):  # type: ignore[misc, unused-ignore]
        def serialize(self, topic: str, headers: Any, data: Any) -> bytes | None:
            found: bytes | None = serializer.serialize(topic, headers, data)
            return found

    return Wrapped()


def as_kafka_python_deserializer(deserializer: Any) -> Any:
    from kafka.serializer import Deserializer

    class Wrapped(Deserializer):  # type: ignore[misc, unused-ignore]
        def deserialize(self, topic: str, headers: Any, data: Any) -> Any:
            return deserializer.deserialize(topic, headers, data)

    return Wrapped()
