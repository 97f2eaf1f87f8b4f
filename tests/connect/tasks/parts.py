"""A plugin folder for tests: converters of text, a transform, sources and sinks whose doings are seen."""

from __future__ import annotations

import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from barnabas.client.core.topology import TopicPartition
from barnabas.connect.plugins import Plugins
from barnabas.connect.tasks.runner import TaskRunner
from barnabas.testing.waiting import wait_until

MODULE = "connect_test_parts"
SOURCE = textwrap.dedent(
    '''
    import pyarrow as pa, threading
    from types import SimpleNamespace as Made
    from barnabas.connect.config import ConfigDef
    from barnabas.connect.data import Column, Records, STRING
    from barnabas.connect.plugins import *

    class Text:
        def configure(self, config, is_key=False): pass
        def to_bytes(self, topic, column, headers=None):
            values = column.pylist()
            bad = {i: ValueError(f"cannot write {v}") for i, v in enumerate(values) if v == "unwritable"}
            data = [None if v is None else str(v).encode() for v in values]
            return Made(data=pa.array(data, pa.binary()), failures=bad)
        def from_bytes(self, topic, data, headers=None):
            values, bad = data.to_pylist(), {}
            for i, v in enumerate(values):
                if v == b"poison": bad[i] = ValueError("poison")
            good = [i for i in range(len(values)) if i not in bad]
            texts = [None if values[i] is None else values[i].decode() for i in good]
            return Made(parts=[(good, Column.of(texts, STRING))], failures=bad)

    class TextHeaders:
        def configure(self, config, is_key=False): pass
        def from_header(self, topic, name, data): return data, None
        def to_header(self, topic, name, value, schema): return value

    class Upper:
        def configure(self, config): pass
        def apply(self, records):
            values = records.values.pylist()
            if "bad" in values: raise ValueError("bad value")
            from dataclasses import replace
            return replace(records, values=Column.of([v.upper() for v in values], STRING))

    GATES = {}
    class CountTask(SourceTask):
        """Numbers from the stored offset up to a limit, some in each poll."""
        def start(self, context):
            self.context = context
            found = context.offsets.read([{"counter": context.config.get("counter", "c")}])[0]
            self.n = found["n"] if found else 0
        def poll(self):
            limit, step = int(self.context.config["limit"]), int(self.context.config.get("step", "10"))
            if self.n >= int(self.context.config.get("breaks.at", "1000000000")): raise OSError("it broke")
            stop = min(self.n + step, limit)
            if stop == self.n:
                self.context.stopping.wait(0.05)
                return None
            if self.context.connector in GATES: GATES[self.context.connector].wait()
            prefix = self.context.config.get("prefix", "")
            big = int(self.context.config.get("big", "-1"))  # the number of a record that is too large
            values = Column.of(
                [f"{prefix}{i}" + "x" * (5000 if i == big else 0) for i in range(self.n, stop)], STRING
            )
            self.n = stop
            position = ({"counter": self.context.config.get("counter", "c")}, {"n": stop})
            return Records.of(self.context.config["topic"], values, positions=[position])

    class Count(Connector):
        KIND = "source"
        task = CountTask

    SEEN = {}
    class RecordingTask(SinkTask):
        def start(self, context):
            self.context = context
            empty = {"put": [], "opened": [], "closed": [], "retry": 0, "flushed": []}
            SEEN.setdefault(context.connector, empty)
            self.seen = SEEN[context.connector]
        def open(self, partitions): self.seen["opened"] += list(partitions)
        def close(self, partitions): self.seen["closed"] += list(partitions)
        def put(self, records):
            if self.seen["retry"] > 0:
                self.seen["retry"] -= 1
                self.context.retry_after_ms(10)
                raise RetriableError("not now")
            if self.seen.pop("put fails", False): raise OSError("no space")
            gate = self.seen.pop("gate", None)
            if gate is not None: gate.wait()
            rows = list(records.rows())
            self.seen.setdefault("sizes", []).append(len(rows))
            bad = [i for i, r in enumerate(rows) if r.value == "errant"]
            if bad: self.context.errant(records, bad, ValueError("errant"))
            self.seen["put"] += [(r.partition, r.offset, r.value) for i, r in enumerate(rows) if i not in bad]
        def flush(self, offsets):
            if self.seen.pop("flush fails", False): raise ValueError("disk full")
            self.seen["flushed"].append(dict(offsets))

    class Recording(Connector):
        KIND = "sink"
        task = RecordingTask
    '''
)
CONVERTERS = {
    "key.converter": f"{MODULE}:Text",
    "value.converter": f"{MODULE}:Text",
    "header.converter": f"{MODULE}:TextHeaders",
}


def plugins_in(folder: Path) -> Plugins:
    (folder / f"{MODULE}.py").write_text(SOURCE)
    return Plugins([str(folder)])


def seen(connector: str) -> dict[str, Any]:
    import connect_test_parts  # type: ignore[import-not-found]

    found: dict[str, Any] = connect_test_parts.SEEN.get(connector, {"put": [], "opened": [], "closed": []})
    return found


def gates() -> dict[str, threading.Event]:
    """Sources that wait in `poll` until their event is set."""
    import connect_test_parts

    found: dict[str, threading.Event] = connect_test_parts.GATES
    return found


class States:
    """The states that a task told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str | None]] = []
        self._lock = threading.Lock()

    def __call__(self, state: str, trace: str | None) -> None:
        with self._lock:
            self.told.append((state, trace))

    @property
    def last(self) -> str:
        return self.told[-1][0] if self.told else ""

    @property
    def trace(self) -> str:
        return self.told[-1][1] or ""


def runner(bootstrap: str, folder: Path, **worker: str) -> TaskRunner:
    properties = {
        "bootstrap.servers": bootstrap,
        "group.id": "workers",
        "offset.flush.interval.ms": "200",
        **CONVERTERS,
        **{name.replace("_", "."): text for name, text in worker.items()},
    }
    return TaskRunner(properties, plugins_in(folder))


def until(condition: Callable[[], bool]) -> None:
    wait_until(condition, 60)  # brokers of a JVM on a busy machine are slow


__all__ = ["MODULE", "States", "TopicPartition", "runner", "seen", "until"]
