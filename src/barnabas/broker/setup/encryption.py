"""Encryption at rest of a node: its disk with the keys of all log dirs, made before the dirs are opened.

In: settings, the disk. Out: the same disk if nothing is and nothing shall be encrypted, else a disk that
encrypts. `StorageError` if a key is missing; nothing was changed then. After the dirs are locked, `prepare`
makes their first data keys and marks the dirs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from barnabas.runtime.disk import Disk
from barnabas.settings import BrokerSettings
from barnabas.storage.files import meta_properties
from barnabas.storage.files.errors import StorageError
from barnabas.storage.files.names import ENCRYPTION_KEYS

if TYPE_CHECKING:
    from barnabas.storage.dirs.log_dir import LogDir
    from barnabas.storage.encryption.key_files import WrappedKey

log = logging.getLogger("barnabas.node")

ENABLED = "barnabas.encryption.enabled"
PREFIX = "barnabas.encryption."


def log_dirs_of(settings: BrokerSettings) -> list[str]:
    """All log dirs of a node, with that of the metadata log, each once."""
    paths = [path.rstrip("/") or "/" for path in settings.log_dirs]
    return list(dict.fromkeys([*paths, settings.metadata_log_dir]))


def provider_settings(settings: BrokerSettings) -> Mapping[str, str]:
    """The settings that a key provider may use, as texts."""
    known = {name: str(value) for name, value in settings.values.items() if value is not None}
    return {name: text for name, text in {**known, **settings.static}.items() if name.startswith(PREFIX)}


def disk_of(settings: BrokerSettings, disk: Disk, random_bytes: Callable[[int], bytes]) -> Disk:
    """The disk for the logs of a node."""
    is_enabled: bool = settings[ENABLED]
    encrypted = [path for path in log_dirs_of(settings) if _is_encrypted(disk, path)]
    if not is_enabled and not encrypted:
        return disk
    # Imported here: nodes without encryption do not load the library.
    from barnabas.storage.encryption import key_files, providers
    from barnabas.storage.encryption.encrypted_disk import EncryptedDisk

    provider = providers.provider_of(provider_settings(settings))
    log.info(
        "encryption at rest is %s; new data keys are wrapped with master key %r of the provider %r",
        "on" if is_enabled else "off, and log dirs hold encrypted files",
        provider.current_id,
        settings["barnabas.encryption.key.provider"],
    )
    rings = {}
    for path in encrypted:
        keys = key_files.load(disk, path)
        if not keys:
            raise StorageError(
                f"{path} holds encrypted files, but {path}/{ENCRYPTION_KEYS} is missing or has no key: "
                "restore it from a backup"
            )
        rings[path] = key_files.ring_of(path, keys, provider, is_enabled=is_enabled)
    return EncryptedDisk(disk, rings, random_bytes)


def prepare(
    settings: BrokerSettings, disk: Disk, dirs: list[LogDir], random_bytes: Callable[[int], bytes]
) -> None:
    """Make the first data keys of log dirs that this node has locked, and mark these dirs as encrypted."""
    if not settings[ENABLED]:
        return
    from barnabas.storage.encryption import key_files, providers
    from barnabas.storage.encryption.encrypted_disk import EncryptedDisk

    assert isinstance(disk, EncryptedDisk)
    for path in [each.path for each in dirs if each.failure is None]:
        if path not in disk.rings:
            provider = providers.provider_of(provider_settings(settings))
            keys = key_files.with_new_key(key_files.load(disk, path), provider, random_bytes)
            key_files.store(disk, path, keys)
            disk.rings[path] = key_files.ring_of(path, keys, provider, is_enabled=True)
        found = meta_properties.load(disk, path)
        if found is not None and not found.is_encrypted:
            meta_properties.store(disk, path, replace(found, is_encrypted=True))


def described(settings: BrokerSettings, disk: Disk) -> list[str]:
    """A line for each log dir with encrypted files. Needs no master key."""
    lines = []
    for path in log_dirs_of(settings):
        if _is_encrypted(disk, path):
            from barnabas.storage.encryption import key_files

            try:
                lines.append(f"{path}: {description(key_files.load(disk, path))}")
            except StorageError as error:
                lines.append(str(error))
    return lines


def description(keys: list[WrappedKey]) -> str:
    """The data keys of a log dir in words."""
    if not keys:
        return f"{ENCRYPTION_KEYS} is missing"
    masters = " and ".join(sorted({key.master_id for key in keys}))
    numbers = ", ".join(str(key.number) for key in keys)
    return f"data {'key' if len(keys) == 1 else 'keys'} {numbers}, wrapped with master key {masters}"


def _is_encrypted(disk: Disk, path: str) -> bool:
    """Whether a log dir has keys, or the mark of a dir with encrypted files."""
    try:
        if disk.exists(f"{path}/{ENCRYPTION_KEYS}"):
            return True
        found = meta_properties.load(disk, path)
    except (OSError, StorageError):
        return False  # opening the dir reports it
    return found is not None and found.is_encrypted
