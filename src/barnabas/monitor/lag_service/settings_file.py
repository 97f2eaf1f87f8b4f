"""The settings file of the lag service: properties, YAML, or Burrow's TOML.

In: a file; its suffix says what it is. Out: properties with one name for each setting. In YAML, names may be
written as a tree; `clusters:` holds clusters by their names. Does not know: which settings there are.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from barnabas.monitor.lag_service.burrow_file import burrow_properties
from barnabas.services.settings.loading import from_file
from barnabas.settings.errors import SettingsError

YAML = (".yaml", ".yml")
TOML = (".toml", ".tml")
FILE_BYTES_MAX = 4 * 1024 * 1024


def read_settings(path: Path) -> tuple[dict[str, str], list[str]]:
    """The properties of a file, and what the reader should know about it. SettingsError says what is
    wrong."""
    if path.suffix in YAML:
        return yaml_properties(path, text_of(path)), []
    if path.suffix in TOML:
        try:
            return burrow_properties(tomllib.loads(text_of(path)))
        except tomllib.TOMLDecodeError as error:
            raise SettingsError(f"{path} is no TOML: {error}") from None
    return from_file(path), []


def text_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
        if len(data) > FILE_BYTES_MAX:
            raise SettingsError(f"{path} is larger than {FILE_BYTES_MAX} bytes: it is no settings file")
        return data.decode()
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{path} is no text file") from None


def yaml_properties(path: Path, text: str) -> dict[str, str]:
    try:
        import yaml
    except ModuleNotFoundError:
        raise SettingsError(f"{path}: YAML needs pyyaml: pip install 'barnabas[lag]'") from None
    try:
        tree = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise SettingsError(f"{path} is no YAML: {' '.join(str(error).split())}") from None
    if not isinstance(tree, Mapping):
        raise SettingsError(f"{path}: expected names with values")
    if "clusters" in tree:
        tree = {
            **{name: value for name, value in tree.items() if name != "clusters"},
            "cluster": tree["clusters"],
        }
    named = tree.get("cluster", {})
    if not isinstance(named, Mapping) or not all(isinstance(each, Mapping) for each in named.values()):
        raise SettingsError(f"{path}: clusters: write each as NAME: {{bootstrap.servers: ADDRESS}}")
    try:
        return dict(flattened("", tree))
    except RecursionError:
        raise SettingsError(f"{path}: an entry refers to itself (&name and *name)") from None


def flattened(prefix: str, tree: Mapping[Any, Any]) -> Iterator[tuple[str, str]]:
    for name, value in tree.items():
        full = f"{prefix}.{name}" if prefix else str(name)
        if isinstance(value, Mapping):
            yield from flattened(full, value)
        elif isinstance(value, list | tuple):
            yield full, ",".join(map(text_value, value))
        elif value is not None:
            yield full, text_value(value)


def text_value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
