"""A temporary shortage of descriptors, memory or threads: the metadata log waits, and the node continues."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from barnabas.protocol import ErrorCode
from barnabas.runtime.disk import Disk
from barnabas.runtime.shortage import is_shortage
from barnabas.testing.waiting import until
from runtime.nodes import Node, run, settings_for


class ShortDisk(Disk):
    """`refusals` counts the calls that failed during the shortage."""

    def __init__(self) -> None:
        self.number: int | None = None
        self.refusals = 0

    def open(self, path: str, flags: int, mode: int = 0o777) -> int:
        self._check()
        return super().open(path, flags, mode)

    def can_open(self, count: int) -> bool:
        return self.number is None

    def fsync(self, descriptor: int) -> None:  # type: ignore[override]
        self._check()
        os.fsync(descriptor)

    def _check(self) -> None:
        if self.number is not None:
            self.refusals += 1
            raise OSError(self.number, os.strerror(self.number))


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOMEM])
def test_decisions_wait_for_a_sync_that_lacks_something(tmp_path: Path, number: int) -> None:
    async def main() -> None:
        disk = ShortDisk()
        node = Node(settings_for(tmp_path / "data"), disk)
        node.format()
        await node.start()
        disk.number = number
        creating = asyncio.ensure_future(node.create("orders"))
        await until(lambda: disk.refusals > 2)
        assert not creating.done()
        assert node.log.error is None
        disk.number = None
        assert (await creating).error_code == ErrorCode.NONE
        assert "orders" in node.controller.image.topics.by_name
        await node.stop()

    run(main)


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("can't start new thread")])
def test_decisions_wait_for_a_thread(tmp_path: Path, error: Exception) -> None:
    async def main() -> None:
        node = Node(settings_for(tmp_path / "data"))
        node.format()
        await node.start()
        refused = 0

        def no_thread(work: Callable[[], None]) -> Any:
            nonlocal refused
            refused += 1
            raise error

        node.log.run_slow_work_with(no_thread)
        creating = asyncio.ensure_future(node.create("orders"))
        await until(lambda: refused > 2)
        assert not creating.done()
        node.log.run_slow_work_with(asyncio.to_thread)
        assert (await creating).error_code == ErrorCode.NONE
        await node.stop()

    run(main)


def test_which_errors_are_shortages() -> None:
    assert is_shortage(OSError(errno.EMFILE, ""))
    assert is_shortage(MemoryError())
    assert is_shortage(RuntimeError("can't start new thread"))
    assert not is_shortage(OSError(errno.EIO, ""))
    assert not is_shortage(OSError(errno.ENOSPC, ""))
    assert not is_shortage(RuntimeError("anything else"))
    assert not is_shortage(None)
