"""Config providers: values of settings from files, folders and the environment, at the time they are used.

In: the worker's `config.providers` settings, then configurations with `${provider:path:key}` or
`${provider:key}`. Out: configurations with values. Unknown providers and missing keys leave the text as it
is; a file that cannot be read is an error that names the reference and never a value.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from barnabas.connect.config.definition import ConfigDef
from barnabas.connect.config.errors import ConfigError
from barnabas.connect.config.secrets import Redaction
from barnabas.settings.errors import SettingsError
from barnabas.settings.properties import parse
from barnabas.settings.providers import KINDS, REFERENCE

FILE_BYTES_MAX = 16 * 1024 * 1024
Provider = Callable[[str, str], str | None]  # path, key


class Providers:
    """The declared providers of a worker."""

    def __init__(self, worker: Mapping[str, str], environ: Mapping[str, str] | None = None) -> None:
        self._environ = os.environ if environ is None else environ
        names = [name.strip() for name in worker.get("config.providers", "").split(",") if name.strip()]
        self._providers = {name: self._provider(name, worker) for name in names}

    def resolve(self, config: Mapping[str, str], found: dict[str, str] | None = None) -> dict[str, str]:
        """The configuration with values in place of references. `found` gets values with references."""
        if not self._providers:
            return dict(config)

        def lookup(match: re.Match[str]) -> str:
            value = self._lookup(match)
            if found is not None and value != match[0]:
                found[value] = match[0]
            return value

        return {name: re.sub(REFERENCE, lookup, value) for name, value in config.items()}

    def redaction(self, config: Mapping[str, str], definition: ConfigDef | None = None) -> Redaction:
        """The configuration with values, and what hides them in texts."""
        found: dict[str, str] = {}
        return Redaction(dict(config), self.resolve(config, found), found, definition)

    def _lookup(self, match: re.Match[str]) -> str:
        provider = self._providers.get(match[1])
        if provider is None:
            return match[0]
        try:
            found = provider(match[3] or "", match[4])
        except (OSError, SettingsError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ConfigError(f"Could not read {match[0]}: {reason}") from None
        return match[0] if found is None else found

    def _provider(self, name: str, worker: Mapping[str, str]) -> Provider:
        kind = KINDS.get(worker.get(f"config.providers.{name}.class", ""))
        parameters = f"config.providers.{name}.param."
        if kind is None:
            raise ConfigError(
                f"Invalid value {worker.get(f'config.providers.{name}.class')} for configuration "
                f"config.providers.{name}.class: known are {', '.join(KINDS)}"
            )
        if kind == "env":
            return self._environment(worker.get(f"{parameters}allowlist.pattern", ".*"))
        allowed = [
            Path(each.strip()).resolve()
            for each in worker.get(f"{parameters}allowed.paths", "").split(",")
            if each.strip()
        ]
        return in_files(allowed) if kind == "file" else in_folders(allowed)

    def _environment(self, pattern: str) -> Provider:
        def value(path: str, key: str) -> str | None:
            return self._environ.get(key) if re.fullmatch(pattern, key) else None

        return value


def in_files(allowed: list[Path]) -> Provider:
    def value(path: str, key: str) -> str | None:
        return parse(read(path, allowed)).get(key) if path else None

    return value


def in_folders(allowed: list[Path]) -> Provider:
    def value(path: str, key: str) -> str | None:
        if not path or "/" in key or key in ("", ".", ".."):
            return None
        file = Path(path) / key
        return read(str(file), allowed) if file.is_file() else None

    return value


def read(path: str, allowed: list[Path]) -> str:
    file = Path(path).resolve()
    if allowed and not any(file == each or each in file.parents for each in allowed):
        raise ConfigError(f"{path} is not in the allowed.paths of the provider")
    if file.stat().st_size > FILE_BYTES_MAX:
        raise ConfigError(f"{path} has more than {FILE_BYTES_MAX} bytes")
    return file.read_text(encoding="utf-8")
