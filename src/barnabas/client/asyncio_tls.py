"""TLS on the asyncio face: the client's side of the transport that listeners use too."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Any

from barnabas.security.tls.transport import TlsTransport, receive_memory


class ClientTransport(TlsTransport):
    """`ready` is done when the handshake is complete, and fails with its error."""

    __slots__ = ("_above", "ready")

    def __init__(self, context: ssl.SSLContext, above: asyncio.BufferedProtocol, host: str) -> None:
        loop = asyncio.get_running_loop()

        def run(work: Callable[[], Any]) -> asyncio.Future[Any]:
            return loop.run_in_executor(None, work)

        super().__init__(loop, context, run, receive_memory(loop), host)
        self._above = above
        self.ready: asyncio.Future[None] = loop.create_future()

    def examine(self, shaken: ssl.SSLObject) -> None:
        """OpenSSL has checked the broker's certificate and its name."""

    def shaken(self, examined: Any) -> asyncio.BufferedProtocol:
        if not self.ready.done():
            self.ready.set_result(None)
        return self._above

    def refused(self, error: BaseException | str | None) -> None:
        if not self.ready.done():
            is_error = isinstance(error, Exception)
            self.ready.set_exception(error if is_error else ssl.SSLEOFError())  # type: ignore[arg-type]

    def gone(self) -> None:
        """Nothing was promised to anybody but `ready`."""
