"""The source of Redis streams: each entry becomes a record, and its id is the offset.

Offsets: `{"stream": name}` -> `{"id": "1700000000000-0"}`. With a consumer group Redis remembers what was
read, and shares streams among tasks. Records have the id as key and the entry as value: `id`, `stream` and
`body`, a map of its fields.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import redis

from barnabas.connect.config import ConfigDef, at_least, non_empty, non_empty_list, one_of
from barnabas.connect.connectors.redis.redis_settings import (
    DENIED,
    address_errors,
    client_of,
    define_address,
    is_away,
    wants_cluster,
)
from barnabas.connect.connectors.redis.stream_groups import Entries, GroupReader
from barnabas.connect.data import BYTES, STRING, Column, Records, Schema, mapping, struct
from barnabas.connect.plugins import (
    ConnectError,
    Connector,
    RetriableError,
    SourceContext,
    SourceTask,
)
from barnabas.connect.plugins.tasks import Positions

ID = re.compile(r"\d{1,20}(-\d{1,20})?")
NAME = "barnabas.redis.StreamEntry"


def entry_schema(form: str) -> Schema:
    body = mapping(STRING, BYTES if form == "bytes" else STRING)
    return struct(name=NAME, id=STRING, stream=STRING, body=body)


class RedisStreamSourceTask(SourceTask):
    def start(self, context: SourceContext) -> None:
        super().start(context)
        settings = context.settings
        self._topic = settings.text("topic")
        self._count = settings.integer("redis.stream.count")
        self._form = settings.text("redis.value.format")
        self._schema = entry_schema(self._form)
        self._trims = settings.flag("redis.stream.trim")
        names = settings.entries("redis.stream.name")
        stored = context.offsets.read([{"stream": name} for name in names])
        first = settings.text("redis.stream.offset")
        self._ids = {
            name: first if offset is None else id_of(offset)
            for name, offset in zip(names, stored, strict=True)
        }
        self._group: GroupReader | None = None
        if group := settings.text("redis.stream.consumer.group"):
            self._group = GroupReader(
                group,
                settings.text("redis.stream.consumer.name").replace("${task}", str(context.task)),
                names,
                first,
                idle_ms=settings.integer("redis.stream.claim.idle.ms"),
                drops=self._trims,
            )
        self._is_cluster = wants_cluster(settings)
        self._client: Any = None

    def poll(self) -> Records | None:
        wait_ms = max(1, int(self.context.poll_seconds * 1000))
        try:
            if self._client is None:
                self._client = client_of(self.context.settings)
            if self._group is not None:
                found = self._group.read(self._client, self._count, wait_ms)
            else:
                found = self._read(wait_ms)
        except DENIED as error:
            raise ConnectError(f"Redis refuses the connector: {error}") from error
        except (redis.RedisError, redis.exceptions.RedisClusterException) as error:
            if is_away(error):
                raise RetriableError(f"Redis cannot be read: {error}") from error
            raise ConnectError(f"the streams {', '.join(self._ids)} cannot be read: {error}") from error
        return None if found is None else self._records(*found)

    def _read(self, wait_ms: int) -> tuple[str, Entries] | None:
        """Some entries of one stream, by the ids that are stored. A cluster is asked stream by stream."""
        self._find_ends()
        asked = [{name: at} for name, at in self._ids.items()] if self._is_cluster else [dict(self._ids)]
        for each in asked:
            found = self._client.xread(each, count=self._count, block=max(1, wait_ms // len(asked)))
            for name, entries in found or ():
                if entries:
                    return name.decode(), entries
        return None

    def _find_ends(self) -> None:
        """`$` is where a stream ends now: the id stays valid when nothing comes before a restart."""
        for name, at in self._ids.items():
            if at == "$":
                last = self._client.xrevrange(name, count=1)
                self._ids[name] = last[0][0].decode() if last else "0-0"

    def _records(self, name: str, entries: Entries) -> Records:
        ids = [entry.decode() for entry, _ in entries]
        values = [
            {"id": entry, "stream": name, "body": self._body(name, entry, fields)}
            for entry, (_, fields) in zip(ids, entries, strict=True)
        ]
        self._ids[name] = ids[-1]
        self._ids = {**{n: i for n, i in self._ids.items() if n != name}, name: ids[-1]}  # others come first
        return Records.of(
            self._topic.replace("${stream}", name),
            Column.of(values, self._schema),
            Column.of(ids, STRING),
            timestamps=[min(int(entry.partition("-")[0]), 2**63 - 1) for entry in ids],
            positions=[(self._partition(name), {"id": ids[-1]})],
        )

    def _partition(self, name: str) -> dict[str, Any]:
        """The source partition: with a group each consumer has its own."""
        return {"stream": name, **({} if self._group is None else {"consumer": self._group.consumer})}

    def _body(self, name: str, entry: str, fields: Mapping[bytes, bytes]) -> dict[str, Any]:
        try:
            if self._form == "bytes":
                return {field.decode(): value for field, value in fields.items()}
            return {field.decode(): value.decode() for field, value in fields.items()}
        except UnicodeDecodeError as error:
            raise ConnectError(
                f"the entry {entry} of the stream {name} is no UTF-8 text: redis.value.format=bytes"
                " reads values as bytes"
            ) from error

    def commit(self, positions: Positions) -> None:
        """Acknowledge entries that are in the topic now, and drop them if `redis.stream.trim` says so."""
        if self._group is not None:
            for partition, offset in positions:
                try:
                    self._group.acknowledge(self._client, partition["stream"], str(offset["id"]))
                except (redis.RedisError, redis.exceptions.RedisClusterException):
                    return  # the next commit acknowledges these entries too
        if self._group is not None or not self._trims:
            return
        for partition, offset in positions:
            high, _, low = str(offset["id"]).partition("-")
            try:
                self._client.xtrim(
                    partition["stream"], minid=f"{high}-{int(low or 0) + 1}", approximate=False
                )
            except (redis.RedisError, redis.exceptions.RedisClusterException):
                return  # the next commit trims these entries too

    def stop(self) -> None:
        if getattr(self, "_client", None) is not None:
            self._client.close()


def id_of(offset: Mapping[str, Any]) -> str:
    found = offset.get("id") if isinstance(offset, Mapping) else None
    if not isinstance(found, str) or not ID.fullmatch(found):
        raise ConnectError(f'an offset of a stream looks like {{"id": "1700000000000-0"}}, not {offset!r}')
    return found


class RedisStreamSourceConnector(Connector):
    KIND = "source"
    JAVA_NAMES: ClassVar[tuple[str, ...]] = ("com.redis.kafka.connect.RedisStreamSourceConnector",)
    CONFIG: ClassVar[ConfigDef] = (
        define_address(ConfigDef())
        .define("redis.stream.name", "LIST", importance="HIGH", doc="The streams to read.",
                validator=non_empty_list())
        .define("topic", "STRING", "${stream}", "HIGH", "The topic; ${stream} is the name of the stream.",
                validator=non_empty())
        .define("redis.stream.offset", "STRING", "0-0", "MEDIUM",
                "Where a stream without a stored offset begins: behind this id; $: behind its newest entry.")
        .define("redis.stream.count", "INT", 500, "LOW", "Entries of one poll.", validator=at_least(1))
        .define("redis.value.format", "STRING", "text", "LOW", "Values of fields as text or as bytes.",
                validator=one_of("text", "bytes"))
        .define("redis.stream.consumer.group", "STRING", "", "MEDIUM",
                "Read as a consumer group: Redis shares entries among the tasks.")
        .define("redis.stream.consumer.name", "STRING", "consumer-${task}", "LOW",
                "The name of a task in the group.", validator=non_empty())
        .define("redis.stream.claim.idle.ms", "LONG", 60_000, "LOW",
                "After so long entries of consumers that have gone are taken over; 0: never.",
                validator=at_least(0))
        .define("redis.stream.trim", "BOOLEAN", False, "LOW",
                "Remove entries from the stream when they are in the topic.")
        .without_effect({"redis.stream.block": (None, "a poll waits as long as the worker lets it")})
        .refused({"redis.stream.delivery": ("at-least-once", "entries are acknowledged in the topic")})
    )  # fmt: skip
    task = RedisStreamSourceTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """The streams, shared among the tasks; a consumer group shares them itself."""
        if self.settings.text("redis.stream.consumer.group"):
            return [dict(self.context.config) for _ in range(max_tasks)]
        names = self.settings.entries("redis.stream.name")
        shares = [names[start::max_tasks] for start in range(min(max_tasks, len(names)))]
        return [{**self.context.config, "redis.stream.name": ",".join(share)} for share in shares]

    def check(self, config: Mapping[str, str]) -> dict[str, list[str]]:
        errors = address_errors(config)
        first = config.get("redis.stream.offset", "0-0").strip()
        if first != "$" and not ID.fullmatch(first):
            errors["redis.stream.offset"] = [f"{first!r} is no id of an entry: 0-0, 1700000000000-0 or $"]
        if config.get("redis.stream.consumer.group") and "${task}" not in (
            config.get("redis.stream.consumer.name") or "${task}"
        ):
            errors["redis.stream.consumer.name"] = [
                "it must hold ${task}: tasks of one name would read the same entries"
            ]
        return errors

    def alter_offsets(self, config: Mapping[str, str], offsets: Sequence[tuple[Any, Any]]) -> bool:
        for partition, offset in offsets:
            if not isinstance(partition, Mapping) or not isinstance(partition.get("stream"), str):
                raise ConnectError(
                    f'a partition of this source looks like {{"stream": "name"}}, not {partition!r}'
                )
            if offset is not None:
                id_of(offset)
        return True

    def exactly_once_support(self, config: Mapping[str, str]) -> bool:
        """A group's memory is Redis', so its entries can come twice."""
        return not config.get("redis.stream.consumer.group")
