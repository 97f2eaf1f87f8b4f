"""The output of a tool: results go to standard output, everything else to standard error.

In: lines or bytes. If the reader of a pipe has closed it (`| head`), writing raises BrokenPipeError, and
`main` ends the tool without a message. Does not know: what is printed.
"""

import asyncio
import contextlib
import os
import stat
import sys
from collections.abc import Iterator


class Output:
    """Writes text and bytes to standard output in the order of the calls."""

    def line(self, text: str = "") -> None:
        sys.stdout.write(text + "\n")

    def bytes(self, data: bytes) -> None:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)

    def note(self, text: str) -> None:
        """Print a line that is not part of the result to standard error."""
        sys.stdout.flush()
        with contextlib.suppress(BrokenPipeError):
            sys.stderr.write(text + "\n")
            sys.stderr.flush()

    def flush(self) -> None:
        sys.stdout.flush()
        sys.stdout.buffer.flush()


@contextlib.contextmanager
def end_when_reader_closes() -> Iterator[None]:
    """End the current task with BrokenPipeError as soon as the reader of our pipe closes it (`| head`).

    Otherwise a consumer that waits for records would notice it only when the next record arrives.
    """
    descriptor = pipe_descriptor()
    task = asyncio.current_task()
    if descriptor is None or task is None:
        yield
        return
    loop = asyncio.get_running_loop()
    has_closed = False

    def on_reader_closed() -> None:
        nonlocal has_closed
        has_closed = True
        loop.remove_reader(descriptor)
        task.cancel()

    # The write end of a pipe becomes readable only when its reader has closed.
    loop.add_reader(descriptor, on_reader_closed)
    try:
        yield
    except asyncio.CancelledError:
        if not has_closed:
            raise
        task.uncancel()
        raise BrokenPipeError from None
    finally:
        loop.remove_reader(descriptor)


def pipe_descriptor() -> int | None:
    """The descriptor of standard output, if it is a pipe."""
    try:
        descriptor = sys.stdout.fileno()
        return descriptor if stat.S_ISFIFO(os.fstat(descriptor).st_mode) else None
    except (OSError, ValueError):
        return None


def discard_output() -> None:
    """Send further output to /dev/null, so that the interpreter's last flush does not fail."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
