"""Services below the demo: a Barnabas broker, a database, and a thread that sends records.

In: a folder. Out: a broker in a process of its own, a table of customers in PostgreSQL or SQLite, and a
thread that sends what `demo.generator` makes. Does not know: pipelines.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.topics import NewTopic
from barnabas.client.blocking import BlockingCluster, run
from barnabas.client.cluster import Cluster
from barnabas.client.core.address import Address
from barnabas.client.producer import Producer, ProducerSettings
from barnabas.pipeline.demo.generator import Shop
from barnabas.pipeline.demo.ports import free_port
from barnabas.pipeline.demo.postgres import NoPostgres, Postgres

TOPICS = ("orders", "payments", "page_views")
PARTITIONS = 2
READY = b"ready"
STOP_S_MAX = 20.0
BEAT_S = 0.1


class Broker:
    """A broker in its own process."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "barnabas", "start", "--data", str(self.data), "--port", str(self.port)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        said = b""
        for line in self._process.stdout:
            said = line
            if READY in line:
                break
        else:
            raise RuntimeError(f"the broker did not start: {said.decode(errors='replace').strip()}")
        threading.Thread(target=drained, args=(self._process,), daemon=True).start()

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(STOP_S_MAX)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()


def drained(process: subprocess.Popen[bytes]) -> None:
    """Keep a child's output from filling its pipe."""
    assert process.stdout is not None
    with process.stdout:
        for _ in process.stdout:
            pass


@dataclass(frozen=True, slots=True)
class Database:
    """The database of customers: its JDBC address, and how it was started."""

    url: str
    user: str
    password: str
    kind: str
    server: Postgres | None = None

    def stop(self) -> None:
        if self.server is not None:
            self.server.close()


CREATE = "CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, email TEXT, country TEXT)"


def open_database(folder: Path, shop: Shop, server: Postgres | None = None) -> Database:
    """PostgreSQL if a server can be started, else SQLite; the table of customers is filled."""
    server = server or Postgres(folder / "postgres")
    try:
        server.start()
    except NoPostgres as error:
        return in_sqlite(folder / "shop.db", shop, str(error))
    import psycopg

    with psycopg.connect(server.dsn) as connection, connection.cursor() as cursor:
        cursor.execute(CREATE)
        cursor.executemany("INSERT INTO customers VALUES (%s, %s, %s, %s)", shop.customers())
    return Database(server.url, server.user, server.password, "PostgreSQL", server)


def in_sqlite(path: Path, shop: Shop, reason: str) -> Database:
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(CREATE)
        connection.executemany("INSERT INTO customers VALUES (?, ?, ?, ?)", shop.customers())
    return Database(f"jdbc:sqlite:{path}", "", "", f"SQLite ({reason})")


class Feeder:
    """A thread that sends records at a rate, until it is stopped."""

    def __init__(self, bootstrap: str, shop: Shop, per_second: int) -> None:
        host, _, port = bootstrap.rpartition(":")
        self._address = Address(host, int(port))
        self._shop = shop
        self._per_second = per_second
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._feed()), daemon=True)
        self.sent = 0

    def create_topics(self) -> None:
        with BlockingCluster([self._address]) as cluster:
            for name in TOPICS:
                run(Admin(cluster).create_topic(NewTopic(name, PARTITIONS)))

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    async def _feed(self) -> None:
        settings = ProducerSettings(linger_ms=5, idempotence=True)
        async with Cluster([self._address]) as cluster, Producer(cluster, settings) as producer:
            next_beat = time.monotonic()
            while not self._stopping.is_set():
                for record in self._shop.records(max(1, int(self._per_second * BEAT_S))):
                    await producer.send(record.topic, record.value, record.key.encode())
                    self.sent += 1
                await producer.flush()
                next_beat += BEAT_S
                await asyncio.sleep(max(0.0, next_beat - time.monotonic()))
