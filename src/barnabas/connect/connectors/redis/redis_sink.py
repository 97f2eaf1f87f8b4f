"""The sink of Redis: records become keys, members or entries of a stream.

Records are written in transactions (MULTI). Lists and streams are written once: the transaction that appends
also stores the next offset of each partition, and records below it are left out. Other types give the same
keys when they are written again. Does not know: topics, converters.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import redis

from barnabas.connect.config import ConfigDef, ConfigError, Settings, at_least, one_of, one_of_any_case
from barnabas.connect.connectors.redis.commands import (
    COLLECTIONS,
    COMMANDS,
    NEEDED,
    REPEATABLE,
    TYPES,
    Command,
    Target,
)
from barnabas.connect.connectors.redis.redis_settings import (
    DENIED,
    address_errors,
    client_of,
    define_address,
    is_away,
    wants_cluster,
)
from barnabas.connect.connectors.stores.retries import Pauses, Retries
from barnabas.connect.data import DataError, Records
from barnabas.connect.plugins import ConnectError, Connector, SinkContext, SinkTask

log = logging.getLogger("barnabas.connect")

OFFSET_KEY = "__kafka.offset.{connector}.{topic}.{partition}"
Place = tuple[str, int]
Work = list[tuple[int, list[Command]]]  # the index of a record, and its commands


class RedisSinkTask(SinkTask):
    def start(self, context: SinkContext) -> None:
        super().start(context)
        settings = context.settings
        self._target = target_of(settings)
        self._batch_size = settings.integer("redis.batch.size")
        self._retries = Retries(
            context, settings.integer("max.retries"), Pauses(settings.integer("retry.backoff.ms"))
        )
        self._client: Any = None
        self._is_cluster = wants_cluster(settings)
        self._replicas = settings.integer("redis.wait.replicas")
        self._replicas_ms = settings.integer("redis.wait.timeout")
        self._stores_offsets = self._target.type not in REPEATABLE and not self._is_cluster

    def put(self, records: Records) -> None:
        work: Work = []
        refused: list[tuple[int, Exception]] = []
        for index, record in enumerate(records.rows()):
            try:
                work.append((index, self._target.commands(record)))
            except DataError as error:
                refused.append((index, error))
        try:
            client = self._connected()
            for start in range(0, len(work), self._batch_size):
                refused += self._write(client, records, work[start : start + self._batch_size])
            self._wait_for_replicas(client)
        except redis.WatchError as error:
            raise self._retries.failed("another task wrote offsets of the same partitions", error) from error
        except DENIED as error:
            raise ConnectError(f"Redis refuses the connector: {error}") from error
        except (redis.RedisError, redis.exceptions.RedisClusterException) as error:
            if is_away(error):
                raise self._retries.failed(f"Redis cannot take records: {error}", error) from error
            raise ConnectError(f"Redis refuses a command: {error}") from error
        self._retries.succeeded()
        for index, why in sorted(refused, key=lambda each: each[0]):
            self.context.errant(records, [index], why)

    def _wait_for_replicas(self, client: Any) -> None:
        """Wait for the writes of this task's only connection."""
        if not self._replicas:
            return
        reached = client.execute_command("WAIT", self._replicas, self._replicas_ms)
        if reached < self._replicas:
            raise redis.TimeoutError(
                f"{reached} of {self._replicas} replicas (redis.wait.replicas) have the records"
                f" after {self._replicas_ms} ms"
            )

    def _connected(self) -> Any:
        if self._client is None:
            client = client_of(self.context.settings)
            try:
                check_module(client, self._target.type)
            except BaseException:
                client.close()
                raise
            self._client = client
        return self._client

    def _write(self, client: Any, records: Records, work: Work) -> list[tuple[int, Exception]]:
        """One transaction. Out: records whose commands Redis refuses, such as a key of another type."""
        ends = offsets_behind(records, [index for index, _ in work])
        pipe = client.pipeline(transaction=not self._is_cluster)
        try:
            if self._stores_offsets and ends:
                work = self._not_yet_written(pipe, records, work, list(ends))
            origin = [index for index, commands in work for _ in commands]
            for _, commands in work:
                for command in commands:
                    pipe.execute_command(*command)
            if self._stores_offsets:
                for place, end in ends.items():
                    pipe.set(self._offset_key(place), end)
            results = pipe.execute(raise_on_error=False) if origin else []
        finally:
            pipe.reset()
        found: dict[int, Exception] = {}
        for index, result in zip(origin, results, strict=False):
            if isinstance(result, DENIED) or (isinstance(result, redis.RedisError) and is_away(result)):
                raise result
            if isinstance(result, Exception):
                found.setdefault(index, ConnectError(f"Redis refuses the record: {result}"))
        return list(found.items())

    def _not_yet_written(self, pipe: Any, records: Records, work: Work, places: list[Place]) -> Work:
        """Leave out records that an earlier transaction wrote; another task's write ends this one."""
        keys = [self._offset_key(place) for place in places]
        pipe.watch(*keys)
        stored = {place: int(end or 0) for place, end in zip(places, pipe.mget(keys), strict=True)}
        pipe.multi()
        topics, partitions = records.topics.to_pylist(), records.partitions.to_pylist()
        offsets = records.offsets.to_pylist()
        kept = [
            (index, commands)
            for index, commands in work
            if offsets[index] >= stored[(topics[index], partitions[index])]
        ]
        if len(kept) < len(work):
            log.warning(
                "task %s-%d leaves out %d records that Redis has already, by the offsets in %s",
                self.context.connector, self.context.task, len(work) - len(kept), ", ".join(keys),
            )  # fmt: skip
        return kept

    def _offset_key(self, place: Place) -> str:
        return OFFSET_KEY.format(connector=self.context.connector, topic=place[0], partition=place[1])

    def stop(self) -> None:
        if getattr(self, "_client", None) is not None:
            self._client.close()


