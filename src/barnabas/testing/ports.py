"""Ports for the brokers of tests, which no other test run on this machine uses.

An outgoing connection may use any port of the ephemeral range while a broker restarts, so these ports lie
below that range. Each process claims blocks of them with an abstract socket name, which the kernel releases
when the process ends. Systems without abstract names (macOS) only check that the port is free now.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from itertools import islice

FIRST, BLOCK, BLOCKS = 14_000, 100, 180  # 14000 to 31999; Linux's ephemeral ports begin at 32768
BLOCKS_MAX = 8  # of one process, which then uses its first ports again

_lock = threading.Lock()
_ports: Iterator[int] | None = None
_owner = 0


def free_ports(count: int) -> list[int]:
    """Return `count` different free ports."""
    global _ports, _owner
    with _lock:
        if _ports is None or _owner != os.getpid():  # a forked child claims its own
            _ports, _owner = _endless_ports(), os.getpid()
        found: dict[int, None] = {}
        for port in islice(_ports, 2 * BLOCK * BLOCKS_MAX):  # each port of this process at least once
            if len(found) == count:
                return list(found)
            if port not in found and _is_free(port):
                found[port] = None
        raise RuntimeError(f"only {len(found)} of {count} ports are free")


def claim(name: str) -> bool:
    """Claim a name until this process ends. False if another process has it."""
    taken = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        taken.bind(f"\0barnabas-testing-{name}")
    except OSError:
        taken.close()
        return False
    taken.detach()  # open until this process ends
    return True


def _endless_ports() -> Iterator[int]:
    blocks: list[int] = []
    start = os.getpid() * 7
    for turn in range(BLOCKS):
        if len(blocks) == BLOCKS_MAX:
            break
        block = (start + turn) % BLOCKS
        if _claim_block(block):
            blocks.append(block)
            yield from _ports_of(block)
    if not blocks:
        raise RuntimeError(f"all {BLOCKS} blocks of test ports are claimed by other processes")
    while True:
        for block in blocks:
            yield from _ports_of(block)


def _claim_block(block: int) -> bool:
    return not hasattr(socket, "SO_PASSCRED") or claim(f"ports-{block}")  # SO_PASSCRED: Linux


def _ports_of(block: int) -> range:
    return range(FIRST + block * BLOCK, FIRST + (block + 1) * BLOCK)


def _is_free(port: int) -> bool:
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as a starting broker does
        try:
            tried.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
