"""A progress bar for long work, on standard error, only if that is a terminal. `rich` is imported only then.

In: a title and the total amount. Out: a function to call with each amount that is done.
"""

import contextlib
import sys
from collections.abc import Callable, Iterator

Advance = Callable[[int], None]


def ignore_progress(amount: int) -> None:
    """The function to call if there is no bar."""


@contextlib.contextmanager
def progress(
    title: str, total: int | None, *, size_bytes: bool = False, beside_output: bool = True
) -> Iterator[Advance]:
    """Show a bar if standard error is a terminal: `with progress("sending", total) as advance:`.

    With `beside_output=False` there is no bar if the tool's output goes to a terminal, too.
    """
    if not sys.stderr.isatty() or (sys.stdout.isatty() and not beside_output):
        yield ignore_progress
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
    # On a terminal, rich prints the tool's output above the bar. Output to a file or pipe must stay there.
    redirect = sys.stdout.isatty()
    with Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=redirect) as bar:
        task = bar.add_task(title, total=total)
        yield lambda done: bar.advance(task, done)
