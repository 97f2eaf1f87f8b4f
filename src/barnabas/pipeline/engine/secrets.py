"""Secrets by reference: `${env:NAME}` and `${file:/path}` stand in the file, their values nowhere.

In: text with references. Out: a `Secret`, which shows itself as `***` and is resolved only by `reveal()`,
where a connection is made. Does not know: who uses them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

REFERENCE = re.compile(r"\$\{(env|file):([^}]+)\}")
ANY_REFERENCE = re.compile(r"\$\{([^}]*)\}")
HIDDEN = "***"
# Settings that hold something to keep secret, whatever they belong to.
SENSITIVE = re.compile(
    r"password|secret|token|credential|sasl\.jaas\.config|private|passphrase", re.IGNORECASE
)
# user:password@ in an address.
IN_ADDRESS = re.compile(r"(?<=://)([^/@:\s]+):([^/@\s]+)(?=@)")


class SecretError(Exception):
    """What a reference names is not there; the message does not hold the value of any other."""


@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """Text with references in it. Equal when the references are."""

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
    kind, name = match[1], match[2].strip()
    if kind == "env":
        value = os.environ.get(name)
        if value is None:
            raise SecretError(f"{match[0]}: the environment variable {name} is not set")
        return value
    try:
        return Path(name).expanduser().read_text().rstrip("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise SecretError(f"{match[0]}: {name} cannot be read: {error}") from None


def text(value: str) -> Text:
    """A `Secret` where there is a reference, else the text itself."""
    return Secret(value) if REFERENCE.search(value) else value


def reveal(value: Text) -> str:
    return value.reveal() if isinstance(value, Secret) else value


def revealed(settings: Mapping[str, Text]) -> dict[str, str]:
    return {name: reveal(value) for name, value in settings.items()}


def unresolved(value: Text) -> list[str]:
    """What is missing for `reveal`, in sentences."""
    problems = []
    for reference in value.references() if isinstance(value, Secret) else ():
        try:
            Secret(reference).reveal()
        except SecretError as error:
            problems.append(str(error))
    return problems


def reference(value: Text) -> str:
    """As it stands in the file: references, no values. For documents that are kept."""
    return value.template if isinstance(value, Secret) else value


def shown(name: str, value: Text) -> str:
    """For people: what may be secret is hidden."""
    if isinstance(value, Secret) or SENSITIVE.search(name):
        return HIDDEN
    return scrubbed(value)


def scrubbed(message: str) -> str:
    """Passwords inside of addresses are hidden."""
    message = IN_ADDRESS.sub(rf"\1:{HIDDEN}", message)
    return re.sub(r"(?i)(password=)[^&;\s]+", rf"\1{HIDDEN}", message)


def is_literal_secret(name: str, value: object) -> bool:
    """A secret that stands in the file itself."""
    return (
        isinstance(value, str)
        and bool(SENSITIVE.search(name))
        and not REFERENCE.search(value)
        and value != ""
    )
