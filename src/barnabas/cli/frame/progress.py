"""A progress bar for long work: on standard error, only when a person looks at it, and imported only then.

In: what is being done and how much there is. Out: a function to tell how much more is done.
"""

import contextlib
import sys
from collections.abc import Callable, Iterator

Advance = Callable[[int], None]


def nothing(amount: int) -> None:
    """Progress that nobody watches."""


@contextlib.contextmanager
def progress(
    title: str, total: int | None, *, size_bytes: bool = False, beside_output: bool = True
) -> Iterator[Advance]:
    """`with progress("sending", total) as advance:` shows a bar while standard error is a terminal.

    With `beside_output` false there is none where output itself scrolls by on the terminal.
    """
    if not sys.stderr.isatty() or (sys.stdout.isatty() and not beside_output):
        yield nothing
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    amount = DownloadColumn() if size_bytes else MofNCompleteColumn()
    columns = (TextColumn("{task.description}"), BarColumn(), amount, TimeRemainingColumn())
    # What a tool prints meanwhile goes above the bar, but never from a file or pipe into the terminal.
    redirect = sys.stdout.isatty()
    with Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=redirect) as bar:
        task = bar.add_task(title, total=total)
        yield lambda done: bar.advance(task, done)
