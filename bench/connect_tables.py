"""A table of PostgreSQL into a topic: the JDBC source of our worker, and a reader written by hand.

In: a broker, rows. Out: rows for each second of processor time. The reader is what a developer writes without
Connect: psycopg with a cursor of the server, orjson, confluent-kafka; it keeps no offsets, knows no schemas
and is not restarted. Confluent's JDBC source is not on Maven Central, so it is not measured.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing

import orjson

from barnabas.pipeline.demo import postgres
from bench.connect_workers import Worker

JSON = "org.apache.kafka.connect.json.JsonConverter"
TABLE = (
    "CREATE TABLE orders (id BIGINT PRIMARY KEY, customer INT NOT NULL, country TEXT NOT NULL,"
    " amount DOUBLE PRECISION NOT NULL, note TEXT, at TIMESTAMPTZ NOT NULL)"
)
ROWS = (
    "INSERT INTO orders SELECT n, n % 1000, (ARRAY['DE','CH','AT'])[1 + n % 3], n / 7.0,"
    " 'order number ' || n, TIMESTAMPTZ '2026-01-01' + n * INTERVAL '1 second'"
    " FROM generate_series(1, {count}) n"
)
FETCH_ROWS = 10_000
WANTED_BATCH = "10000"
SCHEMA = {
    "type": "struct", "optional": False, "name": "orders", "fields": [
        {"type": "int64", "optional": False, "field": "id"},
        {"type": "int32", "optional": False, "field": "customer"},
        {"type": "string", "optional": False, "field": "country"},
        {"type": "double", "optional": False, "field": "amount"},
        {"type": "string", "optional": True, "field": "note"},
        {"type": "int64", "optional": False, "name": "org.apache.kafka.connect.data.Timestamp",
         "version": 1, "field": "at"},
    ],
}  # fmt: skip


def made(server: postgres.Postgres, count: int) -> None:
    import psycopg

    with closing(psycopg.connect(server.dsn, autocommit=True)) as connection:
        connection.execute(TABLE)
        connection.execute(ROWS.format(count=count))
        connection.execute("ANALYZE orders")


def by_worker(worker: Worker, server: postgres.Postgres, count: int, end_of: Callable[[str], int]) -> float:
    """The second of two runs counts, because its code is warm."""
    rate = 0.0
    for part in ("warm", "run"):
        topic = f"{part}-orders"
        config = {
            "connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector", "mode": "incrementing",
            "incrementing.column.name": "id", "table.whitelist": "orders", "topic.prefix": f"{part}-",
            "connection.url": server.url, "connection.user": server.user,
            "connection.password": server.password, "batch.max.rows": WANTED_BATCH,
            "value.converter": JSON, "poll.interval.ms": "500",
        }  # fmt: skip
        used = worker.cpu_s
        worker.create(f"jdbc-{part}", config)
        worker.until(lambda topic=topic: end_of(topic) >= count)  # type: ignore[misc]
        rate = count / (worker.cpu_s - used)
        worker.delete(f"jdbc-{part}")
        print(f"{worker.name}: JDBC source ({part}): {rate:,.0f} rows/s of a core")
    return rate


def by_hand(server: postgres.Postgres, bootstrap: str, count: int) -> float:
    command = [sys.executable, "-m", "bench.connect_tables", server.dsn, bootstrap]
    found = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    rate = count / float(found.stdout)
    print(f"by hand: {rate:,.0f} rows/s of a core")
    return rate


def read(dsn: str, bootstrap: str) -> float:
    """Processor seconds of a reader by hand, its start left out."""
    import psycopg
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 20})
    used = cpu_s()
    with closing(psycopg.connect(dsn)) as connection, connection.cursor("reader") as cursor:
        cursor.itersize = FETCH_ROWS
        cursor.execute("SELECT id, customer, country, amount, note, at FROM orders ORDER BY id")
        for number, (id_, customer, country, amount, note, at) in enumerate(cursor):
            row = {
                "id": id_, "customer": customer, "country": country, "amount": amount, "note": note,
                "at": int(at.timestamp() * 1000),
            }  # fmt: skip
            value = orjson.dumps({"schema": SCHEMA, "payload": row})
            while True:
                try:
                    producer.produce("by-hand-orders", value)
                    break
                except BufferError:
                    producer.poll(0.05)
            if number % 1000 == 0:
                producer.poll(0)
    producer.flush()
    return cpu_s() - used


def cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    print(read(*sys.argv[1:3]))
