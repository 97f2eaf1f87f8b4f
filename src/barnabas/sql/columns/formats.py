"""Forms over columns of SQL's serdes. Importing this module registers them.

Does not know: how a form reads.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from barnabas.plans.serdes import PlainSerde
from barnabas.sql.analysis.serdes import ROW_BYTES
from barnabas.sql.columns.json_form import JsonForm
from barnabas.sql.columns.plain_forms import CodecForm, DelimitedForm, KafkaForm, NoneForm
from barnabas.sql.columns.row_form import RowForm
from barnabas.sql.formats.codecs import DELIMITER
from barnabas.sql.formats.contract import DELIMITED, JSON, KAFKA, NONE, facts_of, has_decimal, is_bare
from barnabas.sql.formats.serdes import ColumnsSerde
from barnabas.streams.columns.formats import ColumnForm, register_format

FORMS_MAX = 1_000


@lru_cache(FORMS_MAX)
def form_of_columns(serde: ColumnsSerde, topic: str, is_key: bool) -> ColumnForm:
    form, columns, of_key = serde.row_format, serde.columns, serde.is_key
    read, write = serde.deserializer(topic, is_key), serde.serializer(topic, is_key)
    name = facts_of(form.name).name
    if of_key and (name == NONE or not columns):
        return NoneForm(read, write, is_key=of_key)
    if name == KAFKA and columns:
        return KafkaForm(columns, read, write, is_key=of_key)
    if name == DELIMITED and columns:
        delimiter = form.properties.get(DELIMITER, ",")
        return DelimitedForm(columns, read, write, is_key=of_key, delimiter=delimiter)
    if name == JSON and not any(has_decimal(each.kind) for each in columns):
        bare = is_bare(form, columns, is_key=of_key)
        return JsonForm(columns, read, write, is_bare=bare, is_key=of_key)
    return CodecForm(columns, read, write, is_key=of_key, name=name)


def form_of_plain(serde: Any, topic: str, is_key: bool) -> ColumnForm | None:
    return ROW_FORM if serde.format == ROW_BYTES.format else None


ROW_FORM = RowForm()
register_format(ColumnsSerde, form_of_columns)
register_format(PlainSerde, form_of_plain)
