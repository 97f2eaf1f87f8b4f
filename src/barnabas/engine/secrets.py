"""Secrets by reference: the file holds `${env:NAME}`, `${file:/path}`, `${file:/path:key}` or
`${directory:/path:name}`, never a value.

In: text with references. Out: a `Secret`, whose repr is `***`. Only `reveal()` resolves it, where a
connection is made. Does not know: what secrets are for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from barnabas.security.clients.references import REFERENCE, UnresolvedReference, value_of

ANY_REFERENCE = re.compile(r"\$\{([^}]*)\}")
HIDDEN = "***"
# Names of settings that hold secrets.
SENSITIVE = re.compile(
    r"password|secret|token|credential|sasl\.jaas\.config|private|passphrase|user\.info", re.IGNORECASE
)
# user:password@ in an address.
IN_ADDRESS = re.compile(r"(?<=://)([^/@:\s]+):([^/@\s]+)(?=@)")


class SecretError(Exception):
    """A reference cannot be resolved; the message contains no value of a secret."""


@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """Text with references. Two are equal if their references are."""

    template: str

    def reveal(self) -> str:
        return REFERENCE.sub(resolve, self.template)

    def references(self) -> list[str]:
        return [match[0] for match in REFERENCE.finditer(self.template)]

    def __repr__(self) -> str:
        return HIDDEN

    __str__ = __repr__


Text = str | Secret


def resolve(match: re.Match[str]) -> str:
    try:
        return value_of(match)
    except UnresolvedReference as error:
        raise SecretError(str(error)) from None


def text(value: str) -> Text:
    """A `Secret` if the text has a reference, else the text itself."""
    return Secret(value) if REFERENCE.search(value) else value


def reveal(value: Text) -> str:
    return value.reveal() if isinstance(value, Secret) else value


def revealed(settings: Mapping[str, Text]) -> dict[str, str]:
    return {name: reveal(value) for name, value in settings.items()}


def unresolved(value: Text) -> list[str]:
    """Why `reveal` would fail, one sentence for each reference."""
    problems = []
    for reference in value.references() if isinstance(value, Secret) else ():
        try:
            Secret(reference).reveal()
        except SecretError as error:
            problems.append(str(error))
    return problems


def reference(value: Text) -> str:
    """The text as in the file: references, no values. For documents that are kept."""
    return value.template if isinstance(value, Secret) else value


def references(settings: Mapping[str, Text]) -> dict[str, str]:
    return {name: reference(value) for name, value in settings.items()}


def shown(name: str, value: Text) -> str:
    """The value for people; secrets are hidden."""
    if isinstance(value, Secret) or SENSITIVE.search(name):
        return HIDDEN
    return scrubbed(value)


def scrubbed(message: str) -> str:
    """The message with passwords in addresses hidden."""
    message = IN_ADDRESS.sub(rf"\1:{HIDDEN}", message)
    return re.sub(r"(?i)(password=)[^&;\s]+", rf"\1{HIDDEN}", message)


def is_literal_secret(name: str, value: object) -> bool:
    """Whether the file holds the value of a secret."""
    return (
        isinstance(value, str)
        and bool(SENSITIVE.search(name))
        and not REFERENCE.search(value)
        and value != ""
    )
