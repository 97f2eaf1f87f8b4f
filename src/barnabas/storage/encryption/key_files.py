"""The key file of a log dir: its data keys, each wrapped by a master key.

In: a log dir, a provider. Out: `KeyRing`s; new keys; keys that are wrapped anew after the master key was
changed. The file is replaced atomically and synced before any file is encrypted with a new key: without it,
the records of the log dir are lost. Old data keys stay in it for the files that they encrypted.
Does not know: when keys are needed, what they encrypt.
"""

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass

from barnabas.runtime.disk import Disk
from barnabas.storage.encryption.key_ring import DATA_KEY_BYTES, KeyRing
from barnabas.storage.encryption.providers import KeyProvider, KeyUnavailable
from barnabas.storage.files.errors import StorageError
from barnabas.storage.files.names import ENCRYPTION_KEYS

VERSION = 1


@dataclass(frozen=True, slots=True)
class WrappedKey:
    number: int
    master_id: str
    wrapped: bytes

    @property
    def label(self) -> bytes:
        return f"barnabas data key {self.number}".encode()


def path_of(log_dir: str) -> str:
    return f"{log_dir}/{ENCRYPTION_KEYS}"


def load(disk: Disk, log_dir: str) -> list[WrappedKey]:
    """The keys of a log dir, the oldest first; none without a file."""
    path = path_of(log_dir)
    try:
        content = json.loads(disk.read(path))
        if content["version"] != VERSION:
            raise StorageError(f"{path} has version {content['version']}; only {VERSION} is supported")
        return [
            WrappedKey(
                int(each["number"]), str(each["master"]), base64.b64decode(each["wrapped"], validate=True)
            )
            for each in content["keys"]
        ]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise StorageError(f"{path} is damaged, restore it from a backup: {error}") from error


def store(disk: Disk, log_dir: str, keys: list[WrappedKey]) -> None:
    rows = [
        {"number": key.number, "master": key.master_id, "wrapped": base64.b64encode(key.wrapped).decode()}
        for key in keys
    ]
    text = json.dumps({"version": VERSION, "keys": rows}, indent=1) + "\n"
    try:
        disk.replace_file(path_of(log_dir), text.encode())
    except OSError as error:
        raise StorageError(f"cannot write {path_of(log_dir)}: {error.strerror}") from error


def ring_of(log_dir: str, keys: list[WrappedKey], provider: KeyProvider, *, is_enabled: bool) -> KeyRing:
    """Unwrap all keys. `StorageError` if a master key is missing; nothing was changed."""
    found = {key.number: _unwrap(log_dir, key, provider) for key in keys}
    return KeyRing(log_dir, found, max(found, default=None) if is_enabled else None)


def with_new_key(
    keys: list[WrappedKey], provider: KeyProvider, random_bytes: Callable[[int], bytes]
) -> list[WrappedKey]:
    """Add a data key, which new files use from then on."""
    number = max((key.number for key in keys), default=0) + 1
    return [*keys, _wrap(number, random_bytes(DATA_KEY_BYTES), provider)]


def rewrapped(log_dir: str, keys: list[WrappedKey], provider: KeyProvider) -> list[WrappedKey]:
    """Wrap all data keys with the current master key; older master keys are not needed any more."""
    return [_wrap(key.number, _unwrap(log_dir, key, provider), provider) for key in keys]


def _wrap(number: int, data_key: bytes, provider: KeyProvider) -> WrappedKey:
    made = WrappedKey(number, provider.current_id, b"")
    return WrappedKey(number, made.master_id, provider.wrap(data_key, made.label))


def _unwrap(log_dir: str, key: WrappedKey, provider: KeyProvider) -> bytes:
    try:
        data_key = provider.unwrap(key.master_id, key.wrapped, key.label)
    except KeyUnavailable as error:
        raise StorageError(
            f"cannot open the data keys of {log_dir}: {error}. Data key {key.number} was wrapped with master "
            f"key {key.master_id!r}: give the node that key (barnabas.encryption.key.*)"
        ) from None
    except Exception as error:  # of a provider that is not ours; its message may hold a secret
        raise StorageError(
            f"cannot open the data keys of {log_dir}: the key provider failed to unwrap data key "
            f"{key.number} with master key {key.master_id!r}: {type(error).__name__}"
        ) from error
    if len(data_key) != DATA_KEY_BYTES:
        raise StorageError(
            f"data key {key.number} of {log_dir} has {len(data_key)} bytes, not {DATA_KEY_BYTES}"
        )
    return data_key
