"""Providers of master keys: they wrap the data keys of log dirs.

In: a node's settings. Out: a `KeyProvider`, by name: `file` and `env` are built in, others are entry points
of the group `barnabas.key_providers` or `package.module:Name`. Such a name stands for a callable that takes
the settings `barnabas.encryption.*` as a mapping and returns a `KeyProvider`. Several versions of a master
key may exist: the current one wraps, the others still unwrap.
Does not know: which data keys exist, files of log dirs.
"""

import base64
import binascii
import logging
import os
import stat
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from barnabas.storage.files.errors import StorageError

PREFIX = "barnabas.encryption."
PROVIDER = PREFIX + "key.provider"
KEY_FILE = PREFIX + "key.file"
KEY_VARIABLE = PREFIX + "key.variable"
ENTRY_POINTS = "barnabas.key_providers"
MASTER_KEY_BYTES = 32
NONCE_BYTES = 12

logger = logging.getLogger(__name__)


class KeyUnavailable(Exception):
    """A provider does not have a master key, or it is not the one that wrapped this data key. The message
    names the key's id and where it was looked for."""


class KeyProvider(Protocol):
    @property
    def current_id(self) -> str:
        """The id of the master key that wraps now."""

    def wrap(self, data_key: bytes, label: bytes) -> bytes:
        """Wrap a data key with the current master key. `label` has to be given again to unwrap it."""

    def unwrap(self, key_id: str, wrapped: bytes, label: bytes) -> bytes:
        """Unwrap a data key; `KeyUnavailable` if that is not possible."""


class MasterKeys:
    """Master keys in this process, by id; the last one is current."""

    def __init__(self, keys: Mapping[str, bytes], source: str) -> None:
        self._keys = dict(keys)
        self._source = source

    def __repr__(self) -> str:
        return f"MasterKeys({', '.join(self._keys)} from {self._source})"

    @classmethod
    def parse(cls, text: str, source: str) -> "MasterKeys":
        """Parse `id=key` lines, or the same separated by commas; a key is 32 bytes in base64."""
        keys: dict[str, bytes] = {}
        for line in text.replace(",", "\n").splitlines():
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            key_id, equals, encoded = (part.strip() for part in line.partition("="))
            try:
                key = base64.b64decode(encoded, validate=True)
            except binascii.Error:
                key = b""
            if not key_id or not equals or len(key) != MASTER_KEY_BYTES:
                where = f"the key {key_id!r}" if equals and key_id else f"entry {len(keys) + 1}"
                raise StorageError(
                    f"{source}: {where} is not 'id=key' with a key of {MASTER_KEY_BYTES} bytes in base64, "
                    "as `openssl rand -base64 32` makes it"
                )
            if key_id in keys:
                raise StorageError(f"{source}: the id {key_id!r} is there twice")
            keys[key_id] = key
        if not keys:
            raise StorageError(f"{source} holds no master key: add a line 'id=key', with 32 bytes in base64")
        return cls(keys, source)

    @property
    def current_id(self) -> str:
        return next(reversed(self._keys))

    def wrap(self, data_key: bytes, label: bytes) -> bytes:
        nonce = os.urandom(NONCE_BYTES)
        return nonce + AESGCM(self._keys[self.current_id]).encrypt(nonce, data_key, label)

    def unwrap(self, key_id: str, wrapped: bytes, label: bytes) -> bytes:
        key = self._keys.get(key_id)
        if key is None:
            raise KeyUnavailable(f"master key {key_id!r} is not in {self._source}")
        try:
            return AESGCM(key).decrypt(wrapped[:NONCE_BYTES], wrapped[NONCE_BYTES:], label)
        except (InvalidTag, ValueError):
            raise KeyUnavailable(f"master key {key_id!r} in {self._source} is another key") from None


def from_file(settings: Mapping[str, str]) -> KeyProvider:
    """The provider `file`: one `id=key` per line."""
    path = settings.get(KEY_FILE)
    if not path:
        raise StorageError(f"the key provider 'file' needs {KEY_FILE}: the path of the file with master keys")
    try:
        if Path(path).stat().st_mode & (stat.S_IRGRP | stat.S_IROTH):
            logger.warning("%s holds master keys, and other users may read it: chmod 600 %s", path, path)
        return MasterKeys.parse(Path(path).read_text("utf-8"), path)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise StorageError(f"cannot read the master keys of {KEY_FILE}={path}: {reason}") from error


def from_environment(settings: Mapping[str, str]) -> KeyProvider:
    """The provider `env`: `id=key`, several separated by commas."""
    name = settings[KEY_VARIABLE]
    text = os.environ.get(name)
    if text is None:
        raise StorageError(
            f"the key provider 'env' needs the environment variable {name}, see {KEY_VARIABLE}: "
            "'id=key' with 32 bytes in base64, several separated by commas"
        )
    return MasterKeys.parse(text, f"the environment variable {name}")


BUILT_IN: dict[str, Callable[[Mapping[str, str]], KeyProvider]] = {"file": from_file, "env": from_environment}


def provider_of(settings: Mapping[str, str]) -> KeyProvider:
    """Make the provider that the settings name. `StorageError` if there is none, or it cannot be made."""
    name = settings[PROVIDER]
    make = BUILT_IN.get(name) or _loaded(name)
    try:
        provider: KeyProvider = make(settings)
    except StorageError:
        raise
    except Exception as error:  # of code that is not ours; its message may hold a secret
        raise StorageError(f"the key provider {name!r} failed: {type(error).__name__}") from error
    return provider


def _loaded(name: str) -> Callable[[Mapping[str, str]], KeyProvider]:
    try:
        if ":" in name:
            module, _, attribute = name.partition(":")
            found: Callable[[Mapping[str, str]], KeyProvider] = getattr(import_module(module), attribute)
            return found
        for each in entry_points(group=ENTRY_POINTS, name=name):
            loaded: Callable[[Mapping[str, str]], KeyProvider] = each.load()
            return loaded
    except (ImportError, AttributeError) as error:
        raise StorageError(f"{PROVIDER}={name} cannot be loaded: {error}") from error
    installed = sorted({*BUILT_IN, *(each.name for each in entry_points(group=ENTRY_POINTS))})
    raise StorageError(f"{PROVIDER}={name} is not installed; installed are {', '.join(installed)}")
