"""The codec of a topic's keys or values: from a format and columns to bytes and rows.

Does not know: tasks, statements.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.sql.formats.contract import (
    DELIMITED,
    JSON,
    KAFKA,
    NONE,
    PROTOBUF_NOSR,
    RowCodec,
    facts_of,
    is_bare,
)
from barnabas.sql.formats.json_rows import JsonRows
from barnabas.sql.formats.plain_rows import DelimitedRows, KafkaRows, NoneRows
from barnabas.sql.formats.registries import RegistryPlace
from barnabas.sql.metastore.schemas import Column, Format

DELIMITER = "delimiter"
NO_REGISTRY = RegistryPlace()


def row_codec(
    form: Format,
    columns: Sequence[Column],
    *,
    is_key: bool,
    topic: str = "",
    registry: RegistryPlace = NO_REGISTRY,
) -> RowCodec:
    """`topic` names the subject of formats with a registry. Columns must have passed `check_columns`."""
    name = facts_of(form.name).name
    if name == NONE or not columns:
        return NoneRows() if is_key else JsonRows((), is_bare=False)
    if name == KAFKA:
        return KafkaRows(columns[0])
    if name == DELIMITED:
        return DelimitedRows(columns, form.properties.get(DELIMITER, ","))
    if name == JSON:
        return JsonRows(columns, is_bare=is_bare(form, columns, is_key=is_key))
    if name == PROTOBUF_NOSR:
        from barnabas.sql.formats.registered_rows import UnregisteredRows

        return UnregisteredRows(form, columns, is_key=is_key)
    from barnabas.sql.formats.registered_rows import RegisteredRows

    return RegisteredRows(form, columns, is_key=is_key, topic=topic, registry=registry)
