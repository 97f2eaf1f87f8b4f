"""Runs tools in processes of their own, for tests that interrupt or kill them."""

from __future__ import annotations

import subprocess
import sys

Child = subprocess.Popen[bytes]


def start(children: list[Child], *arguments: str) -> Child:
    pipe = subprocess.PIPE
    command = [sys.executable, "-m", "barnabas", *arguments]
    child = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)
    children.append(child)
    return child
