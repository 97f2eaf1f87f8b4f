"""The source of object stores and folders: reads what the objects sink wrote, or files of others.

Files of one folder and partition are read in the order of their first offsets; the offset of such a lane is
the last file and how many of its records are read. Keys and headers come from the files beside. Lanes are
shared among tasks. Does not know: topics, converters.
"""

from __future__ import annotations

import hashlib
import logging
import re
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import pyarrow as pa
from fastavro.schema import SchemaParseException

from barnabas.connect.config import ConfigDef
from barnabas.connect.connectors.objects.companions import headers_in, keys_in
from barnabas.connect.connectors.objects.formats import EXTENSIONS, Format
from barnabas.connect.connectors.objects.object_settings import HEADERS, KEYS
from barnabas.connect.connectors.objects.reading import Rows
from barnabas.connect.connectors.objects.source_settings import SourcePlan, definitions, plan_of
from barnabas.connect.connectors.stores.checks import errors_of
from barnabas.connect.data import DataError, Records
from barnabas.connect.plugins import ConnectError, Connector, SourceContext, SourceTask

log = logging.getLogger("barnabas.connect")

TASK, TASKS = "barnabas.objects.task", "barnabas.objects.tasks"
COMPANION = re.compile(rf"\.({KEYS}|{HEADERS})\.")
BROKEN = (
    pa.ArrowException,
    DataError,
    ValueError,
    EOFError,
    KeyError,
    OSError,
    StopIteration,
    SchemaParseException,
    zlib.error,
)


@dataclass(slots=True)
class Lane:
    """Files that are read one after the other."""

    topic: str
    folder: str
    partition: int | None
    files: list[str] = field(default_factory=list)

    @property
    def source(self) -> dict[str, Any]:
        found: dict[str, Any] = {"topic": self.topic, "folder": self.folder}
        return found if self.partition is None else {**found, "partition": self.partition}


@dataclass(slots=True)
class OpenFile:
    lane: Lane
    name: str
    values: Rows
    keys: Rows | None
    headers: Rows | None
    done: int

    def ahead(self) -> int:
        """How many records can be read at once; 0 at the end."""
        parts = [each.ahead() for each in (self.values, self.keys, self.headers) if each is not None]
        if not all(parts) and any(parts):
            raise ValueError(f"behind record {self.done} it has not as many values as keys or headers")
        return min(parts)

    def close(self) -> None:
        for each in (self.values, self.keys, self.headers):
            if each is not None:
                each.close()


