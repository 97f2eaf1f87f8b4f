"""Free TCP ports of this machine, for listeners without a configured port.

Out: different ports that are free now. Another process may bind one before the caller does. So this is for
tests and clusters on one machine, not for production.
"""

import socket


def free_ports(count: int) -> list[int]:
    """Return `count` different free ports."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]
    finally:
        for each in sockets:
            each.close()