def offsets_behind(records: Records, indices: Sequence[int]) -> dict[Place, int]:
    """The next offset of each partition behind these records."""
    if records.offsets is None or records.partitions is None:
        return {}
    topics, partitions = records.topics.to_pylist(), records.partitions.to_pylist()
    offsets = records.offsets.to_pylist()
    found: dict[Place, int] = {}
    for index in indices:
        place = (topics[index], partitions[index])
        found[place] = max(found.get(place, 0), offsets[index] + 1)
    return found


def check_module(client: Any, kind: str) -> None:
    """ConnectError if the server lacks the module that this type needs."""
    command = NEEDED.get(kind)
    if command is None or client.execute_command("COMMAND INFO", command):
        return
    other = "; redis.type=string stores the same documents as texts" if kind == "json" else ""
    raise ConnectError(
        f"this Redis has no command {command} (its module is in Redis 8 and Redis Stack){other}"
    )


def target_of(settings: Settings) -> Target:
    command = settings.text("redis.command").upper()
    kind = settings.text("redis.type").lower()
    if settings.text("redis.data.type").lower() == "streams":
        kind = "stream"
    keyspace = settings.raw.get("redis.key")
    ttl = settings.integer("redis.key.ttl")
    return Target(
        type=COMMANDS[command] if command else kind,
        keyspace=settings.text("redis.keyspace") if keyspace is None else keyspace.strip(),
        separator=settings.text("redis.separator"),
        member=settings.text("redis.member"),
        pushes_left=command == "LPUSH",
        expire_s=ttl if ttl > 0 else settings.integer("redis.ttl"),
        length_max=settings.integer("redis.stream.maxlen"),
        score=settings.text("redis.score.field"),
        longitude=settings.text("redis.geo.longitude.field"),
        latitude=settings.text("redis.geo.latitude.field"),
        path_header=settings.text("redis.json.path"),
        path=settings.text("redis.json.path.fixed"),
    )


