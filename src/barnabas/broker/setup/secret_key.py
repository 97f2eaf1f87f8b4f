"""The key that encrypts secrets: from the settings, or a file that only its owner can read.

In: settings, the disk, random bytes. Out: keys for `settings.secrets`; the first one encrypts. The file is
created when the first secret is set on a node without `barnabas.secret.key`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from barnabas.runtime.disk import REPLACE, Disk
from barnabas.settings import BrokerSettings
from barnabas.settings.secrets import Secrets

FILE = "barnabas.secret"
OWNER_ONLY = 0o600
KEY_BYTES = 32


def secrets_of(settings: BrokerSettings, disk: Disk, random_bytes: Callable[[int], bytes]) -> Secrets:
    return Secrets(partial(keys, settings, disk, random_bytes))


def keys(settings: BrokerSettings, disk: Disk, random_bytes: Callable[[int], bytes]) -> list[bytes]:
    named = [settings["barnabas.secret.key"], settings["barnabas.secret.old.key"]]
    found = [each.value.encode() for each in named if each is not None]
    path = f"{settings.metadata_log_dir}/{FILE}"
    if disk.exists(path):
        found.append(disk.read(path))
    elif not found:
        found.append(make_key(path, disk, random_bytes))
    return found


def make_key(path: str, disk: Disk, random_bytes: Callable[[int], bytes]) -> bytes:
    key = random_bytes(KEY_BYTES).hex().encode()
    descriptor = disk.open(f"{path}.tmp", REPLACE, OWNER_ONLY)
    try:
        disk.write(descriptor, key)
        disk.fsync(descriptor)
    finally:
        disk.close(descriptor)
    disk.replace(f"{path}.tmp", path)
    return key
