"""Masks, hashes, encrypts or tokenises personal fields on their way into the trusted zone.

In: which columns, and how. Out: Spark columns. A hash is SHA-256 of a salt and the value: equal values have
equal hashes, and without the salt values cannot be found by trying. Salt and key live in Python functions,
never in an expression: Spark writes expressions into plans and event logs. Does not know: rules, tables.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from barnabas.engine.field_cipher import FieldCipher
from barnabas.engine.secrets import reveal
from barnabas.pipeline.spec.model import MASK_HINT, MASKS, Trusted

if TYPE_CHECKING:
    from pyspark.sql import Column


def masked(trusted: Trusted, name: str) -> Column:
    """The column as the trusted table has it."""
    column = F.col(f"`{name}`")
    protect = protection(trusted, name)
    if protect is not None:
        return protect(column.cast("string")).alias(name)
    way = trusted.mask.get(name)
    return column if way is None else mask(column, way).alias(name)


def protection(trusted: Trusted, name: str) -> Callable[[Column], Column] | None:
    """A function of Spark that hashes, encrypts or tokenises a column; None if the column stays readable."""
    if name in trusted.hash:
        return text_function("hashed", hashing(reveal(trusted.salt)))
    if name in trusted.encrypt:
        return text_function("encrypted", FieldCipher(reveal(trusted.key)).encrypt)
    if name in trusted.tokenise:
        return text_function("tokenised", FieldCipher(reveal(trusted.key)).tokenise)
    return None


def hashing(salt: str) -> Callable[[str], str]:
    start = salt.encode()

    def hashed(text: str) -> str:
        return hashlib.sha256(start + text.encode()).hexdigest()

    return hashed


def text_function(name: str, protect: Callable[[str], str]) -> Callable[[Column], Column]:
    """A function over columns of text. Plans show its name."""

    def protected(text: str | None) -> str | None:
        return None if text is None else protect(text)

    protected.__name__ = name
    found: Callable[[Column], Column] = F.udf(protected, "string", useArrow=True)
    return found


def mask(column: Column, way: str) -> Column:
    text = column.cast("string")
    if way == "null":
        return F.lit(None).cast("string")
    if way == "all":
        return F.regexp_replace(text, r"(?s).", "*")
    if way == "year":
        return F.date_format(F.trunc(column.cast("date"), "year"), "yyyy-MM-dd")
    if way == "email":
        return F.regexp_replace(text, r"(?<=.)[^@](?=[^@]*@)", "*")
    match = MASKS.fullmatch(way)
    if match is None or match[1] is None:
        raise ValueError(f"{way!r} is not a mask: write one of {MASK_HINT}")
    kept = int(match[2])
    stars = F.repeat(F.lit("*"), F.greatest(F.length(text) - F.lit(kept), F.lit(0)))
    # A value that is not longer than the visible part is hidden completely.
    hidden = F.repeat(F.lit("*"), F.length(text))
    shown = (
        F.concat(stars, F.substring(text, -kept, kept))
        if match[1] == "last"
        else F.concat(F.substring(text, 1, kept), stars)
    )
    return F.when(F.length(text) > kept, shown).otherwise(hidden)
