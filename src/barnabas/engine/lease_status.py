"""Knowledge of a run's processes about the lease that their run holds: the epoch, and until when it is safe.

In: the folder of a lake's state on this machine. Out: a small file that the holder writes at each renewal,
and that the applications read before they work. Does not know: where the lease lies.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from barnabas.engine.errors import IngestError
from barnabas.engine.lease import seconds_since_boot

FILE_NAME = "lease.json"
FENCED_FILE = "fenced"
BOOT = Path("/proc/sys/kernel/random/boot_id")


class NotOurLease(IngestError):
    """This host holds the lease no more, so it must not work."""


@dataclass(frozen=True, slots=True)
class LeaseStatus:
    epoch: int = 0
    is_held: bool = False
    is_fenced: bool = True
    until: float = 0.0
    boot: str = ""

    def write(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        beside = folder / f"{FILE_NAME}.new"
        beside.write_text(json.dumps(asdict(self)))
        beside.replace(folder / FILE_NAME)


def boot_id() -> str:
    """Identifies this start of this machine."""
    try:
        return BOOT.read_text().strip()
    except OSError:
        import socket

        return socket.gethostname()


def lease_status(folder: Path) -> LeaseStatus:
    """The lease as the holder wrote it; the first epoch where no run was yet."""
    try:
        return LeaseStatus(**json.loads((folder / FILE_NAME).read_text()))
    except (OSError, ValueError, TypeError):
        return LeaseStatus()


def check_lease(folder: Path, epoch: int | None = None) -> LeaseStatus:
    """The lease. NotOurLease if another host may have it, or if it is not of this epoch any more."""
    found = lease_status(folder)
    if found.is_held and (found.boot != boot_id() or seconds_since_boot() > found.until):
        raise NotOurLease(
            "the lease of the lake was not renewed in time: another host may work on it; this one does not"
        )
    if epoch is not None and found.epoch != epoch:
        raise NotOurLease(f"the lease of the lake is of epoch {found.epoch}, this process is of {epoch}")
    return found


def note_fenced(folder: Path, epoch: int) -> None:
    """All tables refuse commits of earlier epochs: the holder's next renewal says so."""
    (folder / FENCED_FILE).write_text(str(epoch))


def is_fenced(folder: Path, epoch: int) -> bool:
    try:
        return (folder / FENCED_FILE).read_text() == str(epoch)
    except OSError:
        return False
