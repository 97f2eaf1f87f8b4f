"""The content of data files, decrypted if they are encrypted.

In: the path of a file in a partition's folder; the node's settings (`keys_from`), or master keys in the
environment. Out: plain bytes. `ToolError` says which key is missing. Only reads.
Does not know: what is in the files.
"""

import mmap
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from barnabas.broker.setup import encryption
from barnabas.cli.frame.connecting import load_properties
from barnabas.cli.frame.parsing import ToolError
from barnabas.records.crc32c import Buffer
from barnabas.runtime.disk import REAL_DISK, Disk
from barnabas.settings import BrokerSettings, SettingsError
from barnabas.storage.files.errors import StorageError
from barnabas.storage.segments.segment import CorruptLog

MAGIC = b"\xba\xb5BRNENC"  # as in `storage.encryption.frames`, which is loaded for encrypted files only
VARIABLE = "BARNABAS_MASTER_KEYS"

_settings: ContextVar[Mapping[str, str] | None] = ContextVar("key settings", default=None)


@contextmanager
def keys_from(config: str | None) -> Iterator[None]:
    """Use the key provider of a node's server.properties for all files."""
    found = None
    if config is not None:
        try:
            found = encryption.provider_settings(BrokerSettings.load(load_properties(config)))
        except SettingsError as error:
            raise ToolError(f"{config}: {error}") from None
    token = _settings.set(found)
    try:
        yield
    finally:
        _settings.reset(token)


def content_of(path: Path) -> bytes:
    if not is_encrypted(path):
        return path.read_bytes()
    try:
        return _disk_of(path).read(str(path.absolute()))
    except (StorageError, CorruptLog) as error:
        raise ToolError(str(error)) from None


def size_of(path: Path) -> int:
    """The number of plain bytes."""
    return _disk_of(path).size(str(path.absolute())) if is_encrypted(path) else path.stat().st_size


@contextmanager
def mapped(path: Path) -> Iterator[Buffer]:
    """Map a file into memory instead of reading it, unless it is encrypted."""
    if path.stat().st_size == 0:
        yield b""
    elif is_encrypted(path):
        yield content_of(path)
    else:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            yield content  # type: ignore[misc]  # a buffer, as bytes are


def is_encrypted(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def _disk_of(path: Path) -> Disk:
    from barnabas.storage.encryption import key_files, providers
    from barnabas.storage.encryption.encrypted_disk import EncryptedDisk

    settings = _settings.get()
    if settings is None:
        if VARIABLE not in os.environ:
            raise ToolError(
                f"{path} is encrypted: name the node's server.properties with --config, or put the master "
                f"keys into the environment variable {VARIABLE}"
            )
        settings = {providers.PROVIDER: "env", providers.KEY_VARIABLE: VARIABLE}
    log_dir = str(path.absolute().parent.parent)
    try:
        keys = key_files.load(REAL_DISK, log_dir)
        if not keys:
            raise ToolError(f"{path} is encrypted, and {key_files.path_of(log_dir)} is missing")
        ring = key_files.ring_of(log_dir, keys, providers.provider_of(settings), is_enabled=False)
    except StorageError as error:
        raise ToolError(str(error)) from None
    return EncryptedDisk(REAL_DISK, {log_dir: ring})
