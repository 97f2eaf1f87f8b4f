"""`.kafka_cleanshutdown`: the mark that a node stopped in order, so that its logs need no recovery.

Written last when stopping, removed first when starting: a crash in between leaves none. Holds the broker's
epoch of that life, which a controller compares when the broker registers again (KIP-966).
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
    """Remove the mark; whether there was one."""
    try:
        disk.unlink(f"{directory}/{names.CLEAN_SHUTDOWN}")
    except FileNotFoundError:
        return False
    disk.sync_directory(directory)
    return True


def broker_epoch(disk: Disk, directory: str) -> int:
    """The epoch in the mark, which stays; -1 if it holds none, is not there, or cannot be read: who loads the
    logs will meet the disk's failure."""
    try:
        return int(json.loads(disk.read(f"{directory}/{names.CLEAN_SHUTDOWN}"))["brokerEpoch"])
    except OSError:
        return UNKNOWN_EPOCH
    except (ValueError, TypeError, KeyError):
        return UNKNOWN_EPOCH
