"""Signals: wishes to a running connector, from a table, a topic or a file.

In: rows of the signal table, records of a topic whose key is the connector's prefix, lines of a file, each
with `id`, `type` and `data`. Out: `Signal` values. Does not know: what signals do.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from barnabas.connect.config import ConfigDef, Settings, at_least
from barnabas.connect.connectors.debezium.topic_log import TopicLog

log = logging.getLogger(__name__)
CHARS_MAX = 1_000_000
OPEN, CLOSE = "snapshot-window-open", "snapshot-window-close"
CHANNELS = ("source", "kafka", "file", "jmx")


@dataclass(frozen=True, slots=True)
class Signal:
    id: str
    type: str
    data: Mapping[str, Any] = field(default_factory=dict)


def signal_of(name: Any, kind: Any, data: Any) -> Signal:
    """A signal; data that is no JSON object counts as none."""
    found: Any = data
    if isinstance(data, str):
        try:
            found = json.loads(data[:CHARS_MAX]) if data else {}
        except ValueError:
            log.warning("the signal %s of type %s has data that is no JSON: %.200s", name, kind, data)
            found = {}
    return Signal(str(name), str(kind), found if isinstance(found, dict) else {})


def define_signals(settings: ConfigDef) -> ConfigDef:
    """Add the settings of signals and incremental snapshots."""
    texts = {
        "signal.data.collection": (None, "The table of signals: schema.table or database.table."),
        "signal.kafka.topic": (None, "The topic of signals; by default topic.prefix and -signal."),
        "signal.kafka.bootstrap.servers": (None, "Its brokers."),
        "signal.file": ("file-signals.txt", "The file of signals."),
    }
    for name, (default, doc) in texts.items():
        settings.define(name, "STRING", default, "MEDIUM", doc)
    doc = "Read chunks of incremental snapshots without writing into the table of signals."
    settings.define("read.only", "BOOLEAN", False, "LOW", doc)
    settings.define("signal.enabled.channels", "LIST", "source", "MEDIUM", "Channels: source, kafka, file.")
    for name, number in (("signal.poll.interval.ms", 5000), ("incremental.snapshot.chunk.size", 1024)):
        settings.define(name, "INT", number, "MEDIUM", "A whole number.", validator=at_least(1))
    return settings


def signal_errors(config: Mapping[str, str]) -> dict[str, list[str]]:
    channels = [
        each.strip() for each in config.get("signal.enabled.channels", "source").split(",") if each.strip()
    ]
    unknown = [each for each in channels if each not in CHANNELS]
    if unknown:
        return {"signal.enabled.channels": [f"{', '.join(unknown)}: known are {', '.join(CHANNELS)}"]}
    if "kafka" in channels and not config.get("signal.kafka.bootstrap.servers"):
        return {"signal.kafka.bootstrap.servers": ["it must be set for the channel kafka"]}
    return {}


class Channels:
    """Signals of the topic and the file; those of the table come with the stream."""

    def __init__(self, settings: Settings) -> None:
        self._prefix = settings.text("topic.prefix")
        channels = settings.entries("signal.enabled.channels")
        self._file = Path(settings.text("signal.file")) if "file" in channels else None
        self._topic: TopicLog | None = None
        if "kafka" in channels:
            given = settings.prefixed("signal.consumer.")
            properties = {
                name: value or ""
                for name, value in given.items()
                if name.startswith(("security.", "sasl.", "ssl."))
            }
            properties["bootstrap.servers"] = settings.text("signal.kafka.bootstrap.servers")
            self._topic = TopicLog(
                properties, settings.text("signal.kafka.topic") or f"{self._prefix}-signal"
            )
            self._topic.create({})
            self._topic.seek_to_end()
        self._interval_s = settings.integer("signal.poll.interval.ms") / 1000
        self._next_s = 0.0

    def read(self) -> list[Signal]:
        """New signals, looked for now and then."""
        if (self._topic is None and self._file is None) or time.monotonic() < self._next_s:
            return []
        self._next_s = time.monotonic() + self._interval_s
        found: list[Signal] = []
        if self._topic is not None:
            for key, value in self._topic.read():
                if key is not None and key.decode("utf-8", "replace").strip('"') == self._prefix and value:
                    found += parsed(value)
        if self._file is not None and self._file.exists() and self._file.stat().st_size:
            lines = self._file.read_bytes().splitlines()
            self._file.write_bytes(b"")  # as Debezium does: each line is read once
            for line in lines:
                found += parsed(line)
        return found

    def close(self) -> None:
        if self._topic is not None:
            self._topic.close()


def parsed(value: bytes) -> list[Signal]:
    try:
        found = json.loads(value[:CHARS_MAX])
        return [signal_of(found.get("id", ""), found["type"], found.get("data", {}))]
    except (ValueError, KeyError, AttributeError):
        log.warning("a signal is no JSON object with a type: %.200r", value)
        return []
