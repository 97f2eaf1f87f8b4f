"""The stream of the binary log, as a replica reads it, through PyMySQL's connection.

Out: events as they come, None if none came in time. A thread reads, because the driver cannot wait for a
limited time; the queue between is bounded. Does not know: what events mean.
"""

from __future__ import annotations

import contextlib
import queue
import socket
import struct
import threading
from collections.abc import Callable
from typing import Any

from barnabas.connect.connectors.mysql_cdc.binlog import (
    FORMAT,
    TRANSACTION_PAYLOAD,
    Event,
    event_of,
    has_checksum,
)
from barnabas.connect.connectors.mysql_cdc.payloads import events_inside
from barnabas.connect.plugins import ConnectError, RetriableError

DUMP, DUMP_GTID, REGISTER = 0x12, 0x1E, 0x15
HEARTBEAT_NS = 5_000_000_000
SILENCE_S_MAX = 60  # without an event or a heartbeat the connection is lost
EVENTS_MAX = 512
PURGED = 1236  # the server does not have the log that was asked for


class LogPurged(ConnectError):
    """The server has deleted the log that was asked for."""


class BinlogStream:
    """Events from a place on. `gtids` wins over file and position where the server knows GTIDs."""

    def __init__(
        self,
        connect: Callable[[], Any],
        server_id: int,
        file: str,
        position: int,
        gtids: str = "",
        *,
        is_mariadb: bool = False,
    ) -> None:
        self._connection = connect()
        self._queue: queue.Queue[Event | BaseException] = queue.Queue(EVENTS_MAX)
        self._is_closed = threading.Event()
        self._has_checksum = False
        try:
            self._prepare(server_id, gtids if is_mariadb else "")
            if gtids and is_mariadb:
                self._command(DUMP, struct.pack("<IHI", 4, 0, server_id))
            elif gtids:
                self._command(DUMP_GTID, gtid_request(server_id, gtids))
            else:
                self._command(DUMP, struct.pack("<IHI", position, 0, server_id) + file.encode())
        except BaseException:
            self._connection._force_close()
            raise
        self._thread = threading.Thread(target=self._read_all, name="binlog", daemon=True)
        self._thread.start()

    def _prepare(self, server_id: int, gtids: str) -> None:
        with self._connection.cursor() as cursor:
            cursor.execute("SET @master_binlog_checksum = @@global.binlog_checksum")
            cursor.execute("SET @source_binlog_checksum = @@global.binlog_checksum")
            cursor.execute("SELECT @@global.binlog_checksum")
            # The first event, a rotation, comes before the one that says whether events have checksums.
            self._has_checksum = str(cursor.fetchone()[0]).upper() != "NONE"
            cursor.execute(f"SET @master_heartbeat_period = {HEARTBEAT_NS}")
            cursor.execute(f"SET @source_heartbeat_period = {HEARTBEAT_NS}")
            cursor.execute("SET @mariadb_slave_capability = 4")
            if gtids:
                cursor.execute("SET @slave_connect_state = %s", (gtids,))
                cursor.execute("SET @slave_gtid_strict_mode = 0")
                cursor.execute("SET @slave_gtid_ignore_duplicates = 0")
        body = struct.pack("<I", server_id) + b"\0\0\0" + struct.pack("<HII", 0, 0, 0)
        self._command(REGISTER, body)
        self._connection._read_packet()

    def _command(self, number: int, body: bytes) -> None:
        self._connection._write_bytes(struct.pack("<I", len(body) + 1) + bytes([number]) + body)
        self._connection._next_seq_id = 1

    def _read_all(self) -> None:
        try:
            while True:
                packet = self._connection._read_packet()
                if packet.is_eof_packet():
                    raise RetriableError("the server ended the stream of the binary log")
                raw = bytes(packet.get_all_data()[1:])
                event = event_of(raw, checksum=self._has_checksum)
                if event.kind == FORMAT:
                    self._has_checksum = has_checksum(event, raw=raw)
                    event = event_of(raw, checksum=self._has_checksum)
                if event.kind == TRANSACTION_PAYLOAD:
                    for each in events_inside(event):
                        self._put(each)
                else:
                    self._put(event)
        except BaseException as error:
            self._put(error)

    def _put(self, item: Event | BaseException) -> None:
        while not self._is_closed.is_set():
            with contextlib.suppress(queue.Full):
                self._queue.put(item, timeout=0.2)
                return

    def read(self, wait_s: float) -> Event | None:
        """The next event, None if none came in time."""
        try:
            found = self._queue.get(timeout=wait_s) if wait_s > 0 else self._queue.get_nowait()
        except queue.Empty:
            return None
        if isinstance(found, BaseException):
            code = found.args[0] if found.args else None
            if code == PURGED:
                raise LogPurged(str(found.args[1] if len(found.args) > 1 else found))
            raise RetriableError(f"the stream of the binary log broke: {found}") from found
        return found

    def close(self) -> None:
        self._is_closed.set()
        with contextlib.suppress(OSError, AttributeError):
            self._connection._sock.shutdown(socket.SHUT_RDWR)
        self._thread.join(5)
        self._connection._force_close()


def gtid_request(server_id: int, gtids: str) -> bytes:
    """The body of COM_BINLOG_DUMP_GTID: everything that is not in the set."""
    from pymysqlreplication.gtid import GtidSet

    known = GtidSet(gtids)
    encoded: bytes = known.encoded()
    flags = 4  # through GTIDs
    head: bytes = struct.pack("<HII", flags, server_id, 0) + struct.pack("<QI", 4, len(encoded))
    return head + encoded
