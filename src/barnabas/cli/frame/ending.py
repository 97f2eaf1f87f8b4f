"""The end of a tool that runs until it is told to stop.

In: SIGTERM. Out: the work of the tool is cancelled and its end follows: members leave groups, producers
flush. Does not know: what the tool does.
"""

import asyncio
import contextlib
import signal
from collections.abc import Iterator


@contextlib.contextmanager
def end_by_signal() -> Iterator[None]:
    """End the current task at SIGTERM, so that the consumer leaves its group."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    ended: list[bool] = []

    def end() -> None:
        ended.append(True)
        task.cancel()

    try:
        loop.add_signal_handler(signal.SIGTERM, end)
    except (NotImplementedError, ValueError, RuntimeError):  # not in the main thread
        yield
        return
    try:
        yield
    except asyncio.CancelledError:
        if not ended:
            raise
        task.uncancel()
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
