"""`.kafka_cleanshutdown`: the mark that a node stopped in order, so that its logs need no recovery.

Written last when stopping, removed first when starting: a crash in between leaves none. Holds the broker's
epoch of that life, which a controller compares when the broker registers again (KIP-966).
"""

import json

from barnabas.runtime.disk import Disk
from barnabas.storage import names

VERSION = 0
UNKNOWN_EPOCH = -1


def store(disk: Disk, directory: str, broker_epoch: int) -> None:
    text = json.dumps({"version": VERSION, "brokerEpoch": broker_epoch}, separators=(",", ":"))
    disk.replace_file(f"{directory}/{names.CLEAN_SHUTDOWN}", text.encode())


def take(disk: Disk, directory: str) -> int | None:
    """Remove the mark: the broker epoch in it, -1 if it holds none, None when there is no mark."""
    path = f"{directory}/{names.CLEAN_SHUTDOWN}"
    try:
        data = disk.read(path)
        disk.unlink(path)
    except FileNotFoundError:
        return None
    disk.sync_directory(directory)
    try:
        return int(json.loads(data)["brokerEpoch"])
    except (ValueError, TypeError, KeyError):
        return UNKNOWN_EPOCH
