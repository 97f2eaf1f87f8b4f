"""Reads a document into its shape, and says everything that is wrong with it.

In: a `Document`. Out: a shape, and problems in the document. A value that cannot be read is reported, taken
out, and the rest is read again, so that one problem does not hide the others. Does not know: what names
refer to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from barnabas.pipeline.file.document import Document, Tree, Written, kind_of
from barnabas.pipeline.file.problems import did_you_mean
from barnabas.pipeline.file.shape import PipelineShape
from barnabas.pipeline.file.shape_types import PROBLEM

ROUNDS_MAX = 100  # each takes out at least one value
# Stands for a rule that cannot be read, so that those behind it keep their numbers.
READABLE = "true"
NEEDS_NAMES = ("dict_type", "model_type", "model_attributes_type")

Place = Sequence[int | str]


def read_shape(document: Document) -> PipelineShape | None:
    """The shape of a document; None if it has none."""
    tree = document.tree
    for _ in range(ROUNDS_MAX):
        try:
            return None if tree is None else PipelineShape.model_validate(tree)
        except ValidationError as error:
            found = error.errors(include_url=False)
        reported = {each.path for each in document.problems}
        for each in found:
            path, (message, hint) = path_of(each["loc"]), said(each)
            if each["type"] != "missing" or path not in reported:  # it may have been taken out
                document.wrong(path, message, hint)
        for place in sorted({each["loc"] for each in found}, key=len):
            tree = mended(tree, place, {each["type"] for each in found if each["loc"] == place})
    return None


def path_of(place: Place) -> str:
    found = ""
    for part in place:
        found += f"[{part}]" if isinstance(part, int) else f".{part}" if found else part
    return found


def said(error: ErrorDetails) -> tuple[str, str]:
    """Message and hint of an error of pydantic."""
    place, kind, value = error["loc"], error["type"], error["input"]
    if kind == PROBLEM:
        return str(error["ctx"]["message"]), str(error["ctx"]["hint"])
    if kind == "extra_forbidden":
        return "is unknown here", did_you_mean(str(place[-1]), names_at(place[:-1]))
    if kind == "missing" or value is None:
        return "is missing", description_of(place)
    if kind in NEEDS_NAMES:
        return f"must hold names with values, this is {kind_of(value)}", ""
    if kind == "list_type":
        return f"must be a list, this is {kind_of(value)}", ""
    return error["msg"], ""


def shape_at(place: Place) -> type[BaseModel] | None:
    """The section at a place."""
    found: Any = PipelineShape
    for part in place:
        if isinstance(found, type) and issubclass(found, BaseModel):
            fields = [each for name, each in found.model_fields.items() if (each.alias or name) == part]
            found = fields[0].annotation if fields else None
        else:  # the name of an entry
            found = next((each for each in get_args(found) if each is not str), None)
        found = without_none(found)
    return found if isinstance(found, type) and issubclass(found, BaseModel) else None


def without_none(kind: Any) -> Any:
    """The section inside of `Section | None` and of annotations."""
    while not isinstance(kind, type):
        inner = [each for each in get_args(kind) if each is not type(None)]
        if not inner or getattr(kind, "__origin__", None) in (dict, list):
            return kind
        kind = inner[0]
    return kind


def names_at(place: Place) -> list[str]:
    found = shape_at(place)
    return [] if found is None else [each.alias or name for name, each in found.model_fields.items()]


def description_of(place: Place) -> str:
    found = shape_at(place[:-1])
    fields = {} if found is None else {each.alias or name: each for name, each in found.model_fields.items()}
    field = fields.get(str(place[-1]))
    return (field.description or "") if field is not None else ""


def mended(tree: Tree, place: Place, kinds: set[str]) -> Tree:
    """The tree without the value at a place, or with an empty text where one is missing."""
    if not place:
        return None
    part, rest = place[0], place[1:]
    if isinstance(tree, dict):
        found = dict(tree)
        if rest and part in found:
            found[str(part)] = mended(found[str(part)], rest, kinds)
        elif not rest and "missing" in kinds:
            found[str(part)] = Written("", "")
        else:
            found.pop(str(part), None)
        return found
    if isinstance(tree, list) and isinstance(part, int) and part < len(tree):
        unreadable = {"expression": Written(READABLE, READABLE), "name": f"unreadable {part}"}
        inner = mended(tree[part], rest, kinds) if rest else unreadable
        return [*tree[:part], inner, *tree[part + 1 :]]
    return None
