"""Connections of outlets: a TCP connection that is opened when needed, and a UDP socket that packs lines.

In: bytes, lines. Out: the same on the network. Both block for a bounded time and raise OSError; the next call
begins anew. Does not know: formats.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable

CONNECT_S_MAX = 5.0
SEND_S_MAX = 10.0
DATAGRAM_BYTES_MAX = 1432  # fits into one Ethernet frame


class TcpConnection:
    def __init__(self, host: str, port: int) -> None:
        self._address = host, port
        self._socket: socket.socket | None = None

    def send(self, data: bytes) -> None:
        """Send all bytes. After an error the receiver may have got a part of them."""
        if self._socket is not None and is_closed_by_peer(self._socket):
            self.close()
        if self._socket is None:
            try:
                self._socket = socket.create_connection(self._address, timeout=CONNECT_S_MAX)
            except OSError as error:
                raise OSError(f"cannot connect to {self._address[0]}:{self._address[1]}: {error}") from error
            self._socket.settimeout(SEND_S_MAX)
        try:
            self._socket.sendall(data)
        except OSError as error:
            self.close()
            raise OSError(f"{self._address[0]}:{self._address[1]} took no data: {error}") from error

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def is_closed_by_peer(connection: socket.socket) -> bool:
    """Whether the receiver closed the connection: bytes sent to it would be lost without an error."""
    connection.setblocking(False)
    try:
        return not connection.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except OSError:
        return True
    finally:
        connection.settimeout(SEND_S_MAX)


class Datagrams:
    """Lines in as few datagrams as possible. Nobody acknowledges them."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._socket: socket.socket | None = None

    def send(self, lines: Iterable[bytes]) -> None:
        waiting: list[bytes] = []
        size = 0
        for line in lines:
            if size + len(line) + 1 > DATAGRAM_BYTES_MAX and waiting:
                self._send(b"\n".join(waiting))
                waiting, size = [], 0
            waiting.append(line)
            size += len(line) + 1
        if waiting:
            self._send(b"\n".join(waiting))

    def _send(self, datagram: bytes) -> None:
        if self._socket is None:
            family, kind, protocol, _, address = socket.getaddrinfo(
                self._host, self._port, type=socket.SOCK_DGRAM
            )[0]
            found = socket.socket(family, kind, protocol)
            found.connect(address)
            self._socket = found
        try:
            self._socket.send(datagram)
        except ConnectionRefusedError:
            pass  # nobody listened to the last datagram; the server may be there for the next one
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
