"""Tail: the lines of growing log files become records, through every rotation (`tail`).

Settings: `file` (one or more paths), `topic`. Offsets: `{"file": path}` -> inode, position and hashes of the
bytes that were read, so that the place is found again in a renamed, copied or compressed file.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from barnabas.connect.config import ConfigDef, at_least, non_empty, non_empty_list, one_of
from barnabas.connect.connectors.files.lines import LineTooLong
from barnabas.connect.connectors.files.rotated import Place
from barnabas.connect.connectors.files.tail import Tail
from barnabas.connect.data import STRING, Column, Records
from barnabas.connect.plugins import ConnectError, Connector, SourceContext, SourceTask

IDLE_SECONDS = 0.2  # between looks at files that are quiet


class TailSourceTask(SourceTask):
    def start(self, context: SourceContext) -> None:
        super().start(context)
        settings = context.settings
        self._topic = settings.text("topic")
        self._lines_max = settings.integer("batch.size")
        self._tails: dict[str, Tail] = {}
        names = settings.entries("file")
        offsets = context.offsets.read([{"file": name} for name in names])
        wait_s, from_end = settings.integer("rotate.wait.ms") / 1000, settings.text("start.from") == "end"
        for name, offset in zip(names, offsets, strict=True):
            try:
                place = None if offset is None else Place.of_offset(offset)
            except (KeyError, TypeError, ValueError) as error:
                raise ConnectError(f"the stored offset of {name} is no place in a log: {offset!r}") from error
            self._tails[name] = Tail(Path(name), place, wait_s, from_end)

    def poll(self) -> Records | None:
        deadline = time.monotonic() + self.context.poll_seconds
        while not self.context.stopping.is_set():
            for name, tail in list(self._tails.items()):
                try:
                    lines = tail.next_lines(self._lines_max)
                except LineTooLong as error:
                    raise ConnectError(f"{name}: {error}") from None
                except PermissionError as error:
                    raise ConnectError(f"{name} cannot be read: {error.strerror}") from error
                if lines is None:
                    continue
                self._tails[name] = self._tails.pop(name)  # the other files come first next time
                now = pa.repeat(pa.scalar(int(time.time() * 1000), pa.int64()), len(lines.texts))
                return Records.of(
                    self._topic,
                    Column(STRING, lines.texts),
                    timestamps=now,
                    positions=[({"file": name}, tail.place().offset())],
                )
            if time.monotonic() >= deadline:
                return None
            self.context.stopping.wait(IDLE_SECONDS)
        return None

    def stop(self) -> None:
        for tail in getattr(self, "_tails", {}).values():
            tail.close()


class TailSourceConnector(Connector):
    KIND = "source"
    CONFIG: ClassVar[ConfigDef] = (
        ConfigDef()
        .define(
            "file", "LIST", importance="HIGH", doc="The logs to follow: paths.", validator=non_empty_list()
        )
        .define("topic", "STRING", importance="HIGH", doc="The topic of the records.", validator=non_empty())
        .define(
            "start.from",
            "STRING",
            "beginning",
            "MEDIUM",
            "Where a log begins that has no offset yet: beginning or end.",
            validator=one_of("beginning", "end"),
        )
        .define(
            "rotate.wait.ms",
            "LONG",
            5000,
            "LOW",
            "How long a renamed log must be quiet before the next one begins.",
            validator=at_least(0),
        )
        .define("batch.size", "INT", 2000, "LOW", "How many lines one poll returns.", validator=at_least(1))
    )
    task = TailSourceTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """The logs, shared among the tasks."""
        names = self.settings.entries("file")
        shares = [names[start::max_tasks] for start in range(min(max_tasks, len(names)))]
        return [{**self.context.config, "file": ",".join(share)} for share in shares]

    def exactly_once_support(self, config: Mapping[str, str]) -> bool:
        return True
