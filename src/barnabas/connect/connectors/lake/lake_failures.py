"""Errors of a lake that may pass: conflicts of commits, a full disk, a store or a catalog that is away.

In: what Spark, Delta, pyiceberg and their stores raise. Out: RetriableError for those, every other error as
it was. Code that failed on an executor does not pass. Does not know: tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from barnabas.connect.plugins import ConnectError, RetriableError
from barnabas.engine.errors import CommitConflict, LakeUnavailable, SourceUnavailable, classified

OF_PYTHON = "Traceback (most recent call last)"


@contextmanager
def lake_failures(doing: str) -> Iterator[None]:
    """`doing` says what fails."""
    try:
        yield
    except ConnectError:
        raise
    except ConnectionError as error:
        raise RetriableError(f"{doing}: {error}") from error
    except Exception as error:
        found = None if OF_PYTHON in str(error) else classified(error, doing)
        if isinstance(found, (CommitConflict, LakeUnavailable, SourceUnavailable)):
            raise RetriableError(str(found)) from error
        raise
