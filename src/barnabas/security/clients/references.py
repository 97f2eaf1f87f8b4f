"""Values by reference: `${env:NAME}`, `${file:PATH:KEY}`, `${file:PATH}` and `${directory:PATH:NAME}`.

In: the properties of a client or one text. Out: the same with values from the environment and from files of
this machine. Kafka wants providers declared in `config.providers`; here the names env, file and directory are
known without. `${file:PATH}` is the whole file. Errors name the reference, never a value.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from barnabas.security.errors import SecuritySettingsError
from barnabas.settings import SettingsError, providers
from barnabas.settings.properties import parse

REFERENCE = re.compile(r"\$\{(env|file|directory):([^}]+)\}")


class UnresolvedReference(SecuritySettingsError):
    """A reference that names nothing on this machine."""


def resolve_text(text: str) -> str:
    return REFERENCE.sub(value_of, text)


def resolve_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Properties with all references replaced: those of declared providers, and the three known names."""
    found = dict(properties)
    if "config.providers" in found:
        try:
            found = providers.resolve(found, os.environ, read_text)
        except SettingsError as error:
            raise UnresolvedReference(str(error)) from None
    return {name: resolve_text(value) for name, value in found.items()}


def has_reference(text: str) -> bool:
    return REFERENCE.search(text) is not None


def value_of(match: re.Match[str]) -> str:
    kind, rest = match[1], match[2].strip()
    if kind == "env":
        found = os.environ.get(rest)
        if found is None:
            raise UnresolvedReference(f"{match[0]}: the environment variable {rest} is not set")
        return found
    path, colon, key = rest.rpartition(":")
    try:
        if kind == "file" and not colon:
            return read_text(rest).rstrip("\n")
        if kind == "file":
            return value_in_file(match[0], path, key)
        if not colon or "/" in key or key in ("", ".", ".."):
            raise UnresolvedReference(f"{match[0]}: write it as ${{directory:PATH:NAME}}")
        return read_text(f"{path}/{key}")
    except (OSError, UnicodeDecodeError) as error:
        reason = (error.strerror or str(error)) if isinstance(error, OSError) else "it is no text file"
        raise UnresolvedReference(f"{match[0]} cannot be read: {reason}") from None


def value_in_file(reference: str, path: str, key: str) -> str:
    try:
        found = parse(read_text(path)).get(key)
    except ValueError:
        raise UnresolvedReference(f"{reference}: {path} is no properties file") from None
    if found is None:
        raise UnresolvedReference(f"{reference}: {path} has no key {key}")
    return found


def read_text(path: str) -> str:
    return Path(path).expanduser().read_text(encoding="utf-8")
