"""Redis and a worker that are killed, and a cluster whose slots and masters move, while a sink writes."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import orjson
import pytest
import redis
from tests.connect.connectors.contexts import Offsets, started_sink, started_source
from tests.connect.connectors.killed_sink import changes, last_of_each, run_with_kills
from tests.connect.connectors.killed_source import read_with_kills
from tests.stores import redis_server

from barnabas.connect.connectors.redis.redis_sink import RedisSinkConnector
from barnabas.connect.connectors.redis.stream_source import RedisStreamSourceConnector
from barnabas.connect.data import STRING, Column, Records
from barnabas.connect.plugins import RetriableError
from barnabas.testing.broker import Broker
from barnabas.testing.waiting import wait_until

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(600),
    pytest.mark.skipif(redis_server.available() is not None, reason=str(redis_server.available())),
]


def connector(topic: str, **more: str) -> dict[str, str]:
    return {
        "name": "redis",
        "connector.class": "com.redis.kafka.connect.RedisSinkConnector",
        "topics": topic,
        "redis.type": "hash",
        "redis.batch.size": "10",
        "retry.backoff.ms": "100",
        **{name.replace("_", "."): text for name, text in more.items()},
    }


def test_killed_workers_leave_the_last_value_of_each_key(
    barnabas_broker: Broker, barnabas_topic: str, tmp_path: Path
) -> None:
    rows = changes("redis", 2000, 60)
    with redis_server.RedisServer() as server:
        client = server.client()

        def found() -> dict[str, Any]:
            values = ((key.partition(":")[2], client.hgetall(key)) for key in client.keys("orders:*"))
            # A key that was deleted between both commands has no fields.
            return {key: {"id": int(row["id"]), "text": row["text"]} for key, row in values if row}

        given = connector(barnabas_topic, redis_uri=server.uri, redis_keyspace="orders")

        def highest() -> int:
            return max((row["id"] for row in found().values()), default=-1)

        run_with_kills(tmp_path, barnabas_broker.bootstrap, given, rows, highest, server)
        assert found() == last_of_each(rows)


def test_killed_workers_append_each_change_once(
    barnabas_broker: Broker, barnabas_topic: str, tmp_path: Path
) -> None:
    rows = changes("redis-list", 2000, 60, deletes=False)
    with redis_server.RedisServer() as server:
        client = server.client()
        given = connector(barnabas_topic, redis_uri=server.uri, redis_type="list", redis_keyspace="all")

        def highest() -> int:
            last = client.lrange("all", -1, -1)
            return int(orjson.loads(last[0])["id"]) if last else -1

        run_with_kills(tmp_path, barnabas_broker.bootstrap, given, rows, highest, server)
        assert [orjson.loads(each)["id"] for each in client.lrange("all", 0, -1)] == list(range(len(rows)))


def test_killed_workers_read_each_entry_of_a_stream(
    barnabas_broker: Broker, barnabas_topic: str, tmp_path: Path
) -> None:
    with redis_server.RedisServer() as server:
        client = server.client()

        def write(first: int, end: int) -> None:
            for number in range(first, end):
                client.xadd("s", {"n": number})

        given = {
            "name": "redis-source",
            "connector.class": "com.redis.kafka.connect.RedisStreamSourceConnector",
            "redis.uri": server.uri,
            "redis.stream.name": "s",
            "redis.stream.count": "5",
            "topic": barnabas_topic,
        }
        read_with_kills(
            tmp_path,
            barnabas_broker.bootstrap,
            given,
            barnabas_topic,
            write,
            lambda value: int(orjson.loads(value)["body"]["n"]),
            1000,
            server,
        )


def test_a_cluster_whose_slots_and_masters_move_has_the_last_value_of_each_key() -> None:
    rng = random.Random("cluster")
    with redis_server.RedisCluster() as cluster:
        task = started_sink(
            RedisSinkConnector,
            connector(
                "t", redis_hosts=",".join(cluster.addresses[:3]), redis_cluster="true", redis_type="string"
            ),
        )
        expected: dict[str, str] = {}
        at, retried = 0, 0

        def put() -> None:
            """Write fifty changes, and try again until the cluster has taken them."""
            nonlocal at, retried
            rows = [(f"k{rng.randrange(200)}", f"v{at + number}") for number in range(50)]
            batch = Records.of(
                "t",
                Column.of([value for _, value in rows], STRING),
                Column.of([key for key, _ in rows], STRING),
                partitions=[0] * len(rows),
                offsets=list(range(at, at + len(rows))),
            )

            def is_taken() -> bool:
                nonlocal retried
                try:
                    task.put(batch)
                except RetriableError:
                    retried += 1
                    return False
                return True

            wait_until(is_taken, 60.0)
            at += len(rows)
            expected.update(rows)

        put()
        ids = [cluster.ask(number, "cluster", "myid").strip() for number in range(3)]
        for source, target in ((0, 1), (1, 2), (2, 0)):
            wait_until(cluster.is_agreed, 30.0)
            moving = cluster.tell(
                "reshard",
                cluster.addresses[0],
                arguments=(
                    *("--cluster-from", ids[source], "--cluster-to", ids[target]),
                    *("--cluster-slots", "3000"),
                ),
            )
            while moving.poll() is None:
                put()
            assert moving.returncode == 0, cluster.said()
        cluster.servers[1].stop()  # its replica takes its slots
        for _ in range(20):
            put()
        wait_until(cluster.is_sound, 30.0)
        cluster.servers[1].start()
        put()
        wait_until(cluster.is_sound, 30.0)
        task.stop()
        client: redis.RedisCluster = cluster.client()
        assert {key: client.get(f"t:{key}") for key in expected} == expected
        assert retried > 0
        streams = {"redis.stream.name": "s,t,u", "topic": "x", "redis.cluster": "true"}
        streams["redis.hosts"] = ",".join(cluster.addresses[:3])
        for group in ({}, {"redis.stream.consumer.group": "g"}):
            for name in ("s", "t", "u"):
                client.xadd(name, {"n": name})
            source = started_source(RedisStreamSourceConnector, {**streams, **group}, Offsets())
            found: set[str] = set()
            while len(found) < 3:
                batch = source.poll()
                found |= set() if batch is None else {row.value["body"]["n"] for row in batch.rows()}
            source.stop()
        client.close()
