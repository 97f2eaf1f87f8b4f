"""The socket port: binds and listens. A simulation replaces it.

In: a host (empty: every interface) and a port (0: any free one). Out: a bound socket, and an acceptor of its
connections. Failures are `OSError` with a readable reason.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable

from barnabas.runtime.accepting import Acceptor, Arrival, SocketAcceptor

PROBE_SECONDS_MAX = 1.0


class Sockets:
    """The sockets of the operating system."""

    def bind(self, host: str, port: int) -> socket.socket:
        """Bind an address at once, so that a second node fails before it changes any file."""
        # No host means every interface, for IPv6 and IPv4 if the operating system supports both.
        everywhere = "::" if not host and socket.has_dualstack_ipv6() else host
        family = socket.AF_INET6 if ":" in everywhere else socket.AF_INET
        bound = socket.socket(family, socket.SOCK_STREAM)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if everywhere == "::":
                bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if not host else 1)
            bound.bind((everywhere, port))
            if port and is_taken(host, port):
                raise OSError(errno.EADDRINUSE, "another process listens there")
        except BaseException:
            bound.close()
            raise
        return bound

    def listen(
        self,
        bound: socket.socket,
        backlog: int,
        on_connection: Callable[[Arrival], None],
        on_turned_away: Callable[[], None],
    ) -> Acceptor:
        """Accept connections on a socket that is bound already."""
        return SocketAcceptor(bound, backlog, on_connection, on_turned_away)

    def host_name(self) -> str:
        """The fully qualified name of this machine."""
        return socket.getfqdn()


def is_taken(host: str, port: int) -> bool:
    """Whether a process accepts connections there (two processes may both bind before one of them
    listens)."""
    reachable = host if host not in ("", "0.0.0.0") else "127.0.0.1"
    family = socket.AF_INET6 if ":" in reachable else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.settimeout(PROBE_SECONDS_MAX)
        return probe.connect_ex((reachable, port)) == 0


REAL_SOCKETS = Sockets()
