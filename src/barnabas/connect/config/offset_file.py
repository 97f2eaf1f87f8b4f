"""The offset file of a standalone worker: a line of JSON for each offset, key and value in base64.

In: changes by key. Out: the file, replaced as a whole under a lock that tasks and REST share, so that neither
loses what the other wrote. A map that Java serialized is refused.
"""

from __future__ import annotations

import base64
import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path

from barnabas.connect.config.errors import ConfigError

JAVA = b"\xac\xed"
_lock = threading.Lock()


def read_offset_file(path: Path) -> dict[bytes, bytes]:
    """Keys and values of the file; none where there is no file."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return {}
    if data[:2] == JAVA:
        raise ConfigError(
            f"{path} was written by an Apache worker in Java's own format: move it away, start, stop each "
            "connector, and set its offsets with PATCH /connectors/NAME/offsets"
        )
    found = {}
    for number, line in enumerate(data.splitlines(), 1):
        try:
            key, value = json.loads(line)
            found[base64.b64decode(key)] = base64.b64decode(value)
        except (ValueError, TypeError):
            raise ConfigError(
                f"{path} line {number} is not an offset: a line is a JSON list of key and value in base64"
            ) from None
    return found


def change_offset_file(path: Path, changes: Mapping[bytes, bytes | None]) -> None:
    """Set or remove offsets; those of other connectors stay."""
    with _lock:
        held = read_offset_file(path)
        for key, value in changes.items():
            if value is None:
                held.pop(key, None)
            else:
                held[key] = value
        lines = (
            json.dumps([base64.b64encode(each).decode() for each in pair], separators=(",", ":"))
            for pair in held.items()
        )
        beside = path.with_name(path.name + ".new")
        with beside.open("w") as file:
            file.write("".join(f"{line}\n" for line in lines))
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
