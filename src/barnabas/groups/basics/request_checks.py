"""Checks of fields that heartbeats of several kinds of groups have, with Apache Kafka's messages."""

from __future__ import annotations

from typing import NoReturn

from barnabas.protocol import ErrorCode, KafkaError


def not_empty(value: str | None, field: str) -> None:
    if value is not None and not value.strip():
        refuse(f"{field} can't be empty.")


def refuse(message: str) -> NoReturn:
    raise KafkaError(ErrorCode.INVALID_REQUEST, message)
