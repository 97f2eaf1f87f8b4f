"""Settings of serializers and deserializers, in Confluent's names.

In: a dict of properties. Out: checked settings. Does not know: what they are used for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from barnabas.schemas.serdes import subjects


class IdLocation(StrEnum):
    """The place at which a payload names its schema."""

    PREFIX = "prefix"  # id before the payload
    PREFIX_GUID = "prefix.guid"  # GUID before the payload
    HEADER = "header"  # GUID in a header of the record


@dataclass(frozen=True, slots=True)
class SerializerSettings:
    auto_register: bool = True
    normalize: bool = False
    use_schema_id: int | None = None
    use_latest_version: bool = False
    use_latest_with_metadata: Mapping[str, str] | None = None
    subject_of: subjects.SubjectNameStrategy = subjects.topic_name
    id_location: IdLocation = IdLocation.PREFIX
    reference_subject_of: subjects.ReferenceNameStrategy = subjects.reference_name
    validate: bool = True  # JSON Schema
    strict: bool = False  # Avro: fields that the schema lacks are refused
    strict_allow_default: bool = False  # Avro: and so are missing ones, unless they have a default

    @property
    def takes_latest(self) -> bool:
        chosen = (self.use_schema_id, self.use_latest_with_metadata)
        return self.use_latest_version or any(one is not None for one in chosen)

    @classmethod
    def of(cls, conf: Mapping[str, Any] | None) -> SerializerSettings:
        left = dict(conf or {})
        latest = _flag(left, "use.latest.version", False)
        metadata = left.pop("use.latest.with.metadata", None)
        schema_id = left.pop("use.schema.id", None)
        takes_latest = latest or metadata is not None or schema_id is not None
        settings = cls(
            _flag(left, "auto.register.schemas", not takes_latest),
            _flag(left, "normalize.schemas", False),
            schema_id,
            latest,
            metadata,
            subjects.strategy_of(_strategy(left)),
            _location(left.pop("schema.id.serializer", left.pop("schema.id.location", IdLocation.PREFIX))),
            left.pop("reference.subject.name.strategy", subjects.reference_name),
            _flag(left, "validate", True),
            _flag(left, "validate.strict", False),
            _flag(left, "validate.strict.allow.default", False),
        )
        left.pop("skip.known.types", None)  # files that every Protobuf library has are never registered
        _refuse_rest(left, "serializer")
        if latest and settings.auto_register:
            raise ValueError("use.latest.version and auto.register.schemas cannot both be true")
        return settings


@dataclass(frozen=True, slots=True)
class DeserializerSettings:
    use_latest_version: bool = False
    use_latest_with_metadata: Mapping[str, str] | None = None
    subject_of: subjects.SubjectNameStrategy = subjects.topic_name
    validate: bool = True
    use_deprecated_format: bool = False  # message indexes that old Python clients wrote

    @property
    def takes_latest(self) -> bool:
        return self.use_latest_version or self.use_latest_with_metadata is not None

    @classmethod
    def of(cls, conf: Mapping[str, Any] | None) -> DeserializerSettings:
        left = dict(conf or {})
        settings = cls(
            _flag(left, "use.latest.version", False),
            left.pop("use.latest.with.metadata", None),
            subjects.strategy_of(_strategy(left)),
            _flag(left, "validate", True),
            _flag(left, "use.deprecated.format", False),
        )
        _refuse_rest(left, "deserializer")
        return settings


def _strategy(left: dict[str, Any]) -> object:
    by_type = left.pop("subject.name.strategy.type", None)
    given = left.pop("subject.name.strategy", None)
    return given or by_type or "TOPIC"


def _location(given: object) -> IdLocation:
    # confluent-kafka names a function for this; its functions are understood by their names.
    word = str(getattr(given, "__name__", given))
    known = {"prefix_schema_id_serializer": "prefix", "header_schema_id_serializer": "header"}
    try:
        return IdLocation(known.get(word, word))
    except ValueError:
        raise ValueError(f"schema.id.location {word} is none of {', '.join(IdLocation)}") from None


def _flag(left: dict[str, Any], name: str, default: bool) -> bool:
    given = left.pop(name, default)
    if isinstance(given, bool):
        return given
    if str(given).lower() in {"true", "false"}:
        return str(given).lower() == "true"
    raise ValueError(f"{name} {given} is none of true, false")


def _refuse_rest(left: dict[str, Any], what: str) -> None:
    if left:
        raise ValueError(f"unknown properties of a {what}: {', '.join(sorted(left))}")
