"""The cleaner's process: `python -m barnabas.storage.compaction.worker`, started by a broker when a log is
dirty.

In, a line each: a `CleaningJob`, or `next` when the segment that was handed over is in its place. Out, a
line each: what became of it, as JSON under `group`, `done`, `corrupt` (the log cannot be cleaned) or
`failed` (its disk). Decoding records takes a processor for minutes, which the loop of the broker must not
feel: hence a process, of low priority. It ends when its input does, so that it never outlives the broker.
Does not know: the log as others use it meanwhile.
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

from barnabas.storage.compaction.cleaner import Cleaner
from barnabas.storage.compaction.job import CleaningJob
from barnabas.storage.logs.context import LogContext

NICENESS = 10
NEXT = "next"

Say = Callable[[str, object], None]


def clean(job: CleaningJob, lines: "SimpleQueue[str]", say: Say) -> None:
    cleaner = Cleaner(job, LogContext())
    try:
        for group in cleaner.run():
            say("group", asdict(group))
            answer = lines.get()
            if answer != NEXT:
                raise ValueError(f"{answer!r} in place of {NEXT!r}")
    except OSError as error:
        say("failed", [error.errno, str(error)])
    except MemoryError as error:
        say("failed", [errno.ENOMEM, str(error) or os.strerror(errno.ENOMEM)])
    except (
        Exception
    ) as error:  # whatever a damaged log makes of us: its partition is marked, the others go on
        say("corrupt", f"{type(error).__name__}: {error}")
    else:
        say("done", asdict(cleaner.stats))


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # for the broker, which then closes our input
    os.nice(NICENESS)
    gc.disable()  # millions of keys, and nothing that refers to itself
    lines: SimpleQueue[str] = SimpleQueue()

    def listen() -> None:
        for line in sys.stdin:
            lines.put(line.rstrip("\n"))
        os._exit(0)  # in the middle of whatever: what is half done is removed by who opens the log

    def say(kind: str, content: object) -> None:
        sys.stdout.write(json.dumps({kind: content}) + "\n")
        sys.stdout.flush()

    Thread(target=listen, daemon=True).start()
    while True:
        clean(CleaningJob.decode(lines.get()), lines, say)


if __name__ == "__main__":
    main()
