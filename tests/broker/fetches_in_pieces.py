"""The fixture `in_pieces`: all fetches are served in pieces of one partition, each in a turn of its own."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from barnabas.broker.fetch import large_fetch
from barnabas.broker.handlers import fetch as handler
from barnabas.replication import fetch_sessions
from barnabas.runtime import pieces

__all__ = ["in_pieces"]


@pytest.fixture
def in_pieces(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """A switch: serve fetches in pieces, which is so at first, or at once."""

    def switch(is_on: bool) -> None:
        if not is_on:
            monkeypatch.undo()
            return
        monkeypatch.setattr(handler, "PARTITIONS_AT_ONCE_MAX", -1)
        monkeypatch.setattr(handler, "FOLLOWED_AT_ONCE_MAX", -1)
        monkeypatch.setattr(handler, "REQUEST_BYTES_AT_ONCE_MAX", 0)
        monkeypatch.setattr(large_fetch, "PARTITIONS_A_STEP", 1)
        monkeypatch.setattr(fetch_sessions, "PARTITIONS_A_STEP", 1)
        monkeypatch.setattr(pieces, "PIECE_S", 0.0)

    switch(True)
    return switch
