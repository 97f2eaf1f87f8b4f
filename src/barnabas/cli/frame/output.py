"""Where a tool prints: results to standard output, everything else to standard error.

In: lines or bytes. A reader that went away (`| head`) shows as BrokenPipeError, which `main` turns into a
quiet end. Does not know: what is printed.
"""

import asyncio
import contextlib
import os
import stat
import sys
from collections.abc import Iterator


class Output:
    """Text and bytes to standard output in the order they were written."""

    def line(self, text: str = "") -> None:
        sys.stdout.write(text + "\n")

    def bytes(self, data: bytes) -> None:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)

    def note(self, text: str) -> None:
        """Something a person should know that is not part of the result."""
        sys.stdout.flush()
        with contextlib.suppress(BrokenPipeError):
            sys.stderr.write(text + "\n")
            sys.stderr.flush()

    def flush(self) -> None:
        sys.stdout.flush()
        sys.stdout.buffer.flush()


@contextlib.contextmanager
def cancelled_when_unread() -> Iterator[None]:
    """Ends the current task with BrokenPipeError as soon as the reader of our pipe is gone (`| head`).

    A consumer that waits for records would else notice only when the next one comes.
    """
    descriptor = pipe_descriptor()
    task = asyncio.current_task()
    if descriptor is None or task is None:
        yield
        return
    loop = asyncio.get_running_loop()
    gone = False

    def reader_gone() -> None:
        nonlocal gone
        gone = True
        loop.remove_reader(descriptor)
        task.cancel()

    loop.add_reader(descriptor, reader_gone)  # a pipe's writing end is never readable, only broken
    try:
        yield
    except asyncio.CancelledError:
        if not gone:
            raise
        task.uncancel()
        raise BrokenPipeError from None
    finally:
        loop.remove_reader(descriptor)


def pipe_descriptor() -> int | None:
    """Standard output, if it is a pipe."""
    try:
        descriptor = sys.stdout.fileno()
        return descriptor if stat.S_ISFIFO(os.fstat(descriptor).st_mode) else None
    except (OSError, ValueError):
        return None


def abandon_output() -> None:
    """Nobody reads any more: keep the interpreter from complaining when it flushes at its end."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
