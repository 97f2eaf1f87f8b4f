"""Real systems beside a cluster of workers, connectors between them and topics, and what must be there.

Each `Road` is made by REST. `feed` gives every source another part of its data, `problems` says what is
missing or too much at the end.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.s3_server import S3Server, running_s3
from tests.stores import redis_server
from tests.stores.http_server import HttpServer, Reply, Seen

from barnabas.pipeline.demo import postgres
from barnabas.testing import mysql
from connect.connectors.jdbc_servers import Database
from connect.records_of import records_of
from connect.worker_processes import FILE_SINK, FILE_SOURCE, JSON, STRING

BINLOG = ("--log-bin=log", "--server-id=1", "--binlog-format=ROW", "--sync-binlog=0")
CONFLUENT = "io.confluent.connect."
JDBC_SOURCE = f"{CONFLUENT}jdbc.JdbcSourceConnector"
JDBC_SINK = f"{CONFLUENT}jdbc.JdbcSinkConnector"
PLAIN = {"value.converter": JSON, "value.converter.schemas.enable": "false"}
TEXT = {"key.converter": STRING, "value.converter": STRING}
ONE_PARTITION = {"topic.creation.default.partitions": "1", "topic.creation.default.replication.factor": "1"}
PARTITIONS = {**ONE_PARTITION, "topic.creation.default.partitions": "3"}
SPREAD = {"pg-orders", "maria-orders", "lines", "visits", "made-up"}  # topics of several partitions
SCHEDULE = {"rotate.schedule.interval.ms": "2000", "timezone": "UTC"}  # the last files are not full
TASKS = {"tasks.max": "3"}  # of sinks
READ_COMMITTED = {"consumer.override.isolation.level": "read_committed"}
ROWS = 60
MADE_UP = 1500


@dataclass
class World:
    folder: Path
    bootstrap: str
    pg: Database
    maria: Database
    redis: redis_server.RedisServer
    s3: S3Server
    api: HttpServer
    hook: HttpServer
    parts: int = 0
    rows: list[dict[str, Any]] = field(default_factory=list)  # of the API

    def feed(self) -> None:
        """Another part of data for every source."""
        first, self.parts = self.parts * ROWS, self.parts + 1
        numbers = range(first, first + ROWS)
        pairs = ", ".join(f"({n}, 'v{n}')" for n in numbers)
        for database in (self.pg, self.maria):
            database.sql(
                f"INSERT INTO orders VALUES {pairs}",
                f"INSERT INTO items VALUES {pairs}",
                f"UPDATE items SET v = 'changed {self.parts}' WHERE id % 7 = {self.parts % 7}",
                f"DELETE FROM items WHERE id % 11 = {self.parts % 11}",
            )
        for name in ("lines.txt", "app.log"):
            with (self.folder / name).open("a") as file:
                file.write("".join(f"line {n}\n" for n in numbers))
        client = self.redis.client()
        for n in numbers:
            client.xadd("visits", {"n": str(n)})
        self.rows += [{"id": n} for n in numbers]

    def rotate(self) -> None:
        """Give the log another name, as log rotation does."""
        (self.folder / "app.log").rename(self.folder / f"app.log.{self.parts}")

    # -- connectors --------------------------------------------------------------------------------

    def connectors(self) -> dict[str, dict[str, str]]:
        return {**self._sources(), **self._sinks()}

    def _sources(self) -> dict[str, dict[str, str]]:
        tables = {
            "connector.class": JDBC_SOURCE, "mode": "incrementing", "incrementing.column.name": "id",
            "table.whitelist": "orders", "poll.interval.ms": "200", **PARTITIONS,
        }  # fmt: skip
        captures = {
            "table.include.list": "public.items", "snapshot.fetch.size": "20", "max.batch.size": "20",
            **PLAIN, "key.converter": JSON, "key.converter.schemas.enable": "false",
            "tombstones.on.delete": "true", **ONE_PARTITION,
        }  # fmt: skip
        server, maria = self.pg.server, self.maria.server
        return {
            "pg-orders": {**tables, **self.pg.config, "topic.prefix": "pg-"},
            "maria-orders": {**tables, **self.maria.config, "topic.prefix": "maria-"},
            "pg-capture": {
                **captures,
                "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
                "topic.prefix": "pgcdc", "database.hostname": "127.0.0.1", "plugin.name": "pgoutput",
                "database.port": str(server.port), "database.user": server.user,
                "database.password": server.password, "database.dbname": server.database,
                "publication.autocreate.mode": "filtered", "slot.name": "shown",
            },
            "maria-capture": {
                **captures,
                "connector.class": "io.debezium.connector.mariadb.MariaDbConnector",
                "topic.prefix": "mycdc", "database.hostname": "127.0.0.1",
                "database.port": str(maria.port), "database.user": maria.user,
                "database.password": maria.password, "database.include.list": "shop",
                "table.include.list": "shop.items", "include.schema.changes": "false",
                "schema.history.internal.kafka.topic": "history",
                "schema.history.internal.kafka.bootstrap.servers": self.bootstrap,
            },
            "lines": {
                "connector.class": FILE_SOURCE, "file": str(self.folder / "lines.txt"), "topic": "lines",
                "batch.size": "25", **TEXT, **PARTITIONS,
            },
            "log": {
                "connector.class": "TailSourceConnector", "file": str(self.folder / "app.log"),
                "topic": "log", "batch.size": "25", "rotate.wait.ms": "300", **TEXT, **ONE_PARTITION,
            },
            "visits": {
                "connector.class": "com.redis.kafka.connect.RedisStreamSourceConnector",
                "redis.uri": self.redis.uri, "redis.stream.name": "visits", "topic": "visits",
                **PLAIN, **PARTITIONS,
            },
            "made-up": {
                "connector.class": "io.confluent.kafka.connect.datagen.DatagenConnector",
                "kafka.topic": "made-up", "quickstart": "shop_orders", "max.interval": "20",
                "iterations": str(MADE_UP), **PLAIN, "key.converter": STRING, **PARTITIONS,
            },
            "api": {
                "connector.class": f"{CONFLUENT}http.HttpSourceConnector", "url": self.api.url,
                "topic": "api", "request.interval.ms": "200", "http.request.parameters": "start=${offset}",
                **PLAIN, **ONE_PARTITION,
            },
        }  # fmt: skip

    def _sinks(self) -> dict[str, dict[str, str]]:
        tables = {"connector.class": JDBC_SINK, "topics": "pg-orders", "auto.create": "true"}
        found = {
            "to-maria": {
                **tables, **self.maria.config, "insert.mode": "upsert", "pk.mode": "record_value",
                "pk.fields": "id", "table.name.format": "sunk_orders",
            },
            "to-pg": {
                **tables, **self.pg.config, "insert.mode": "insert", "pk.mode": "none",
                "table.name.format": "sunk_orders", "barnabas.offsets.table": "kafka_offsets",
            },
            "to-folder": {
                "connector.class": f"{CONFLUENT}hdfs3.Hdfs3SinkConnector", "topics": "lines",
                "hdfs.url": str(self.folder / "hdfs"), "format.class": "StringFormat",
                "flush.size": str(ROWS // 2), **SCHEDULE, **TEXT,
            },
            "to-s3": {
                "connector.class": f"{CONFLUENT}s3.S3SinkConnector", "topics": "maria-orders",
                "s3.bucket.name": "bucket", "store.url": self.s3.address, "format.class": "JsonFormat",
                "flush.size": str(ROWS // 2), "aws.access.key.id": "test", "aws.secret.access.key": "test",
                "s3.path.style.access.enabled": "true", "s3.region": "us-east-1", **SCHEDULE,
            },
            "to-redis": {
                "connector.class": "com.redis.kafka.connect.RedisSinkConnector", "topics": "log",
                "redis.uri": self.redis.uri, "redis.type": "list", "redis.keyspace": "log", **TEXT,
            },
            "to-hook": {
                "connector.class": f"{CONFLUENT}http.HttpSinkConnector", "topics": "made-up",
                "http.api.url": self.hook.url, "batch.max.size": "50", "batch.json.as.array": "true",
                "request.body.format": "json", "behavior.on.null.values": "ignore", **PLAIN,
                "key.converter": STRING,
            },
            "to-file": {
                "connector.class": FILE_SINK, "topics": "visits", "file": str(self.folder / "visits.txt"),
                "tasks.max": "1",
                **PLAIN,
            },
        }  # fmt: skip
        return {name: {**TASKS, **config, **READ_COMMITTED} for name, config in found.items()}

    # -- what must be there ------------------------------------------------------------------------

    @property
    def wanted(self) -> list[int]:
        return list(range(self.parts * ROWS))

    def numbers_in(self, topic: str) -> list[int]:
        """The numbers of a topic in their order; sorted, if it has several partitions."""
        found = []
        for _, _, text in records_of(self.bootstrap, topic):
            value = json.loads(text or b"null") if (text or b"").startswith(b"{") else (text or b"").decode()
            if isinstance(value, str):
                found.append(int(value.split()[-1]))
            else:
                value = value.get("payload", value)
                found.append(int(value["body"]["n"] if "body" in value else value["id"]))
        return sorted(found) if topic in SPREAD else found

    def problems(self, name: str) -> str:
        """What is wrong with the result of a connector; empty if nothing is."""
        found, wanted = getattr(self, "api_rows" if name == "api" else name.replace("-", "_"))(), self.wanted
        if found == wanted:
            return ""
        if not isinstance(found, list):
            return str(found)
        missing, twice = sorted(set(wanted) - set(found)), len(found) - len(set(found))
        in_order = found == sorted(found)
        return f"{len(found)} of {len(wanted)}: missing {missing[:5]}, repeated {twice}, in order {in_order}"

    def pg_orders(self) -> list[int]:
        return self.numbers_in("pg-orders")

    def maria_orders(self) -> list[int]:
        return self.numbers_in("maria-orders")

    def lines(self) -> list[int]:
        return self.numbers_in("lines")

    def log(self) -> list[int]:
        return self.numbers_in("log")

    def visits(self) -> list[int]:
        return self.numbers_in("visits")

    def api_rows(self) -> list[int]:
        return self.numbers_in("api")

    def to_maria(self) -> list[int]:
        return [int(row[0]) for row in self.maria.rows("SELECT id FROM sunk_orders ORDER BY id")]

    def to_pg(self) -> list[int]:
        return [int(row[0]) for row in self.pg.rows("SELECT id FROM sunk_orders ORDER BY id")]

    def to_folder(self) -> list[int]:
        files = sorted((self.folder / "hdfs").rglob("*.txt"))
        return sorted(int(line.split()[1]) for each in files for line in each.read_text().splitlines())

    def to_s3(self) -> list[int]:
        from barnabas.connect.connectors.objects.connectors import S3SinkConnector
        from connect.connectors.contexts import started_sink

        config = {**self._sinks()["to-s3"]}
        task: Any = started_sink(S3SinkConnector, config)
        storage = task._layout.storage
        names = storage.names("topics/maria-orders")
        found = []
        for name in names:
            with storage.open(name) as file:
                found += [json.loads(line)["id"] for line in file.read().splitlines()]
        return sorted(found)

    def to_redis(self) -> list[int]:
        return [int(each.split()[1]) for each in self.redis.client().lrange("log", 0, -1)]

    def to_file(self) -> list[int]:
        """At least once: lines may repeat."""
        path = self.folder / "visits.txt"
        lines = path.read_text().splitlines() if path.exists() else []
        return sorted({int(line.partition("n=")[2].rstrip("}").split(",")[0].rstrip("}")) for line in lines})

    def made_up(self) -> list[int]:
        """Exactly as many as were asked for."""
        count = len(records_of(self.bootstrap, "made-up"))
        return self.wanted if count == MADE_UP else [count]

    def to_hook(self) -> list[int]:
        """At least once: every record of the topic came."""
        sent = {
            json.dumps(json.loads(text or b""), sort_keys=True)
            for _, _, text in records_of(self.bootstrap, "made-up")
        }
        came = {json.dumps(one, sort_keys=True) for seen in self.hook.seen for one in json.loads(seen.body)}
        return self.wanted if sent <= came and len(sent) > MADE_UP // 2 else [len(sent), len(sent - came)]

    def pg_capture(self) -> list[int]:
        return self.captured(self.pg, "pgcdc.public.items")

    def maria_capture(self) -> list[int]:
        return self.captured(self.maria, "mycdc.shop.items")

    def captured(self, database: Database, topic: str) -> list[int]:
        """The replay of a topic is the table, and nothing was created twice."""
        rows: dict[int, str] = {}
        for key, _, text in records_of(self.bootstrap, topic):
            number = json.loads(key or b"")["id"]
            event = json.loads(text) if text else None
            if event is None or event["op"] == "d":
                rows.pop(number, None)
                continue
            if event["op"] == "c" and number in rows:
                return [-1, number]
            rows[number] = event["after"]["v"]
        return self.wanted if rows == dict(database.rows("SELECT id, v FROM items")) else sorted(rows)


@contextmanager
def running_world(folder: Path, bootstrap: str) -> Iterator[World]:
    for reason in (postgres.available(), mysql.available(), redis_server.available()):
        if reason is not None:
            pytest.skip(reason)
    with ExitStack() as stack:
        server = stack.enter_context(postgres.Postgres(password="a secret"))
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET wal_level = logical")
        server.stop()
        server.start()
        maria = stack.enter_context(mysql.MySqlServer("shop", *BINLOG))
        rows: list[dict[str, Any]] = []

        def page(seen: Seen) -> Reply:
            start = int(seen.query["start"])
            return Reply(200, rows[start : start + 7])

        world = World(
            folder,
            bootstrap,
            Database(server.url, server.user, server.password, server),
            Database(maria.url, maria.user, maria.password, maria),
            stack.enter_context(redis_server.RedisServer()),
            stack.enter_context(running_s3("bucket")),
            stack.enter_context(HttpServer(page)),
            stack.enter_context(HttpServer(lambda seen: Reply(200))),
            rows=rows,
        )
        for database in (world.pg, world.maria):
            for table, column in (("orders", "note"), ("items", "v")):
                database.sql(f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, {column} VARCHAR(40))")
        for name in ("lines.txt", "app.log"):
            (folder / name).write_text("")
        yield world
