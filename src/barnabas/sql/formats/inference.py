"""Columns from schemas of a registry, and the schemas that a sink needs there.

A record gives a column for each field; a bare key is the column ROWKEY, a bare value ROWVAL. Does not know:
statements.
"""

from __future__ import annotations

from barnabas.connect.data import DataError
from barnabas.connect.data.schema import Type
from barnabas.schemas.client.errors import RegistryError
from barnabas.schemas.client.faces import run
from barnabas.sql.errors import SqlError
from barnabas.sql.formats.connect_forms import type_of
from barnabas.sql.formats.contract import facts_of
from barnabas.sql.formats.definitions import SCHEMA_ID
from barnabas.sql.formats.registered_rows import decoder_of, subject_of
from barnabas.sql.formats.registries import RegistryPlace, asked
from barnabas.sql.metastore.schemas import Column, Format
from barnabas.sql.syntax.statements import Role

BARE_KEY, BARE_VALUE = "ROWKEY", "ROWVAL"


def columns_of_subject(
    form: Format, topic: str, registry: RegistryPlace, *, is_key: bool, role: Role = Role.VALUE
) -> tuple[Column, ...]:
    """The columns of a topic's keys or values, from the latest version of its subject or from the schema that
    `schema_id` pins. SqlError says what is missing and what would help."""
    facts = facts_of(form.name)
    if not facts.has_registry:
        raise SqlError(f"The '{facts.name}' format has no schemas in a registry: name the columns")
    subject = subject_of(topic, is_key=is_key)
    client = registry.client()
    pinned = form.properties.get(SCHEMA_ID)
    part = "key" if is_key else "value"
    try:
        found = asked(
            lambda: (
                client.get_schema(int(pinned), subject)
                if pinned is not None
                else client.get_version(subject, "latest")
            )
        )
        references = asked(lambda: run(client.core.resolved(found.schema)))
    except RegistryError as error:
        wanted = f"schema id {pinned}" if pinned is not None else f"subject {subject}"
        raise SqlError(
            f"Schema for message {part}s on topic '{topic}' does not exist in the Schema Registry"
            f" ({wanted}): {error}\nRegister it, or name the columns in the statement."
        ) from error
    if found.schema.schema_type != facts.kind:
        raise SqlError(
            f"The schema of {subject} is of type {found.schema.schema_type}, the {part} format is"
            f" {facts.name}: use the format of the schema"
        )
    try:
        schema = decoder_of(form, found.schema, references, (0,)).schema
        if schema.type is not Type.STRUCT:
            return (Column(BARE_KEY if is_key else BARE_VALUE, type_of(schema), role),)
        return tuple(Column(one.name.upper(), type_of(one.schema), role) for one in schema.fields)
    except DataError as error:
        raise SqlError(f"The schema of {subject} has no columns: {error}") from error


def is_bare_schema(columns: tuple[Column, ...]) -> bool:
    """Whether columns came from a schema that is no record."""
    return len(columns) == 1 and columns[0].name in (BARE_KEY, BARE_VALUE)
