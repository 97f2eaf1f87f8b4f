"""What stands between clients and a broker: passes everything on, until answers are to be kept back.

In: where the broker listens. Out: an address for clients; after `keep_answers()` requests still arrive and
nobody hears of what became of them.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from types import TracebackType
from typing import Self

BYTES_MAX = 1 << 16


class Proxy:
    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._target = host, int(port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._keeps = threading.Event()
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def keep_answers(self) -> None:
        self._keeps.set()

    def pass_answers(self) -> None:
        self._keeps.clear()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                try:
                    broker = socket.create_connection(self._target)
                except OSError:
                    client.close()
                    continue
                self._open += [client, broker]
                for source, sink, is_answer in ((client, broker, False), (broker, client, True)):
                    threading.Thread(target=self._pass, args=(source, sink, is_answer), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket, is_answer: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(BYTES_MAX):
                if not (is_answer and self._keeps.is_set()):
                    sink.sendall(data)
        for each in (source, sink):  # whoever ends one side ends both
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for each in (self._listener, *self._open):
            each.close()
