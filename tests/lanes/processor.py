"""Seconds of processor time that a process and all its descendants have used, on Linux.

In: /proc. Out: a number that only grows, apart from processes that left the tree: one whose parent died is
adopted by init, and is lost with all its seconds.
Does not know: pytest.
"""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path

PROC = Path("/proc")


def seconds_of_tree(root: int | None = None) -> float:
    """Of this process, or of `root`, with every process below it, ended ones included. 0 where there is no
    /proc."""
    used: dict[int, int] = {}
    children: dict[int, list[int]] = defaultdict(list)
    for place in PROC.iterdir() if PROC.exists() else ():
        if place.name.isdigit():
            try:
                line = (place / "stat").read_bytes()
            except OSError:  # it has just ended
                continue
            fields = line.rpartition(b")")[2].split()
            children[int(fields[1])].append(int(place.name))
            used[int(place.name)] = sum(
                map(int, fields[11:15])
            )  # its own and those of children that it waited for
    tree = [root or os.getpid()]
    for process in tree:
        tree += children[process]
    return sum(used.get(process, 0) for process in tree) / os.sysconf("SC_CLK_TCK")
