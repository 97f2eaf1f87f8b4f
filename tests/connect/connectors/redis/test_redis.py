"""Redis: every type of target, tombstones, poison, kills of the server, and streams read back."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from tests.connect.connectors.contexts import Offsets, started_sink, started_source
from tests.security.tls_world import certificates
from tests.stores import redis_server

from barnabas.connect.connectors.redis.commands import Target
from barnabas.connect.connectors.redis.redis_sink import RedisCacheSinkConnector, RedisSinkConnector
from barnabas.connect.connectors.redis.stream_source import RedisStreamSourceConnector
from barnabas.connect.data import (
    INT64,
    OPTIONAL_STRING,
    STRING,
    Column,
    DataError,
    Header,
    Record,
    Records,
    struct,
)
from barnabas.connect.plugins import ConnectError, RetriableError, SinkTask, SourceTask
from barnabas.testing.ports import free_ports

pytestmark = pytest.mark.skipif(redis_server.available() is not None, reason=str(redis_server.available()))
ORDER = struct(name="Order", id=INT64, country=OPTIONAL_STRING)


@pytest.fixture(scope="module")
def shared() -> Iterator[redis_server.RedisServer]:
    with redis_server.RedisServer() as found:
        yield found


@pytest.fixture
def server(shared: redis_server.RedisServer) -> redis_server.RedisServer:
    shared.client().flushall()
    return shared


def records(keys: Sequence[Any], values: Column, first: int = 0) -> Records:
    count = len(values)
    return Records.of(
        "orders",
        values,
        Column.of(keys, STRING) if all(isinstance(key, str) for key in keys) else Column.of(keys),
        partitions=[0] * count,
        offsets=list(range(first, first + count)),
    )


def sink(server: redis_server.RedisServer, errant: list[Any] | None = None, **more: str) -> SinkTask:
    given = {"redis_type": "hash", **more}
    config = {"redis.uri": server.uri, **{name.replace("_", "."): value for name, value in given.items()}}

    def report(some: Records, indices: Sequence[int], error: BaseException) -> None:
        assert errant is not None, error
        errant.extend((some.offsets[index].as_py(), str(error)) for index in indices)

    return started_sink(RedisSinkConnector, config, errant=report)


def test_structs_become_hashes_and_tombstones_delete_them(server: redis_server.RedisServer) -> None:
    task, client = sink(server), server.client()
    task.put(records(["a", "b"], Column.of([{"id": 1, "country": "DE"}, {"id": 2, "country": None}], ORDER)))
    assert client.hgetall("orders:a") == {"id": "1", "country": "DE"}
    assert client.hgetall("orders:b") == {"id": "2"}
    task.put(records(["a", "b"], Column.of([{"id": 1, "country": None}, None], ORDER), 2))
    assert client.hgetall("orders:a") == {"id": "1"}
    assert client.keys("*") == ["orders:a"]
    task.stop()


def test_strings_have_the_records_own_keys_and_expire(server: redis_server.RedisServer) -> None:
    config = {"redis.hosts": f"127.0.0.1:{server.port}", "redis.ttl": "100"}
    task, client = started_sink(RedisCacheSinkConnector, config), server.client(db=1)
    task.put(records(["a", b"b", 3], Column.of(["x", {"n": [1, None]}, b"\xff"])))
    assert (client.get("a"), client.get("b")) == ("x", '{"n":[1,null]}')
    assert client.ttl("3") > 0
    task.put(records(["a"], Column.of([None])))
    assert sorted(client.keys("*")) == ["3", "b"]
    task.stop()


def test_members_of_sets_and_lists(server: redis_server.RedisServer) -> None:
    client = server.client()
    for kind, more in (("set", {}), ("list", {}), ("set", {"redis_member": "key"})):
        task = sink(server, redis_type=kind, redis_keyspace=f"{kind}{len(more)}", **more)
        task.put(records(["k", "k", "l"], Column.of(["x", "x", "y"])))
        task.stop()
    task = sink(server, redis_command="SADD", redis_keyspace="set1", redis_member="key")
    task.put(records(["k"], Column.of([None])))
    task.stop()
    assert client.smembers("set0") == {"x", "y"}
    assert client.lrange("list0", 0, -1) == ["x", "x", "y"]
    assert client.smembers("set1") == {"l"}


def test_sorted_sets_and_places(server: redis_server.RedisServer) -> None:
    client, errant = server.client(), list[Any]()
    task = sink(server, errant, redis_command="ZADD", redis_keyspace="z")
    rows = [1.5, {"score": 2, "n": 1}, "3", {"n": 1}, True, 7, None]
    task.put(records(["a", "b", "c", "d", "e", "a", "b"], Column.of(rows)))
    task.put(records(["f"], Column.of(["nan"]), 7))
    task.stop()
    assert client.zrange("z", 0, -1, withscores=True) == [("c", 3.0), ("a", 7.0)]
    assert [offset for offset, _ in errant] == [3, 4, 7] and "must be a number" in errant[0][1]
    errant.clear()
    task = sink(server, errant, redis_type="geo", redis_keyspace="g", redis_geo_latitude_field="lat")
    places = [
        {"longitude": 9.99, "lat": 48.4},
        "13.4,52.5",
        {"longitude": 9.99},
        {"longitude": 200, "lat": 1},
    ]
    task.put(records(["Ulm", "Berlin", "x", "y", "z"], Column.of([*places, None])))
    task.put(records(["Ulm"], Column.of([None]), 5))
    task.stop()
    assert client.zrange("g", 0, -1) == ["Berlin"]
    assert client.geopos("g", "Berlin")[0] == pytest.approx((13.4, 52.5), abs=1e-4)
    assert "the field lat" in errant[0][1] and "-180.0 to 180.0" in errant[1][1]


def test_samples_of_time_series(server: redis_server.RedisServer) -> None:
    target = Target("timeseries", "t")

    def commands(key: Any, value: Any, timestamp: int | None = None) -> Any:
        return target.commands(Record("orders", 0, key, value, timestamp))

    assert commands(1000, 2.5) == [("TS.ADD", "t", 1000, "2.5", "ON_DUPLICATE", "LAST")]
    assert commands(b"1000", 1) == commands("1000", 1) == commands(None, 1, 1000)
    assert commands(1000, None) == [("TS.DEL", "t", 1000, 1000)]
    with pytest.raises(DataError, match="its time in milliseconds"):
        commands("soon", 1)
    task = sink(server, redis_type="timeseries")
    if not server.client().execute_command("COMMAND INFO", "TS.ADD"):
        with pytest.raises(ConnectError, match=r"no command TS\.ADD"):
            task.put(records([1], Column.of([1])))
    task.stop()


def test_poison_is_reported_and_the_rest_is_written(server: redis_server.RedisServer) -> None:
    client, errant = server.client(), list[Any]()
    client.set("orders:c", "a string")
    task = sink(server, errant)
    values = [{"n": 1}, "no struct", {"n": 3}, {"n": 4}, {"n": 5}]
    task.put(records(["a", "b", "c", None, "e"], Column.of(values)))
    assert [offset for offset, _ in errant] == [1, 2, 3]
    assert "a hash needs a struct or a map" in errant[0][1]
    assert "WRONGTYPE" in errant[1][1]
    assert "the record has no key" in errant[2][1]
    assert client.hgetall("orders:a") == {"n": "1"} and client.hgetall("orders:e") == {"n": "5"}
    task.stop()


@pytest.mark.parametrize("kind", ["list", "stream"])
def test_appends_happen_once_though_server_and_task_are_killed(kind: str) -> None:
    rng = random.Random(kind)
    with redis_server.RedisServer() as server:
        at, committed = 0, 0
        while at < 300:
            task = sink(server, redis_type=kind, redis_batch_size="7")
            at = committed  # a new task begins at what was committed
            for _ in range(rng.randrange(1, 6)):
                count = min(rng.randrange(1, 40), 300 - at)
                batch = records(["k"] * count, Column.of([{"n": at + n} for n in range(count)]), at)
                if rng.random() < 0.3:
                    server.stop()
                    with pytest.raises(RetriableError, match="Redis cannot take records"):
                        task.put(batch)
                    server.start()
                task.put(batch)
                at += count
                if rng.random() < 0.5:
                    committed = at
            task.stop()
        client = server.client()
        if kind == "list":
            assert client.lrange("orders", 0, -1) == [f'{{"n":{n}}}' for n in range(300)]
        else:
            assert [int(fields["n"]) for _, fields in client.xrange("orders")] == list(range(300))


def test_a_lost_reply_does_not_write_twice(server: redis_server.RedisServer) -> None:
    task: Any = sink(server, redis_type="list")
    batch = records(["k"] * 3, Column.of(["a", "b", "c"]))
    task.put(batch)
    task.put(batch)  # as after a reply that never came
    assert server.client().lrange("orders", 0, -1) == ["a", "b", "c"]
    config = {"redis.uri": server.uri, "redis.type": "list", "name": "c"}
    partition = {"kafka_topic": "orders", "kafka_partition": 0}
    assert RedisSinkConnector().alter_offsets(config, [(partition, {"kafka_offset": 2})])
    task.put(batch)
    assert server.client().lrange("orders", 0, -1) == ["a", "b", "c", "c"]
    task.stop()


def test_without_a_type_entries_of_a_stream_are_written_as_redis_own_connector_does(
    server: redis_server.RedisServer,
) -> None:
    task = started_sink(RedisSinkConnector, {"redis.uri": server.uri})
    task.put(records(["a"], Column.of([{"n": 1}])))
    task.stop()
    assert [fields for _, fields in server.client().xrange("orders")] == [{"n": "1"}]


def test_commands_and_names_of_redis_own_connector(server: redis_server.RedisServer) -> None:
    client = server.client()
    client.mset({"kafka:a": "x", "kafka:b": "y"})
    task = sink(server, redis_command="DEL", redis_key="kafka", redis_key_ttl="5")
    task.put(records(["a"], Column.of([{"n": 1}])))
    task.stop()
    assert client.keys("*") == ["kafka:b"]
    merged = Target("jsonmerge", "", path_header="at")
    headers = (Header("at", "$.here"),)
    assert merged.commands(Record("t", 0, "k", {"n": 1}, headers=headers)) == [
        ("JSON.MERGE", "k", "$.here", b'{"n":1}')
    ]
    assert merged.commands(Record("t", 0, "k", {"n": 1})) == [("JSON.MERGE", "k", "$", b'{"n":1}')]
    assert merged.commands(Record("t", 0, "k", None)) == [("DEL", "k")]
    for value in ('{"n": 1}', b'{"n": 1}'):  # JSON already
        made = Target("json", "").commands(Record("t", 0, "k", value))
        assert made == [("JSON.SET", "k", "$", b'{"n": 1}')]


def test_records_wait_for_replicas(server: redis_server.RedisServer) -> None:
    client = server.client()
    more = {"redis_type": "list", "redis_wait_replicas": "1"}
    hasty, task = (sink(server, **more, redis_wait_timeout=each) for each in ("50", "9000"))
    batch = records(["a"], Column.of(["x"]))
    with pytest.raises(RetriableError, match="0 of 1 replicas"):
        hasty.put(batch)
    hasty.stop()
    with redis_server.RedisServer("--replicaof", "127.0.0.1", str(server.port)) as replica:
        redis_server.wait_until(lambda: client.info("replication")["connected_slaves"] == 1, 30.0)
        redis_server.wait_until(lambda: replica.client().exists("orders") == 1, 30.0)
        task.put(batch)  # the record is there once
        task.put(records(["a"], Column.of(["y"]), 1))
        assert replica.client().lrange("orders", 0, -1) == ["x", "y"]
        task.stop()
    check = RedisSinkConnector().check
    assert "redis.wait.replicas" in check({"redis.wait.replicas": "1", "redis.cluster": "true"})


def test_retries_end_where_a_bound_is_set(server: redis_server.RedisServer) -> None:
    pauses: list[int] = []
    config = {"redis.port": "1", "redis.host": "127.0.0.1", "max.retries": "2", "retry.backoff.ms": "10"}
    task = started_sink(RedisSinkConnector, config, retry_after_ms=pauses.append)
    for _ in range(2):
        with pytest.raises(RetriableError):
            task.put(records(["a"], Column.of([{"n": 1}])))
    with pytest.raises(ConnectError, match="gave up after 2 retries"):
        task.put(records(["a"], Column.of([{"n": 1}])))
    assert 5 <= pauses[0] <= 10 <= pauses[1] <= 20


def test_a_password_that_is_wrong_and_a_module_that_is_missing_are_told() -> None:
    with redis_server.RedisServer("--requirepass", "secret") as server:
        task = sink(server)
        with pytest.raises(ConnectError, match="Redis refuses the connector") as failed:
            task.put(records(["a"], Column.of([{"n": 1}])))
        assert not isinstance(failed.value, RetriableError)
        task = sink(server, redis_password="secret", redis_type="json")
        if not server.client(password="secret").execute_command("COMMAND INFO", "JSON.SET"):
            with pytest.raises(ConnectError, match=r"no command JSON\.SET"):
                task.put(records(["a"], Column.of([{"n": 1}])))
        task.stop()


def test_users_of_the_acl_come_over_tls_with_certificates_of_both_sides() -> None:
    found, [port] = certificates(), free_ports(1)
    key = found.write("redis-key.pem", found.broker.key_pem)
    chain = found.write("redis-chain.pem", found.broker.chain_pem)
    tls = ["--tls-port", str(port), "--tls-ca-cert-file", found.ca_file, "--tls-cert-file", chain]
    users = ["--user", "shop", "on", ">secret", "~orders:*", "+@all", "--user", "default", "off"]
    own = {"redis.tls.ca": found.ca_file, "redis.tls.cert": chain, "redis.tls.key": key}
    by_uri = {"redis.uri": f"rediss://shop:secret@127.0.0.1:{port}/0", "redis.type": "hash"}
    by_hosts = {
        "redis.type": "hash",
        "redis.hosts": f"127.0.0.1:{port}",
        "redis.tls": "true",
        "redis.username": "shop",
    }
    by_hosts |= {"redis.password": "secret"}
    one = records(["a"], Column.of([{"n": 1}]))
    with redis_server.RedisServer(*tls, "--tls-key-file", key, *users) as server:
        trusted = found.write("redis-ca.p12", found.authority.trust_pkcs12("ca", "trusted"))
        keystore = found.write("redis.p12", found.broker.pkcs12("redis", "own"))
        stores = {
            "redis.ssl.truststore.path": trusted,
            "redis.ssl.truststore.password": "trusted",
            "redis.ssl.keystore.path": keystore,
            "redis.ssl.keystore.password": "own",
        }
        named = {"redis.cacert": found.ca_file, "redis.key.cert": chain, "redis.key.file": key}
        ways = ((by_uri, own), (by_hosts, own), (by_uri, stores), (by_hosts, stores), (by_uri, named))
        for number, (config, files) in enumerate(ways):
            task = started_sink(RedisSinkConnector, {**config, **files})
            task.put(records([f"k{number}"], Column.of([{"n": 1}])))
            task.stop()
        client = server.client(username="shop", password="secret")
        assert sorted(client.keys("orders:*")) == [f"orders:k{n}" for n in range(5)]
        stranger = started_sink(RedisSinkConnector, {**by_uri, "redis.tls.ca": found.ca_file})
        with pytest.raises(RetriableError):  # the server wants a certificate
            stranger.put(one)
        locked = {**stores, "redis.ssl.keystore.password": "wrong"}
        with pytest.raises(ConnectError, match=r"ssl\.keystore\.password"):
            started_sink(RedisSinkConnector, {**by_uri, **locked}).put(one)
        unknown = started_sink(RedisSinkConnector, {**by_uri, **own, "redis.tls.ca": found.other_ca_file})
        with pytest.raises(RetriableError, match="CERTIFICATE_VERIFY_FAILED"):
            unknown.put(one)
        for more in ({"redis.password": "wrong"}, {"redis.keyspace": "closed"}):
            task = started_sink(RedisSinkConnector, {**by_hosts, **own, **more})
            with pytest.raises(ConnectError, match="Redis refuses the connector") as failed:
                task.put(one)
            assert not isinstance(failed.value, RetriableError)


def test_settings_are_checked() -> None:
    check = RedisSinkConnector().check
    assert "is no host:port" in check({"redis.hosts": "a:b"})["redis.hosts"][0]
    assert "redis.cluster=true" in check({"redis.hosts": "a:1,b:2"})["redis.hosts"][0]
    assert "must begin with" in check({"redis.uri": "http://x"})["redis.uri"][0]
    assert "redis.keyspace" in check({"redis.type": "stream", "redis.keyspace": ""})
    assert "secret" not in str(RedisSinkConnector.CONFIG.parse({"redis.uri": "redis://:secret@h"}))
    assert RedisStreamSourceConnector().check({"redis.stream.offset": "now"})["redis.stream.offset"]


def test_a_cluster_takes_hashes() -> None:
    [bus] = free_ports(1)
    with redis_server.RedisServer("--cluster-enabled", "yes", "--cluster-port", str(bus)) as server:
        client = server.client()
        client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
        redis_server.wait_until(lambda: client.cluster("info").get("cluster_state") == "ok", 30.0)
        config = {"redis.hosts": f"127.0.0.1:{server.port}", "redis.client.mode": "Cluster"}
        task = started_sink(RedisSinkConnector, {**config, "redis.type": "hash"})
        task.put(records(["a", "b"], Column.of([{"n": 1}, {"n": 2}])))
        assert client.hgetall("orders:a") == {"n": "1"} and client.hgetall("orders:b") == {"n": "2"}
        task.stop()


def test_entries_of_streams_are_read_once_over_restarts(server: redis_server.RedisServer) -> None:
    client, offsets = server.client(), Offsets()
    for n in range(25):
        client.xadd("s", {"n": n}, id=f"{1000 + n}-0")
    config = {
        "redis.uri": server.uri,
        "redis.stream.name": "s,t",
        "redis.stream.count": "10",
        "topic": "x.${stream}",
    }
    seen = []
    for _ in range(3):
        task = started_source(RedisStreamSourceConnector, config, offsets)
        found = task.poll()
        assert found is not None
        seen += list(found.rows())
        task.poll()  # read, and lost with the task
        offsets.store(found)
        task.stop()
    assert [row.value["body"] for row in seen] == [{"n": str(n)} for n in range(25)]
    assert (seen[0].topic, seen[0].key, seen[0].timestamp) == ("x.s", "1000-0", 1000)
    assert offsets.read([{"stream": "s"}]) == [{"id": "1024-0"}]


GROUP = {"redis.stream.name": "s,t", "redis.stream.consumer.group": "g", "redis.stream.count": "4"}


def polled(task: SourceTask, times: int, *, commits: bool = True) -> list[str]:
    found: list[str] = []
    for _ in range(times):
        records = task.poll()
        if records is not None:
            found += [row.value["body"]["n"] for row in records.rows()]
            if commits:
                task.commit(records.positions)
    return found


def test_a_group_shares_entries_among_tasks(server: redis_server.RedisServer) -> None:
    client = server.client()
    for n in range(12):
        client.xadd("s" if n % 3 else "t", {"n": n})
    config = {"redis.uri": server.uri, **GROUP}
    one = started_source(RedisStreamSourceConnector, config, Offsets(), 0)
    other = started_source(RedisStreamSourceConnector, config, Offsets(), 1)
    found = polled(one, 1) + polled(other, 1) + polled(one, 1)
    assert sorted(map(int, found)) == list(range(12)) and polled(other, 3) == []
    assert client.xpending("s", "g")["pending"] == 0
    for n in range(12, 18):
        client.xadd("s", {"n": n})
    assert polled(one, 2, commits=False) == [str(n) for n in range(12, 18)]
    one.stop()  # dies with entries that are not in the topic
    one = started_source(RedisStreamSourceConnector, config, Offsets(), 0)
    assert polled(one, 1) == ["12", "13", "14", "15"]
    first = client.xpending_range("s", "g", "-", "+", 10)
    assert [each["consumer"] for each in first] == ["consumer-0"] * 2
    one.stop()  # and comes no more
    other.stop()
    taking = {**config, "redis.stream.claim.idle.ms": "1", "redis.stream.trim": "true"}
    other = started_source(RedisStreamSourceConnector, taking, Offsets(), 1)
    redis_server.wait_until(
        lambda: client.xpending_range("s", "g", "-", "+", 1)[0]["time_since_delivered"] > 5
    )
    assert polled(other, 2) == ["16", "17"] and client.xpending("s", "g")["pending"] == 0
    assert client.xrange("s")[-1][1] == {"n": "15"}
    client.delete("s", "t")
    assert polled(other, 1) == []  # the group has gone with its streams
    client.xadd("t", {"n": "new"})
    assert polled(other, 2) == ["new"]
    other.stop()


def test_entries_that_are_deleted_before_they_are_read_again_are_left_out(
    server: redis_server.RedisServer,
) -> None:
    client = server.client()
    ids = [client.xadd("s", {"n": n}) for n in range(3)]
    task = started_source(RedisStreamSourceConnector, {"redis.uri": server.uri, **GROUP}, Offsets())
    assert polled(task, 1, commits=False) == ["0", "1", "2"]
    task.stop()
    client.xdel("s", ids[1])
    task = started_source(RedisStreamSourceConnector, {"redis.uri": server.uri, **GROUP}, Offsets())
    assert polled(task, 2) == ["0", "2"]
    assert client.xpending("s", "g")["pending"] == 0
    task.stop()
    check = RedisStreamSourceConnector().check
    assert "redis.stream.consumer.name" in check({**GROUP, "redis.stream.consumer.name": "me"})
    assert check(GROUP) == {}
    assert not RedisStreamSourceConnector().exactly_once_support(GROUP)


def test_a_stream_from_its_end_in_bytes_and_trimmed(server: redis_server.RedisServer) -> None:
    client = server.client()
    client.xadd("s", {"n": "old"})
    config = {
        "redis.uri": server.uri, "redis.stream.name": "s", "redis.stream.offset": "$",
        "redis.value.format": "bytes", "redis.stream.trim": "true",
    }  # fmt: skip
    task = started_source(RedisStreamSourceConnector, config, Offsets())
    assert task.poll() is None
    client.xadd("s", {"n": b"\xff"})
    found = task.poll()
    assert found is not None and found.values.pylist()[0]["body"] == {"n": b"\xff"}
    task.commit(found.positions)
    assert client.xlen("s") == 0
    client.set("t", "no stream")
    task = started_source(RedisStreamSourceConnector, {**config, "redis.stream.name": "t"}, Offsets())
    with pytest.raises(ConnectError, match="WRONGTYPE"):
        task.poll()
    server.stop()
    with pytest.raises(RetriableError):
        task.poll()
    server.start()
    with pytest.raises(ConnectError, match="looks like"):
        RedisStreamSourceConnector().alter_offsets(config, [({"stream": "s"}, {"id": "x"})])
