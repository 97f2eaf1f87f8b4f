"""The replication connection: libpq's COPY BOTH mode through psycopg's `pq`.

psycopg has no replication protocol of its own; its `pq` layer has all that is needed. Out: frames as they
come; feedback goes back. Does not know: what frames mean.
"""

from __future__ import annotations

import select
import time
from collections.abc import Mapping

from barnabas.connect.connectors.postgres_cdc.pgoutput import Frame, Keepalive, feedback, frame_of
from barnabas.connect.plugins import RetriableError


class ReplicationStream:
    """`START_REPLICATION` of one slot. `confirm(lsn)` tells the server what it may forget."""

    def __init__(self, conninfo: str, slot: str, start_lsn: int, options: Mapping[str, str]) -> None:
        from psycopg import pq

        self._pq = pq
        self._connection = pq.PGconn.connect(f"{conninfo} replication=database".encode())
        if self._connection.status != pq.ConnStatus.OK:
            raise RetriableError(self._said())
        words = ", ".join(f"{name} '{value}'" for name, value in options.items())
        command = f'START_REPLICATION SLOT "{slot}" LOGICAL {text_of(start_lsn)} ({words})'
        result = self._connection.exec_(command.encode())
        if result.status != pq.ExecStatus.COPY_BOTH:
            said = result.error_message.decode(errors="replace").strip()
            self.close()
            raise RetriableError(f"replication of slot {slot} cannot start: {said}")

    def read(self, wait_s: float) -> Frame | Keepalive | None:
        """The next frame, None if none came in time."""
        size, data = self._connection.get_copy_data(1)
        if size == 0:
            ready, _, _ = select.select([self._connection.socket], [], [], max(wait_s, 0))
            if not ready:
                return None
            self._connection.consume_input()
            size, data = self._connection.get_copy_data(1)
        if size < 0:
            result = self._connection.get_result()
            said = (
                result.error_message.decode(errors="replace").strip() if result is not None else self._said()
            )
            raise RetriableError(f"the server ended the replication: {said}")
        return frame_of(bytes(data)) if size else None

    def confirm(self, lsn: int, *, wants_reply: bool = False) -> None:
        self._connection.put_copy_data(feedback(lsn, time.time_ns() // 1000, wants_reply=wants_reply))
        self._connection.flush()

    def _said(self) -> str:
        return self._connection.error_message.decode(errors="replace").strip()

    def close(self) -> None:
        self._connection.finish()


def text_of(lsn: int) -> str:
    """An LSN as PostgreSQL writes it."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def lsn_of(text: str) -> int:
    high, _, low = text.partition("/")
    return (int(high, 16) << 32) | int(low, 16)
