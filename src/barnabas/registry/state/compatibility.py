"""Compatibility of a schema with the earlier versions of its subject.

In: a parsed schema, earlier versions, the configuration in force. Out: messages; none if it is compatible.
Does not know: how two schemas of a type are compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from barnabas.registry.state.config import Config, Level
from barnabas.registry.state.contracts import RESERVED_PROPERTY, Metadata
from barnabas.registry.state.model import Version
from barnabas.registry.state.parsed import SchemaReader
from barnabas.schemas.model import CompatibilityPolicy, InvalidSchema, ParsedSchema

MESSAGES_MAX = 100
OLD_SCHEMA_SHOWN_MAX = 100_000


def problems(
    schema: ParsedSchema,
    metadata: Metadata | None,
    earlier: Sequence[Version],
    config: Config,
    reader: SchemaReader,
) -> list[str]:
    """Messages for the newest version that the schema does not go with. `earlier` is sorted by number; only
    the last one counts where the level is not transitive."""
    level = config.level or Level.BACKWARD
    found = reserved_names(schema, metadata, earlier, config)
    if level is Level.NONE or found:
        return found
    versions = list(in_group(earlier, metadata, config.group))
    for version in reversed(versions if level.is_transitive else versions[-1:]):
        found = differences(schema, version, level, config, reader)
        if found:
            return [*found[:MESSAGES_MAX], *context_of(version, config, level)]
    return []


def in_group(earlier: Iterable[Version], metadata: Metadata | None, group: str | None) -> Iterable[Version]:
    """Versions whose metadata has the same value in the property that makes groups."""
    if not group:
        return earlier
    wanted = metadata.property(group) if metadata is not None else None
    return (each for each in earlier if property_of(each, group) == wanted)


def property_of(version: Version, name: str) -> str | None:
    metadata = version.content.metadata
    return metadata.property(name) if metadata is not None else None


def differences(
    schema: ParsedSchema, version: Version, level: Level, config: Config, reader: SchemaReader
) -> list[str]:
    if version.content.schema_type != schema.schema_type:
        types = f"{version.content.schema_type} became {schema.schema_type}"
        text = f"Incompatible because of different schema type: {types}"
        return [f"{{errorType:'SCHEMA_TYPE_CHANGED', description:'{text}'}}"]
    try:
        old = reader.stored(version)
    except InvalidSchema as error:
        return [f"{{errorType:'OLD_SCHEMA_INVALID', description:'{error}'}}"]
    policy = (
        CompatibilityPolicy.LENIENT
        if config.policy == CompatibilityPolicy.LENIENT
        else CompatibilityPolicy.STRICT
    )
    found: list[str] = []
    if level.reads_old:
        found += [each.printed() for each in schema.incompatibilities(old, policy)]
    if level.is_read_by_old:
        found += [each.printed(new_reads_old=False) for each in old.incompatibilities(schema, policy)]
    return found


def context_of(version: Version, config: Config, level: Level) -> list[str]:
    """The lines behind the messages: which version it was, and by which rules."""
    text = version.content.text
    shown = text if len(text) <= OLD_SCHEMA_SHOWN_MAX else f"{text[:OLD_SCHEMA_SHOWN_MAX]}..."
    validates = "true" if config.validate_fields else "false"
    return [
        f"{{oldSchemaVersion: {version.number}}}",
        f"{{oldSchema: '{shown}'}}",
        f"{{validateFields: '{validates}', compatibility: '{level}'}}",
    ]


def reserved_names(
    schema: ParsedSchema, metadata: Metadata | None, earlier: Sequence[Version], config: Config
) -> list[str]:
    """Fields whose names are reserved by the metadata of this schema or of the latest version."""
    if not config.validate_fields:
        return []
    listed = [metadata.property(RESERVED_PROPERTY) if metadata is not None else None]
    if earlier:
        listed.append(property_of(earlier[-1], RESERVED_PROPERTY))
    names = {name.strip() for text in listed if text for name in text.split(",")} - {""}
    return [
        f"{{errorType:'FIELD_RESERVED', description:'The field {name} is reserved by the property "
        f"{RESERVED_PROPERTY} of the metadata'}}"
        for name in sorted(names & schema.field_names())
    ]
