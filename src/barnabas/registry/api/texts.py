"""Texts of stored schemas in the form that a client asks for by `format`.

In: a stored schema, the name of a form. Out: its text in that form; None stands for the text as it is stored.
Does not know: which forms there are; the schemas' types do.
"""

from __future__ import annotations

from barnabas.registry.api.registry import RegistryApi
from barnabas.registry.state import refusals
from barnabas.registry.state.model import Content
from barnabas.schemas.model import InvalidSchema


async def formatted(api: RegistryApi, content: Content, context: str, form: str) -> str | None:
    if not form:
        return None
    return await api.work(read, api, content, context, form)


def read(api: RegistryApi, content: Content, context: str, form: str) -> str:
    try:
        return api.reader.stored_content(content, context).formatted(form)
    except InvalidSchema as error:
        raise refusals.invalid_schema(f"the stored text has no format {form[:100]!r}: {error}") from None
