"""Runbooks of docs/operations.md: their commands, run in order with the words filled in."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "operations.md"
WORD = re.compile(r"<([^<>]+)>")


def sections() -> dict[str, list[str]]:
    """The commands of each runbook, by its heading."""
    found: dict[str, list[str]] = {}
    heading = ""
    for line in PAGE.read_text().splitlines():
        if line.startswith("## "):
            heading = line.removeprefix("## ")
            found[heading] = []
        elif line.startswith("$ "):
            found[heading].append(line.removeprefix("$ "))
    return found


class Runbook:
    """`run` takes the next command of the page. Leave the block, and all commands must have run."""

    def __init__(self, heading: str, bootstrap: str) -> None:
        self._left = list(sections()[heading])
        self._environment = {**os.environ, "BARNABAS_BOOTSTRAP": bootstrap}

    def __enter__(self) -> Runbook:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        assert kind is not None or not self._left, f"not tried: {self._left}"

    def run(self, begins: str, *, status: int = 0, repeat: bool = False, **words: object) -> str:
        """Run the next command, which begins so. A word `server properties` is given as `server_properties`.
        With `repeat` the command stays the next one."""
        command = self._left[0]
        assert command.startswith(f"barnabas {begins}"), command
        if not repeat:
            self._left.pop(0)

        def value(match: re.Match[str]) -> str:
            return shlex.quote(str(words[re.sub(r"[ .-]", "_", match[1])]))

        _, *arguments = shlex.split(WORD.sub(value, command))
        done = subprocess.run(
            [sys.executable, "-m", "barnabas", *arguments],
            capture_output=True,
            text=True,
            env=self._environment,
            timeout=120,
        )
        assert done.returncode == status, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout
