"""The cleaner process: `python -m barnabas.storage.compaction.worker`, started by a broker for a dirty log.

In, one per line: a `CleaningJob`, or `next` when the broker has swapped in the last cleaned segment. Out, one
JSON object per line with the key `group`, `done`, `corrupt` (the log cannot be cleaned) or `failed` (a disk
error). Decoding records keeps a processor busy for minutes, so this is a process of its own, with low
priority: the broker's event loop is not delayed. The process ends at the end of its input, so it never
outlives the broker.
Does not know: concurrent use of the log.
"""

import errno
import gc
import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import asdict
from queue import SimpleQueue
from threading import Thread

from barnabas.runtime.disk import REAL_DISK, Disk
from barnabas.storage.compaction.cleaner import Cleaner
from barnabas.storage.compaction.job import CleaningJob
from barnabas.storage.logs.context import LogContext

NICENESS = 10
NEXT = "next"

Say = Callable[[str, object], None]


def clean(job: CleaningJob, lines: "SimpleQueue[str]", say: Say) -> None:
    cleaner = Cleaner(job, LogContext(disk_of(job)))
    try:
        for group in cleaner.run():
            say("group", asdict(group))
            answer = lines.get()
            if answer != NEXT:
                raise ValueError(f"expected {NEXT!r}, got {answer!r}")
    except OSError as error:
        say("failed", [error.errno, str(error)])
    except MemoryError as error:
        say("failed", [errno.ENOMEM, str(error) or os.strerror(errno.ENOMEM)])
    except Exception as error:  # of a damaged log: the broker marks this partition and cleans the others
        say("corrupt", f"{type(error).__name__}: {error}")
    else:
        say("done", asdict(cleaner.stats))


def disk_of(job: CleaningJob) -> Disk:
    """The disk of a job: with the keys of its log dir, if it has any."""
    if job.keys is None:
        return REAL_DISK
    from barnabas.storage.encryption.encrypted_disk import EncryptedDisk
    from barnabas.storage.encryption.key_ring import KeyRing

    ring = KeyRing.restore(job.keys)
    return EncryptedDisk(REAL_DISK, {ring.log_dir: ring})


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the broker handles it, and then closes our input
    os.nice(NICENESS)
    gc.disable()  # there are millions of keys and no reference cycles
    lines: SimpleQueue[str] = SimpleQueue()

    def listen() -> None:
        for line in sys.stdin:
            lines.put(line.rstrip("\n"))
        os._exit(0)  # opening the log removes unfinished files

    def say(kind: str, content: object) -> None:
        sys.stdout.write(json.dumps({kind: content}) + "\n")
        sys.stdout.flush()

    Thread(target=listen, daemon=True).start()
    while True:
        clean(CleaningJob.decode(lines.get()), lines, say)


if __name__ == "__main__":
    main()