class ObjectSourceTask(SourceTask):
    def start(self, context: SourceContext) -> None:
        super().start(context)
        self._plan: SourcePlan = plan_of(context.settings)
        self._mine = int(context.config.get(TASK, "0")), int(context.config.get(TASKS, "1"))
        self._reached: dict[str, dict[str, Any]] = {}  # by lane
        self._waiting: Iterator[OpenFile] = iter(())
        self._open: OpenFile | None = None
        self._not_before = 0.0

    def poll(self) -> Records | None:
        if (found := self._read_on()) is not None:
            return found
        wait_s = self._not_before - time.monotonic()
        if wait_s > 0:
            self.context.stopping.wait(min(wait_s, self.context.poll_seconds))
            return None
        self._not_before = time.monotonic() + self._plan.interval_s
        self._waiting = self._unread()
        return self._read_on()

    def stop(self) -> None:
        if getattr(self, "_open", None) is not None:
            self._close()
        if hasattr(self, "_plan"):
            self._plan.storage.close()

    def _read_on(self) -> Records | None:
        """Records of the files that are known; None if all are read."""
        while True:
            if self._open is None:
                self._open = next(self._waiting, None)
            if (file := self._open) is None:
                return None
            try:
                if count := min(self._plan.batch, file.ahead()):
                    return self._batch(file, count)
            except BROKEN as error:
                self._close()
                self._leave_out(file.name, error)
            else:
                self._close()

    def _close(self) -> None:
        assert self._open is not None
        self._open.close()
        self._open = None

    def _batch(self, file: OpenFile, count: int) -> Records:
        lane = file.lane
        file.done += count
        offset = {"file": file.name, "records": file.done}
        self._reached[key_of(lane)] = offset
        keeps = self._plan.keeps_partitions and lane.partition is not None
        return Records.of(
            lane.topic,
            file.values.take(count),
            None if file.keys is None else file.keys.take(count),
            partitions=[lane.partition] * count if keeps else None,
            headers=None if file.headers is None else file.headers.take(count),
            positions=[(lane.source, offset)],
        )

    # -- files ---------------------------------------------------------------------------------------------

    def _unread(self) -> Iterator[OpenFile]:
        """Files that have records which were not read, lane after lane."""
        lanes = self._lanes()
        unknown = [each for each in lanes if key_of(each) not in self._reached]
        for lane, offset in zip(
            unknown, self.context.offsets.read([each.source for each in unknown]), strict=True
        ):
            if offset is not None:
                self._reached[key_of(lane)] = dict(offset)
        for lane in lanes:
            at = self._reached.get(key_of(lane))
            names = lane.files
            done = 0
            if at is not None:
                order = self._order(str(at["file"]))
                names = [each for each in lane.files if self._order(each) >= order]
                done = int(at["records"])
            for name in names:
                skip = done if at is not None and name == at["file"] else 0
                if self.context.stopping.is_set():
                    return
                found = self._opened(lane, name, skip)
                if found is not None:
                    yield found

    def _opened(self, lane: Lane, name: str, skip: int) -> OpenFile | None:
        """A file behind the records that were read already; None if there are no others."""
        plan = self._plan
        beside = self._beside.get(name, {})
        found = OpenFile(lane, name, self._rows(plan.form, name), None, None, skip)
        try:
            if KEYS in beside:
                found.keys = self._rows(plan.parts[KEYS], beside[KEYS], keys_in)
            if HEADERS in beside:
                found.headers = self._rows(plan.parts[HEADERS], beside[HEADERS], headers_in)
            for each in (found.values, found.keys, found.headers):
                if each is not None:
                    each.skip(skip)
            if found.ahead():
                return found
        except BROKEN as error:
            found.close()
            self._leave_out(name, error)
        except BaseException:
            found.close()
            raise
        found.close()
        return None

    def _rows(self, form: Format, name: str, change: Any = None) -> Rows:
        return Rows(replace(form, gzipped=name.endswith(".gz")), self._plan.storage.open(name), change)

    def _leave_out(self, name: str, error: Exception) -> None:
        """The rest of a file cannot be read: leave it out, or fail."""
        if not self._plan.skips_errors:
            raise ConnectError(
                f"the file {name} cannot be read as {self._plan.form.name}: {error}."
                " behavior.on.error=ignore leaves such files out"
            ) from error
        log.error("the file %s is left out (behavior.on.error=ignore): %s", name, error)

    def _lanes(self) -> list[Lane]:
        plan = self._plan
        folder = "" if plan.generic else plan.topics_dir
        names = plan.storage.names(folder)
        recent = set(plan.storage.names(folder, plan.since_ms)) if plan.since_ms else None
        self._beside: dict[str, dict[str, str]] = {}
        lanes: dict[tuple[str, str, int | None], Lane] = {}
        by_stem: dict[str, str] = {}
        for name in names:
            if COMPANION.search(name.rpartition("/")[2]):
                continue
            place = self._place(name)
            if place is not None and (recent is None or name in recent):
                lanes.setdefault(place, Lane(*place)).files.append(name)
                by_stem[stem_of(name, plan.form.own_extension)] = name
        for name in names:
            found = COMPANION.search(name.rpartition("/")[2])
            if found and (value := by_stem.get(name[: name.rindex(found[0])])):
                self._beside.setdefault(value, {})[found[1]] = name
        mine, count = self._mine
        own = [each for each in lanes.values() if share_of(each, count) == mine]
        for lane in own:
            lane.files.sort(key=self._order)
        return sorted(own, key=key_of)

    def _place(self, name: str) -> tuple[str, str, int | None] | None:
        folder, _, base = name.rpartition("/")
        if self._plan.generic:
            for topic, pattern in self._plan.generic:
                if pattern.fullmatch(name):
                    return topic, folder, None
            return None
        found = self._plan.name.fullmatch(base)
        if found is None or folder.split("/")[: self._plan.topics_dir.count("/") + 2][-1] != found["topic"]:
            return None
        return found["topic"], folder, int(found["partition"])

    def _order(self, name: str) -> tuple[int, str]:
        found = None if self._plan.generic else self._plan.name.fullmatch(name.rpartition("/")[2])
        return (int(found["start"]) if found else 0, name)


def stem_of(name: str, own_extension: str = "") -> str:
    """A name without its extensions."""
    name = name.removesuffix(".gz")
    for extension in filter(None, (own_extension, *EXTENSIONS.values())):
        if name.endswith(extension):
            name = name.removesuffix(extension)
            if extension == EXTENSIONS["parquet"]:
                name = re.sub(r"\.(snappy|gzip|zstd|lz4|brotli)$", "", name)
            return name
    return name


def key_of(lane: Lane) -> str:
    return f"{lane.topic}\0{lane.folder}\0{lane.partition}"


def share_of(lane: Lane, tasks: int) -> int:
    return int.from_bytes(hashlib.sha256(key_of(lane).encode()).digest()[:8]) % tasks


class S3SourceConnector(Connector):
    KIND = "source"
    JAVA_NAMES: ClassVar[tuple[str, ...]] = ("io.confluent.connect.s3.source.S3SourceConnector",)
    CONFIG: ClassVar[ConfigDef] = definitions(for_hdfs=False)
    task = ObjectSourceTask

    def check(self, config: Mapping[str, str]) -> dict[str, list[str]]:
        return errors_of(self.CONFIG, config, plan_of)

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        shared = {**self.context.config, TASKS: str(max_tasks)}
        return [{**shared, TASK: str(number)} for number in range(max_tasks)]

    def exactly_once_support(self, config: Mapping[str, str]) -> bool:
        return True

    def alter_offsets(self, config: Mapping[str, str], offsets: Sequence[tuple[Any, Any]]) -> bool:
        for partition, offset in offsets:
            if not isinstance(partition, Mapping) or not {"topic", "folder"} <= set(partition):
                raise ConnectError(
                    f'a partition looks like {{"topic", "folder", "partition"}}, not {partition!r}'
                )
            if offset is not None and not (
                isinstance(offset, Mapping)
                and isinstance(offset.get("file"), str)
                and isinstance(offset.get("records"), int)
            ):
                raise ConnectError(f'an offset looks like {{"file": name, "records": 5}}, not {offset!r}')
        return True


class HdfsSourceConnector(S3SourceConnector):
    JAVA_NAMES = ("io.confluent.connect.hdfs3.Hdfs3SourceConnector",)
    CONFIG = definitions(for_hdfs=True)
