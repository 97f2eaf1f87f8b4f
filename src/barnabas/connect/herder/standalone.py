"""A single worker: configurations and statuses in memory, offsets in a file; connectors from files."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from barnabas.connect.config.offset_file import change_offset_file, read_offset_file
from barnabas.connect.herder.errors import Refused
from barnabas.connect.herder.herder import Herder
from barnabas.connect.herder.offsets import Offsets
from barnabas.connect.herder.states import Target, TaskRunner
from barnabas.connect.plugins import Plugins
from barnabas.settings.properties import parse, text_of

FILE_BYTES_MAX = 16 * 1024 * 1024
TARGETS = {"RUNNING": Target.STARTED, "PAUSED": Target.PAUSED, "STOPPED": Target.STOPPED}


class StandaloneHerder(Herder):
    def __init__(
        self, worker: Mapping[str, str], worker_id: str, plugins: Plugins, runner: TaskRunner
    ) -> None:
        super().__init__(worker, worker_id, plugins, runner)
        self._path = Path(worker["offset.storage.file.filename"])
        self.offsets = loaded(self._path)

    async def offsets_of(self, name: str) -> Offsets:
        self.offsets = await asyncio.to_thread(loaded, self._path)
        return self.offsets

    async def write_offsets(self, name: str, changes: Sequence[tuple[bytes, bytes | None]]) -> None:
        await super().write_offsets(name, changes)
        await asyncio.to_thread(change_offset_file, self._path, dict(changes))


def loaded(path: Path) -> Offsets:
    found = Offsets()
    for key, value in read_offset_file(path).items():
        found.apply(key, value)
    return found


def connector_file(path: Path) -> tuple[str, dict[str, str | None], Target | None]:
    """The connector of a file: properties, JSON of a flat map, or JSON as POST /connectors takes it.
    Refused says what is wrong with it."""
    data = path.read_bytes()
    if len(data) > FILE_BYTES_MAX:
        raise Refused(400, f"the file is larger than {FILE_BYTES_MAX} bytes")
    found: Any
    try:
        found = json.loads(data)
    except ValueError:
        found = parse(text_of(data))
    target = None
    if isinstance(found, dict) and isinstance(found.get("config"), dict):
        state = found.get("initial_state")
        if state is not None and str(state).upper() not in TARGETS:
            raise Refused(400, f"initial_state must be one of {', '.join(TARGETS)}")
        target = TARGETS[str(state).upper()] if state is not None else None
        found = {"name": found.get("name"), **found["config"]}
    if not isinstance(found, dict) or not found.get("name"):
        raise Refused(400, "the file names no connector: it needs the property name")
    config = {name: setting_text(name, value) for name, value in found.items()}
    return str(config["name"]), config, target


def setting_text(name: str, value: object) -> str | None:
    """A value of JSON as the text of a setting. A null stays, and the check of the connector refuses it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None or isinstance(value, str | int | float):
        return None if value is None else str(value)
    raise Refused(400, f"{name} must be a text, a number or a boolean, not {json.dumps(value)[:100]}")