def definitions(kind: str, keyspace: str, database: int) -> ConfigDef:
    found = (
        define_address(ConfigDef(), database)
        .define("redis.type", "STRING", kind, "HIGH", "What records become.",
                validator=one_of_any_case(*TYPES))
        .define("redis.command", "STRING", "", "HIGH", "The command in place of redis.type.",
                validator=one_of_any_case("", *COMMANDS))
        .define("redis.keyspace", "STRING", keyspace, "MEDIUM",
                "What keys begin with, and the key of lists, sets and streams; may hold ${topic}.")
        .define("redis.key", "STRING", "", "MEDIUM", "The same as redis.keyspace.")
        .define("redis.separator", "STRING", ":", "LOW", "Between keyspace and key.")
        .define("redis.member", "STRING", "value", "LOW", "Members of lists and sets are values or keys.",
                validator=one_of("value", "key"))
        .define("redis.ttl", "INT", -1, "LOW", "Seconds until a key expires; -1: never.")
        .define("redis.key.ttl", "INT", -1, "LOW", "The same as redis.ttl.")
        .define("redis.stream.maxlen", "INT", -1, "LOW", "About how many entries a stream keeps; -1: all.")
        .define("redis.score.field", "STRING", "score", "LOW",
                "ZADD: the field with the score, where values are structs.")
        .define("redis.geo.longitude.field", "STRING", "longitude", "LOW", "GEOADD: the field with it.")
        .define("redis.geo.latitude.field", "STRING", "latitude", "LOW", "GEOADD: the field with it.")
        .define("redis.json.path", "STRING", "", "LOW", "JSONMERGE: the header with the path to merge at.")
        .define("redis.json.path.fixed", "STRING", "$", "LOW", "JSONMERGE: the path without such a header.")
        .define("redis.data.type", "STRING", "Sets", "LOW", "Streams is the same as redis.type=stream.",
                validator=one_of_any_case("Sets", "Streams"))
        .define("redis.charset", "STRING", "UTF-8", "LOW", "Keys and texts are UTF-8.",
                validator=one_of_any_case("UTF-8", "UTF8"))
        .define("redis.wait.replicas", "INT", 0, "LOW", "Replicas that must have records (WAIT).",
                validator=at_least(0))
        .define("redis.wait.timeout", "LONG", 1000, "LOW", "Milliseconds to wait for them; 0: without end.",
                validator=at_least(0))
        .define("redis.batch.size", "INT", 500, "MEDIUM", "Records of one transaction.",
                validator=at_least(1))
        .define("max.retries", "INT", -1, "MEDIUM", "Retries until the task fails; -1: without end.",
                validator=at_least(-1))
        .define("retry.backoff.ms", "INT", 500, "LOW", "The first pause; each one after it is twice as long.",
                validator=at_least(0))
    )  # fmt: skip
    return found.without_effect({"redis.multiexec": ("false", "records are written in transactions")})


class RedisSinkConnector(Connector):
    """Streams by default, named after the topic."""

    KIND = "sink"
    JAVA_NAMES: ClassVar[tuple[str, ...]] = ("com.redis.kafka.connect.RedisSinkConnector",)
    CONFIG: ClassVar[ConfigDef] = definitions("stream", "${topic}", 0)
    task = RedisSinkTask

    def check(self, config: Mapping[str, str]) -> dict[str, list[str]]:
        errors = address_errors(config)
        try:
            target = target_of(self.CONFIG.parse(config))
        except ConfigError:
            return errors  # reported by name already
        if target.type in COLLECTIONS and not target.keyspace:
            errors["redis.keyspace"] = [
                f"a {target.type} needs a key: set redis.keyspace, for example ${{topic}}"
            ]
        if config.get("redis.wait.replicas", "0").strip() != "0" and wants_cluster(config):
            errors["redis.wait.replicas"] = ["a cluster has no one connection to wait on: leave it out"]
        return errors

    def alter_offsets(self, config: Mapping[str, str], offsets: Sequence[tuple[Any, Any]]) -> bool:
        """Set the offsets that Redis keeps, so that records are written again."""
        settings = self.CONFIG.parse(config)
        if target_of(settings).type in REPEATABLE or wants_cluster(settings):
            return True
        client = client_of(settings)
        try:
            for partition, offset in offsets:
                place = (partition["kafka_topic"], int(partition["kafka_partition"]))
                key = OFFSET_KEY.format(connector=config.get("name", ""), topic=place[0], partition=place[1])
                if offset is None:
                    client.delete(key)
                else:
                    client.set(key, int(offset["kafka_offset"]))
        except (KeyError, TypeError, ValueError) as error:
            raise ConnectError(f"these are no offsets of a topic: {error}") from error
        except redis.RedisError as error:
            raise ConnectError(f"the offsets that Redis keeps cannot be changed: {error}") from error
        finally:
            client.close()
        return True


class RedisCacheSinkConnector(RedisSinkConnector):
    """Strings by default, with the keys of the records as they are, in database 1."""

    JAVA_NAMES = ("com.github.jcustenborder.kafka.connect.redis.RedisSinkConnector",)
    CONFIG = definitions("string", "", 1)
