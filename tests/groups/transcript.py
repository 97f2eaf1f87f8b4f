"""Transcripts: commands, `----`, what they answered. BARNABAS_REWRITE=1 writes down what they answer now.

A file is a list of blocks, separated by blank lines. Lines that start with `#` are for the reader.
"""

import os
from collections.abc import Callable
from pathlib import Path

SEPARATOR = "----"


def replay(path: Path, answer: Callable[[str, dict[str, str]], str]) -> None:
    """Give every command to `answer(verb, arguments)` and compare; arguments are written name=value."""
    before = path.read_text()
    blocks = [_replay_block(block, answer) for block in before.strip().split("\n\n")]
    after = "\n\n".join(blocks) + "\n"
    if os.environ.get("BARNABAS_REWRITE") == "1":
        path.write_text(after)
    assert after == before


def _replay_block(block: str, answer: Callable[[str, dict[str, str]], str]) -> str:
    lines = block.split("\n")
    head = lines[: lines.index(SEPARATOR)] if SEPARATOR in lines else lines
    commands = [line for line in head if not line.startswith("#")]
    if not commands:
        return block
    answers = []
    for command in commands:
        verb, *words = command.split()
        answers.append(answer(verb, dict(word.split("=", 1) for word in words)))
    return "\n".join([*head, SEPARATOR, *(said for said in answers if said)])
