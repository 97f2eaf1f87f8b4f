"""Differences between two schemas: their kinds, which of them a reader can live with, and their messages.

In: a kind and a path. Out: whether it is compatible under a policy; the message that registries print.
Does not know: how differences are found.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from barnabas.schemas.model import READER, WRITER, CompatibilityPolicy, Incompatibility


class Difference(NamedTuple):
    kind: str
    path: tuple[str, ...] = ()  # from the pair of schemas that is compared


def under(segments: tuple[str, ...], found: Iterable[Difference]) -> list[Difference]:
    """Differences of an inner pair, as the outer one tells them."""
    return [Difference(kind, segments + path) for kind, path in found]


def _kinds(text: str) -> frozenset[str]:
    return frozenset(text.split())


STRICTLY_COMPATIBLE = _kinds("""
    ID_CHANGED DESCRIPTION_CHANGED TITLE_CHANGED DEFAULT_CHANGED SCHEMA_REMOVED TYPE_EXTENDED
    MAX_LENGTH_INCREASED MAX_LENGTH_REMOVED MIN_LENGTH_DECREASED MIN_LENGTH_REMOVED PATTERN_REMOVED
    MAXIMUM_INCREASED MAXIMUM_REMOVED MINIMUM_DECREASED MINIMUM_REMOVED
    EXCLUSIVE_MAXIMUM_INCREASED EXCLUSIVE_MAXIMUM_REMOVED
    EXCLUSIVE_MINIMUM_DECREASED EXCLUSIVE_MINIMUM_REMOVED
    MULTIPLE_OF_REDUCED MULTIPLE_OF_REMOVED
    REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED REQUIRED_ATTRIBUTE_REMOVED
    DEPENDENCY_ARRAY_NARROWED DEPENDENCY_ARRAY_REMOVED DEPENDENCY_SCHEMA_REMOVED
    MAX_PROPERTIES_INCREASED MAX_PROPERTIES_REMOVED MIN_PROPERTIES_DECREASED MIN_PROPERTIES_REMOVED
    ADDITIONAL_PROPERTIES_ADDED ADDITIONAL_PROPERTIES_EXTENDED
    UNEVALUATED_PROPERTIES_ADDED UNEVALUATED_PROPERTIES_EXTENDED
    PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL
    REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_UNOPEN_CONTENT_MODEL
    OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL
    PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL
    PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL
    PROPERTY_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL
    MAX_ITEMS_INCREASED MAX_ITEMS_REMOVED MIN_ITEMS_DECREASED MIN_ITEMS_REMOVED UNIQUE_ITEMS_REMOVED
    MAX_CONTAINS_INCREASED MAX_CONTAINS_REMOVED MIN_CONTAINS_DECREASED MIN_CONTAINS_REMOVED
    ADDITIONAL_ITEMS_ADDED ADDITIONAL_ITEMS_EXTENDED UNEVALUATED_ITEMS_ADDED UNEVALUATED_ITEMS_EXTENDED
    ITEM_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL ITEM_ADDED_TO_CLOSED_CONTENT_MODEL
    ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL
    ITEM_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL
    ITEM_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL
    ENUM_ARRAY_EXTENDED
    COMBINED_TYPE_EXTENDED PRODUCT_TYPE_NARROWED SUM_TYPE_EXTENDED NOT_TYPE_NARROWED
""")
# A lenient policy trusts writers to send no properties that they did not declare, whatever the model says.
ONLY_LENIENTLY_COMPATIBLE = _kinds("""
    ADDITIONAL_PROPERTIES_NARROWED ADDITIONAL_PROPERTIES_REMOVED
    UNEVALUATED_PROPERTIES_NARROWED UNEVALUATED_PROPERTIES_REMOVED
    OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL
    PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL
    PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL
    PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL
""")
COMPATIBLE = {
    CompatibilityPolicy.STRICT: STRICTLY_COMPATIBLE,
    CompatibilityPolicy.LENIENT: STRICTLY_COMPATIBLE | ONLY_LENIENTLY_COMPATIBLE,
}

ADDED = f"The {READER} schema has a keyword at path '{{path}}' that the {WRITER} schema lacks"
GREATER = f"The value at path '{{path}}' is greater in the {READER} schema than in the {WRITER} schema"
LESS = f"The value at path '{{path}}' is less in the {READER} schema than in the {WRITER} schema"
CHANGED = f"The value at path '{{path}}' in the {READER} schema is not the one in the {WRITER} schema"
FEWER = f"The {READER} schema allows less at path '{{path}}' than the {WRITER} schema"
MORE = f"The {READER} schema demands more at path '{{path}}' than the {WRITER} schema"
OTHER_TYPE = f"The {READER} schema has another type at path '{{path}}' than the {WRITER} schema"
TO_OPEN = (
    f"The {READER} schema has an open content model and has a property or item at path '{{path}}' which is "
    f"missing in the {WRITER} schema"
)
TO_UNOPEN = (
    f"The {READER} schema requires a property at path '{{path}}' which is missing in the {WRITER} schema and "
    f"has no default"
)
FROM_CLOSED = (
    f"The {READER} schema has a closed content model and lacks the property or item at path '{{path}}' "
    f"of the {WRITER} schema"
)
REMOVED_UNCOVERED = (
    f"The {READER} schema lacks the property or item at path '{{path}}' of the {WRITER} schema, and its "
    f"partially open content model does not cover it"
)
ADDED_UNCOVERED = (
    f"The {READER} schema has a property or item at path '{{path}}' which is missing in the {WRITER} schema, "
    f"whose partially open content model does not cover it"
)

EXACT = {
    "PATTERN_CHANGED": CHANGED,
    "MULTIPLE_OF_CHANGED": CHANGED,
    "MULTIPLE_OF_EXPANDED": GREATER,
    "DEPENDENCY_ARRAY_CHANGED": CHANGED,
    "TYPE_NARROWED": OTHER_TYPE,
    "ADDITIONAL_ITEMS_REMOVED": FEWER,
    "ADDITIONAL_PROPERTIES_REMOVED": FEWER,
    "UNEVALUATED_ITEMS_REMOVED": FEWER,
    "UNEVALUATED_PROPERTIES_REMOVED": FEWER,
    "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL": TO_UNOPEN,
}
BY_END = {
    "_ADDED_TO_OPEN_CONTENT_MODEL": TO_OPEN,
    "_REMOVED_FROM_CLOSED_CONTENT_MODEL": FROM_CLOSED,
    "_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": REMOVED_UNCOVERED,
    "_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": ADDED_UNCOVERED,
    "_ADDED": ADDED,
    "_INCREASED": GREATER,
    "_DECREASED": LESS,
    "_NARROWED": FEWER,
    "_EXTENDED": MORE,
    "_CHANGED": OTHER_TYPE,
}


def incompatibility(difference: Difference) -> Incompatibility:
    kind, segments = difference
    path = "#/" + "/".join(segments)
    description = _description(kind).replace("{path}", path)
    return Incompatibility(kind, path, f'{{errorType:"{kind}", description:"{description}"}}')


def _description(kind: str) -> str:
    if kind in EXACT:
        return EXACT[kind]
    return next(text for end, text in BY_END.items() if kind.endswith(end))
