"""The key that seals secrets: from the settings, or a file beside the metadata that only its owner reads.

In: settings, the disk, random bytes. Out: keys for `settings.secrets`, the one to seal with first. The file
is made when the first secret is set on a node that has no `barnabas.secret.key`.
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
