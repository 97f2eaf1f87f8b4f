"""Several nodes: one metastore, statements that exclude each other, one node that runs queries, its end."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

from barnabas.testing.waiting import wait_until
from sql.server.fake_engine import World
from sql.server.running import RunningServer, running
from sql.server.test_statements import STREAM

NODES = 3
GROUP = '"consumerGroupId":"_confluent-ksql-default_query_CSAS_T_1"'
EXPLAIN = {"ksql": "EXPLAIN CSAS_T_1;"}


@contextmanager
def nodes(
    broker: str, service_id: str, world: World
) -> Iterator[tuple[list[RunningServer], list[ExitStack]]]:
    stacks = [ExitStack() for _ in range(NODES)]
    with ExitStack() as all_of_them:
        servers = []
        for stack in stacks:
            all_of_them.enter_context(stack)
            servers.append(stack.enter_context(running(broker, service_id, world)))
        yield servers, stacks


def names(server: RunningServer) -> list[str]:
    return sorted(each["name"] for each in server.ksql("SHOW STREAMS;")[0]["streams"])


def leading(servers: list[RunningServer]) -> list[int]:
    return [
        index
        for index, each in enumerate(servers)
        if "barnabas_sql_leading 1.0" in each.http.get("/metrics").text
    ]


def test_three_nodes_are_one_cluster(broker: str, service_id: str) -> None:
    with nodes(broker, service_id, World()) as (servers, stacks):
        wait_until(lambda: len(leading(servers)) == 1, 60)
        servers[0].ksql(STREAM)
        number = servers[1].ksql("CREATE STREAM t AS SELECT * FROM s;")[0]["commandSequenceNumber"]
        for each in servers:
            assert (
                each.post("/ksql", {"ksql": "SHOW STREAMS;", "commandSequenceNumber": number}).status_code
                == 200
            )
            assert names(each) == ["S", "T"]
        [first] = leading(servers)
        wait_until(lambda: servers[first].engines[-1].running, 30)
        assert all(not each.engines[-1].running for index, each in enumerate(servers) if index != first)
        for each in servers:

            def alive(each: RunningServer = each) -> list[bool]:
                found = each.http.get("/clusterStatus").json()["clusterStatus"]
                return [host["hostAlive"] for host in found.values()]

            wait_until(lambda alive=alive: alive() == [True] * NODES, 30)
        for each in servers:  # asked of the node that runs it
            wait_until(lambda each=each: GROUP in each.http.post("/ksql", json=EXPLAIN).text, 30)

        stacks[first].close()
        left = [each for index, each in enumerate(servers) if index != first]
        wait_until(lambda: len(leading(left)) == 1, 60)
        [second] = leading(left)
        wait_until(lambda: list(left[second].engines[-1].running) == ["CSAS_T_1"], 30)
        left[1 - second].ksql("TERMINATE CSAS_T_1;")
        wait_until(lambda: not left[second].engines[-1].running, 30)


def test_of_statements_that_exclude_each_other_one_wins(broker: str, service_id: str) -> None:
    with nodes(broker, service_id, World()) as (servers, _), ThreadPoolExecutor(NODES) as threads:
        for attempt in range(4):
            text = f"CREATE STREAM x{attempt} (v INT) WITH (KAFKA_TOPIC='x', PARTITIONS=1);"
            found = list(threads.map(lambda each, text=text: each.post("/ksql", {"ksql": text}), servers))
            assert sorted(each.status_code for each in found) == [200, 400, 400], [
                each.text for each in found
            ]
            refused = [each.json()["message"] for each in found if each.status_code == 400]
            assert all("already exists" in each for each in refused), refused
        numbers = [each["commandSequenceNumber"] for each in servers[2].ksql("CREATE TYPE last AS INT;")]
        assert numbers == [4], "a refused statement must leave nothing in the topic"
