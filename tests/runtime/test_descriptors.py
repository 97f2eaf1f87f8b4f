"""How a node divides its descriptors: the reserve and every share have a floor, files and peers a ceiling."""

from __future__ import annotations

import pytest

from barnabas.runtime.descriptors import UNLIMITED, Shares


@pytest.mark.parametrize(
    ("limit", "reserve", "peers", "files", "clients"),
    [
        (64, 56, 16, 32, 16),  # too few for the floors: they count all the same
        (256, 56, 16, 92, 92),
        (1_024, 128, 64, 416, 416),
        (4_096, 512, 256, 1_664, 1_664),
        (65_536, 1_024, 1_024, 31_744, 31_744),
        (UNLIMITED, 1_024, 1_024, 100_000, 897_952),
    ],
)
def test_a_limit_is_divided(limit: int, reserve: int, peers: int, files: int, clients: int) -> None:
    found = Shares.of(limit)
    assert (found.limit, found.reserve, found.files) == (limit, reserve, files)
    assert (found.peers.limit, found.clients.limit) == (peers, clients)
