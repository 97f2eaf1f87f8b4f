"""Config providers: replace references `${provider:path:key}` by values from elsewhere.

In: properties, the environment, and a function that reads a file. Out: properties with references replaced.
Supports Kafka's env, file and directory providers. Other references are not changed, as in Kafka.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from barnabas.settings.errors import SettingsError
from barnabas.settings.properties import parse

REFERENCE = r"\$\{([^}]*?):(([^}]*?):)?([^}]*?)\}"
PACKAGE = "org.apache.kafka.common.config.provider."
KINDS = {
    PACKAGE + "EnvVarConfigProvider": "env",
    PACKAGE + "FileConfigProvider": "file",
    PACKAGE + "DirectoryConfigProvider": "directory",
}


def resolve(
    props: Mapping[str, str], environ: Mapping[str, str], read_text: Callable[[str], str]
) -> dict[str, str]:
    """Properties with the references of the declared providers replaced; `read_text` may raise OSError."""
    declared = [name.strip() for name in props.get("config.providers", "").split(",") if name.strip()]
    kinds = {name: kind_of(name, props.get(f"config.providers.{name}.class", "")) for name in declared}

    def lookup(match: re.Match[str]) -> str:
        provider, path, key = match[1], match[3] or "", match[4]
        if provider not in kinds:
            return match[0]
        try:
            found = value_of(kinds[provider], path, key, environ, read_text)
        except OSError as error:
            raise SettingsError(f"Could not read {match[0]}: {error.strerror or error}") from error
        return match[0] if found is None else found

    return {
        name: value if name.startswith("config.providers") else re.sub(REFERENCE, lookup, value)
        for name, value in props.items()
    }


def kind_of(provider: str, class_name: str) -> str:
    if class_name not in KINDS:
        raise SettingsError(
            f"Invalid value {class_name} for configuration config.providers.{provider}.class: "
            f"Class {class_name} could not be found.",
            name=f"config.providers.{provider}.class",
            allowed=", ".join(KINDS),
        )
    return KINDS[class_name]


def value_of(
    kind: str, path: str, key: str, environ: Mapping[str, str], read_text: Callable[[str], str]
) -> str | None:
    if kind == "env":
        return environ.get(key)
    if kind == "file":
        return parse(read_text(path)).get(key)
    if "/" in key or key in ("", ".", ".."):
        raise SettingsError(f"Could not read {key} of {path}: a key names a file of the folder.")
    return read_text(f"{path.rstrip('/')}/{key}")
