"""Free TCP ports of this machine: for listeners that nobody has to know beforehand.

Out: ports that nobody listens on at the moment of asking, all different. Another process may be quicker to
use one: good for tests and for one-machine nodes, not for anything that must not fail.
"""

import socket


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on, all different."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]
    finally:
        for each in sockets:
            each.close()
