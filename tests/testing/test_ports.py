"""Ports of tests: different ones for every process, and below those that outgoing connections take."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from barnabas.testing import ports
from barnabas.testing.ports import BLOCK, BLOCKS_MAX, claim, free_ports

ASK = "from barnabas.testing.ports import free_ports; print(*free_ports(150), flush=True); input()"


def test_processes_that_live_at_once_are_given_different_ports() -> None:
    children = [
        subprocess.Popen([sys.executable, "-c", ASK], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(4)
    ]
    given = []
    for child in children:
        assert child.stdout is not None
        given += child.stdout.readline().split()
    for child in children:
        child.communicate(b"\n")

    assert len(given) == len(set(given)) == 4 * 150


def test_a_port_that_is_in_use_is_not_given() -> None:
    taken = free_ports(1)[0]
    with socket.create_server(("127.0.0.1", taken)):
        everything = set[int]()
        for _ in range(2 * BLOCKS_MAX):  # all that this process will claim, and those again
            everything.update(free_ports(BLOCK))
        assert taken not in everything


def test_more_ports_than_there_are_are_refused() -> None:
    with pytest.raises(RuntimeError, match="ports are free"):
        free_ports(BLOCK * BLOCKS_MAX + 1)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads Linux's setting")
def test_no_outgoing_connection_takes_such_a_port() -> None:
    ephemeral = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()

    assert int(ephemeral[0]) >= ports.FIRST + ports.BLOCK * ports.BLOCKS


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs abstract socket names")
def test_a_claim_is_released_when_its_process_ends() -> None:
    name = f"a-test-{os.getpid()}"
    program = f"from barnabas.testing.ports import claim; print(claim({name!r}), flush=True); input()"
    child = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None and child.stdout.readline() == b"True\n"

    assert not claim(name)
    child.communicate(b"\n")
    assert claim(name)
