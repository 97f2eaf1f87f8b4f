"""`.kafka_cleanshutdown`: the file that marks a clean shutdown, after which logs need no recovery.

A node writes it last when it stops and removes it first when it starts, so there is none after a crash. It
holds the broker epoch, which the controller compares when the broker registers again (KIP-966).
"""

import json

from barnabas.runtime.disk import Disk
from barnabas.storage.files import names

VERSION = 0
UNKNOWN_EPOCH = -1


def store(disk: Disk, directory: str, broker_epoch: int) -> None:
    text = json.dumps({"version": VERSION, "brokerEpoch": broker_epoch}, separators=(",", ":"))
    disk.replace_file(f"{directory}/{names.CLEAN_SHUTDOWN}", text.encode())


def remove(disk: Disk, directory: str) -> bool:
    """Remove the file. Returns whether there was one."""
    try:
        disk.unlink(f"{directory}/{names.CLEAN_SHUTDOWN}")
    except FileNotFoundError:
        return False
    disk.sync_directory(directory)
    return True


def broker_epoch(disk: Disk, directory: str) -> int:
    """Read the epoch without removing the file. -1 if the file is missing, invalid or unreadable: loading the
    logs will report a failed disk."""
    try:
        return int(json.loads(disk.read(f"{directory}/{names.CLEAN_SHUTDOWN}"))["brokerEpoch"])
    except OSError:
        return UNKNOWN_EPOCH
    except (ValueError, TypeError, KeyError):
        return UNKNOWN_EPOCH
