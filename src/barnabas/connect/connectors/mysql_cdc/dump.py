"""The stream of the binary log, as a replica reads it, through PyMySQL's connection.

Out: events as they come, None if none came in time. A thread reads, because the driver cannot wait for a
limited time; number and bytes of the events between are bounded. Does not know: what events mean.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from barnabas.connect.connectors.debezium.runs import BYTES_DEFAULT
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
        bytes_max: int = BYTES_DEFAULT,
    ) -> None:
        self._bytes_max = bytes_max
        self._connection = connect()
        self._waiting: deque[Event | BaseException] = deque()
        self._bytes = 0
        self._is_closed = False
        self._changed = threading.Condition()
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
        with self._changed:
            self._changed.wait_for(self._has_room)
            self._waiting.append(item)
            self._bytes += size_of(item)
            self._changed.notify()

    def _has_room(self) -> bool:
        return self._is_closed or (len(self._waiting) < EVENTS_MAX and self._bytes < self._bytes_max)

    def read(self, wait_s: float) -> Event | None:
        """The next event, None if none came in time."""
        with self._changed:
            if not self._changed.wait_for(lambda: bool(self._waiting), max(wait_s, 0)):
                return None
            found = self._waiting.popleft()
            self._bytes -= size_of(found)
            self._changed.notify()
        if isinstance(found, BaseException):
            code = found.args[0] if found.args else None
            if code == PURGED:
                raise LogPurged(str(found.args[1] if len(found.args) > 1 else found))
            raise RetriableError(f"the stream of the binary log broke: {found}") from found
        return found

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        with contextlib.suppress(OSError, AttributeError):
            self._connection._sock.shutdown(socket.SHUT_RDWR)
        self._thread.join(5)
        self._connection._force_close()


def size_of(item: Event | BaseException) -> int:
    return len(item.body) if isinstance(item, Event) else 0


def gtid_request(server_id: int, gtids: str) -> bytes:
    """The body of COM_BINLOG_DUMP_GTID: everything that is not in the set."""
    from pymysqlreplication.gtid import GtidSet

    known = GtidSet(gtids)
    encoded: bytes = known.encoded()
    flags = 4  # through GTIDs
    head: bytes = struct.pack("<HII", flags, server_id, 0) + struct.pack("<QI", 4, len(encoded))
    return head + encoded
