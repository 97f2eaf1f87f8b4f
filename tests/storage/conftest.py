"""A folder for one partition, and a log in it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from barnabas.storage import Log, LogSettings

from .building import NOW_MS, SMALL


@pytest.fixture
def directory(tmp_path: Path) -> str:
    return str(tmp_path / "topic-0")


@pytest.fixture
def log(directory: str) -> Log:
    """Segments of 2,000 bytes, an index entry about every second batch."""
    return Log.create(directory, SMALL, now_ms=NOW_MS)


@pytest.fixture
def reopen(directory: str) -> Iterator[Callable[..., Log]]:
    def open_again(
        *,
        clean: bool = False,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        settings: LogSettings = SMALL,
    ) -> Log:
        return Log.open(
            directory,
            settings,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            clean=clean,
            now_ms=NOW_MS,
        )

    yield open_again
