"""Kinds of values in a pipeline's file, for pydantic: words, durations, rates, numbers, secrets.

In: values of a `Document`. Out: Python values; what cannot be read is a problem with a hint. Each kind also
says what it looks like in the JSON Schema that editors load. Does not know: the names of the file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BeforeValidator,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ValidationInfo,
    WithJsonSchema,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from barnabas.engine.secrets import is_literal_secret
from barnabas.pipeline.file.document import Written, kind_of, plain_tree
from barnabas.pipeline.file.problems import did_you_mean
from barnabas.pipeline.spec import durations

KEEP_SECRETS_OUT = "write ${env:NAME}, ${file:/path} or ${file:/path:key}: the file must not hold secrets"
PROBLEM = "problem"  # the type of pydantic's errors that hold our own message and hint
NUMBER_MAX = 2**62
SINGLE = {"type": ["string", "number", "boolean"]}


def problem(message: str, hint: str = "") -> PydanticCustomError:
    return PydanticCustomError(PROBLEM, "{message}", {"message": message, "hint": hint})


def word(value: Any) -> str:
    if isinstance(value, dict | list):
        raise problem(f"must be a single value, this is {kind_of(value)}")
    return str(value)


def read_by(reader: Callable[[str], Any]) -> Callable[[Any], Any]:
    """A text, converted by `reader`; its ValueError becomes a problem."""

    def read(value: Any) -> Any:
        try:
            return reader(word(value))
        except ValueError as error:
            if isinstance(error, PydanticCustomError):
                raise
            raise problem(str(error)) from None

    return read


def flag(value: Any) -> bool:
    found = plain_tree(value)
    if not isinstance(found, bool):
        raise problem("must be true or false")
    return found


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number in a range."""

    least: int = 0
    most: int = NUMBER_MAX

    def read(self, value: Any) -> int:
        found = plain_tree(value)
        if not isinstance(found, int) or isinstance(found, bool):
            shown = kind_of(value) if isinstance(value, dict | list) else repr(str(value))
            raise problem(f"must be a whole number, this is {shown}")
        if not self.least <= found <= self.most:
            raise problem(f"is {found}, it must be from {self.least} to {self.most}")
        return found

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.read)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        limits = {"maximum": self.most} if self.most < NUMBER_MAX else {}
        return {"type": "integer", "minimum": self.least, **limits}


def choice(kind: type[StrEnum]) -> Any:
    """One of the words of an enumeration."""

    def read(value: Any) -> StrEnum:
        found = word(value)
        if found not in set(kind):
            raise problem(f"is {found!r}", did_you_mean(found, kind))
        return kind(found)

    return BeforeValidator(read)


def words(value: Any) -> tuple[str, ...]:
    """A list of words, or one word."""
    if isinstance(value, tuple):
        return value
    if isinstance(value, list) and not any(isinstance(each, dict | list) for each in value):
        return tuple(str(each) for each in value)
    if isinstance(value, dict | list):
        raise problem("must be a list of names")
    return (str(value),)


def setting(value: Any) -> str:
    """A single value as text; a boolean as true or false."""
    found = value.plain if isinstance(value, Written) else value
    if found is None:
        return ""
    return str(found).lower() if isinstance(found, bool) else word(value)


def no_literal_secret(value: str, info: ValidationInfo) -> str:
    if is_literal_secret(info.field_name or "", value):
        raise problem("holds a secret", KEEP_SECRETS_OUT)
    return value


def always_a_secret(value: str) -> str:
    if is_literal_secret("secret", value):
        raise problem("holds a secret", KEEP_SECRETS_OUT)
    return value


def no_literal_secrets(value: dict[str, str]) -> dict[str, str]:
    for name, each in value.items():
        if is_literal_secret(name, each):
            raise problem(f"{name} holds a secret", KEEP_SECRETS_OUT)
    return value


def no_passwords(value: dict[str, str]) -> dict[str, str]:
    for name, each in value.items():
        if is_literal_secret("password", each):
            raise problem(f"{name} has a password", KEEP_SECRETS_OUT)
    return value


def no_tokens(value: tuple[str, ...]) -> tuple[str, ...]:
    if any(is_literal_secret("token", each) for each in value):
        raise problem("hold a secret", KEEP_SECRETS_OUT)
    return value


def text_like(example: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "examples": [example]})


Word = Annotated[str, BeforeValidator(word)]
Flag = Annotated[bool, BeforeValidator(flag)]
Words = Annotated[
    tuple[str, ...],
    BeforeValidator(words),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]
Seconds = Annotated[float, BeforeValidator(read_by(durations.seconds)), text_like("10 minutes")]
Rate = Annotated[float, BeforeValidator(read_by(durations.bytes_per_second)), text_like("10 MB/s")]
Size = Annotated[int, BeforeValidator(read_by(durations.size_bytes)), text_like("128 MiB")]
Setting = Annotated[str, BeforeValidator(setting), WithJsonSchema(SINGLE)]
Settings = dict[str, Setting]
# A text that may refer to secrets, and is not one itself: of a name such as `password`, or of any name.
Hidden = Annotated[Word, AfterValidator(no_literal_secret)]
Secretive = Annotated[Word, AfterValidator(always_a_secret)]
SecretSettings = Annotated[Settings, AfterValidator(no_literal_secrets)]
Passwords = Annotated[Settings, AfterValidator(no_passwords)]
Tokens = Annotated[Words, AfterValidator(no_tokens)]


class OrWords:
    """In the JSON Schema: what it annotates, or a list of texts."""

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"anyOf": [{"type": "array", "items": {"type": "string"}}, handler(schema)]}


class OrFlag:
    """In the JSON Schema: what it annotates, or true or false."""

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"anyOf": [{"type": "boolean"}, handler(schema)]}


class OrText:
    """In the JSON Schema: what it annotates, or one of these texts; any text without them."""

    def __init__(self, *words: str) -> None:
        self._schema: dict[str, Any] = {"type": "string", **({"enum": list(words)} if words else {})}

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"anyOf": [self._schema, handler(schema)]}
