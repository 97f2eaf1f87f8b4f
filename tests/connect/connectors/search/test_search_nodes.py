"""The search sink against real nodes of OpenSearch and Elasticsearch: mappings, versions, poison, streams,
and workers and nodes that are killed."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.connect.connectors.contexts import started_sink
from tests.connect.connectors.killed_sink import changes, last_of_each, run_with_kills
from tests.security.tls_world import certificates
from tests.stores.search_nodes import ELASTICSEARCH, OPENSEARCH, SearchNodes
from tests.stores.tls_front import tls_front

from barnabas.connect.connectors.search.search_sink import ElasticsearchSinkConnector
from barnabas.connect.data import DATE, INT64, OPTIONAL_STRING, Column, Records, Schema, decimal, struct
from barnabas.connect.plugins import ConnectError, SinkTask
from barnabas.testing.broker import Broker

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]
REFUSAL = re.compile("mapper_parsing_exception|document_parsing_exception")
ORDER = struct(name="Order", id=INT64, note=OPTIONAL_STRING, price=decimal(2, optional=True))


@pytest.fixture(scope="module", params=["opensearch", "elasticsearch"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def url(kind: str) -> Iterator[str]:
    with nodes(kind) as found:
        yield found.urls[0]


def nodes(kind: str, count: int = 1) -> SearchNodes:
    server = {"opensearch": OPENSEARCH, "elasticsearch": ELASTICSEARCH}[kind]
    reason = server.available()
    if reason is not None:
        pytest.skip(f"no node of {kind}: {reason}")
    return SearchNodes(server, count)


def records(
    topic: str, rows: Sequence[tuple[Any, Any]], first: int = 0, schema: Schema | None = None
) -> Records:
    count = len(rows)
    return Records.of(
        topic,
        Column.of([value for _, value in rows], schema),
        Column.of([key for key, _ in rows]),
        partitions=[0] * count,
        offsets=list(range(first, first + count)),
        timestamps=[1_700_000_000_000] * count,
    )


def sink(url: str, errant: list[Any] | None = None, **more: str) -> SinkTask:
    config = {"connection.url": url, "read.timeout.ms": "60000"}
    config |= {name.replace("_", "."): value for name, value in more.items()}

    def report(some: Records, indices: Sequence[int], error: BaseException) -> None:
        assert errant is not None, error
        errant.extend((some.offsets[index].as_py(), str(error)) for index in indices)

    return started_sink(ElasticsearchSinkConnector, config, errant=report)


def documents(url: str, index: str) -> dict[str, Any]:
    httpx.post(f"{url}/{index}/_refresh", timeout=60)
    found = httpx.post(f"{url}/{index}/_search", json={"size": 10_000}, timeout=60).json()
    return {each["_id"]: each["_source"] for each in found["hits"]["hits"]}


def test_structs_get_a_mapping_that_grows_with_the_schema(url: str) -> None:
    task = sink(url)
    task.put(records("Orders", [("a", {"id": 1, "note": "x", "price": None})], 0, ORDER))
    wider = struct(name="Order", id=INT64, day=DATE)
    task.put(records("Orders", [("b", {"id": 2, "day": date(2024, 1, 2)})], 1, wider))
    task.stop()
    found = httpx.get(f"{url}/orders/_mapping").json()["orders"]["mappings"]["properties"]
    assert {name: each["type"] for name, each in found.items()} == {
        "id": "long", "note": "text", "price": "double", "day": "date",
    }  # fmt: skip
    assert documents(url, "orders") == {
        "a": {"id": 1, "note": "x", "price": None},
        "b": {"id": 2, "day": "2024-01-02"},
    }


def test_records_that_come_again_and_late_change_nothing(url: str) -> None:
    rows = [("a", {"n": 1}), ("b", {"n": 2}), ("a", {"n": 3}), ("b", None), ("c", {"n": 4})]
    for compression in ("false", "true"):
        task = sink(url, behavior_on_null_values="delete", batch_size="2", connection_compression=compression)
        task.put(records("again", rows))
        task.put(records("again", rows[:1]))  # an older version, as after a rebalance
        task.stop()
        assert documents(url, "again") == {"a": {"n": 3}, "c": {"n": 4}}
    assert httpx.get(f"{url}/again/_doc/a").json()["_version"] == 2


def test_passwords_and_api_keys_come_over_tls(url: str) -> None:
    """OpenSearch's core has no TLS and no logins: a front has both, as in front of many clusters."""
    found = certificates()
    password = base64.b64encode(b"elastic:secret").decode()
    store = "elastic_https_ssl_truststore"
    trusted = {f"{store}_location": found.ca_file, f"{store}_type": "PEM"}
    user = {"connection_username": "elastic", "connection_password": "secret"}
    one, other = [("a", {"n": 1})], [("b", {"n": 2})]
    with tls_front(url, {f"Basic {password}", "ApiKey a2V5"}, found.broker_file) as front:
        for login, rows in ((user, one), ({"connection_api_key": "a2V5"}, other)):
            task = sink(front, **trusted, **login)
            task.put(records("secured", rows))
            task.stop()
        assert documents(url, "secured") == {"a": {"n": 1}, "b": {"n": 2}}
        task = sink(front, **trusted, connection_api_key="wrong")
        with pytest.raises(ConnectError, match="401"):
            task.put(records("secured", one))
        task.stop()
        stranger = {**trusted, f"{store}_location": found.other_ca_file}
        task = sink(front, **stranger, **user, max_retries="0")
        with pytest.raises(ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            task.put(records("secured", one))
        task.stop()


def test_upserts_merge_fields_in_order(url: str) -> None:
    task = sink(url, write_method="UPSERT")
    rows = [("a", {"n": 1, "m": 1}), ("a", {"n": 2}), ("b", {"n": 9}), ("a", {"o": 3})]
    for _ in range(2):
        task.put(records("merged", rows))
        assert documents(url, "merged") == {"a": {"n": 2, "m": 1, "o": 3}, "b": {"n": 9}}
    task.stop()


def test_documents_that_the_server_refuses_are_reported_alone(url: str) -> None:
    errant: list[Any] = []
    task = sink(url, errant, key_ignore="true")
    task.put(records("poison", [("a", {"n": 1}), ("b", {"n": "no number"}), ("c", {"n": 3}), ("d", "text")]))
    assert [offset for offset, _ in errant] == [1, 3]
    assert REFUSAL.search(errant[0][1])
    assert sorted(documents(url, "poison")) == ["poison+0+0", "poison+0+2"]
    task.stop()
    task = sink(url, key_ignore="true", behavior_on_malformed_documents="ignore")
    task.put(records("poison", [("b", {"n": "no number"}), ("c", {"n": 4})], 4))
    assert sorted(documents(url, "poison")) == ["poison+0+0", "poison+0+2", "poison+0+5"]
    task.stop()


def test_an_index_that_is_deleted_under_the_task_is_made_again(url: str) -> None:
    task = sink(url)
    task.put(records("gone", [("a", {"id": 1, "note": None, "price": None})], 0, ORDER))
    httpx.delete(f"{url}/gone")
    task.put(records("gone", [("b", {"id": 2, "note": None, "price": None})], 1, ORDER))
    assert list(documents(url, "gone")) == ["b"]
    task.stop()


def test_data_streams_take_each_record_once(kind: str, url: str) -> None:
    if kind == "elasticsearch":
        pytest.skip("Elasticsearch's core without its modules has no data streams")
    config = {"data_stream_type": "logs", "data_stream_dataset": "app"}
    task = sink(url, **config)
    with pytest.raises(ConnectError, match="no index template"):
        task.put(records("web", [("a", {"n": 1})]))
    template = {"index_patterns": ["logs-app-*"], "data_stream": {}}
    httpx.put(f"{url}/_index_template/logs-app", json=template).raise_for_status()
    for _ in range(2):
        task.put(records("web", [("a", {"n": 1}), ("a", {"n": 2})]))
    assert sorted(each["n"] for each in documents(url, "logs-app-web").values()) == [1, 2]
    task.stop()
    mapped = {"external_resource_usage": "DATASTREAM"}
    task = sink(url, **mapped, topic_to_external_resource_mapping="other:logs-app-web")
    task.put(records("other", [("a", {"n": 3})]))
    assert len(documents(url, "logs-app-web")) == 3
    task.stop()
    task = sink(url, **mapped, topic_to_external_resource_mapping="other:missing")
    with pytest.raises(ConnectError, match="must exist"):
        task.put(records("other", [("a", {"n": 3})]))
    task.stop()


def killed(url: str, topic: str) -> dict[str, str]:
    """A connector that is slow enough to be killed in the middle, and never gives up."""
    return {
        "name": "search",
        "connector.class": "io.confluent.connect.elasticsearch.ElasticsearchSinkConnector",
        "topics": topic,
        "connection.url": url,
        "read.timeout.ms": "60000",
        "behavior.on.null.values": "delete",
        "schema.ignore": "true",
        "batch.size": "20",
        "max.retries": "-1",
    }


def highest_of(url: str, index: str) -> int:
    httpx.post(f"{url}/{index}/_refresh", timeout=60)
    body = {"size": 0, "aggs": {"top": {"max": {"field": "id"}}}}
    found = httpx.post(f"{url}/{index}/_search", json=body, timeout=60).json()
    return int(found.get("aggregations", {}).get("top", {}).get("value") or -1)


def test_killed_workers_leave_the_last_value_of_each_key(
    kind: str, barnabas_broker: Broker, barnabas_topic: str, tmp_path: Path
) -> None:
    """The node is killed, too: once while no worker lives, once under a worker that writes."""
    rows, index = changes("search", 2000, 60), barnabas_topic.lower()
    with nodes(kind) as cluster:
        url = cluster.urls[0]
        run_with_kills(
            tmp_path,
            barnabas_broker.bootstrap,
            killed(url, barnabas_topic),
            rows,
            lambda: highest_of(url, index),
            Restarted(cluster, 0),
        )
        assert documents(url, index) == last_of_each(rows)


@pytest.mark.parametrize("method", ["INSERT", "UPSERT"])
def test_a_cluster_that_loses_nodes_loses_no_document(
    method: str, barnabas_broker: Broker, barnabas_topic: str, tmp_path: Path
) -> None:
    """Three nodes and a copy of each shard: the node that the worker talks to first is killed."""
    rows = changes("cluster", 2000, 60, deletes=method == "INSERT")
    index = barnabas_topic.lower()
    with nodes("opensearch", 3) as cluster:
        connector = killed(",".join(cluster.urls), barnabas_topic)
        last = cluster.urls[2]
        run_with_kills(
            tmp_path,
            barnabas_broker.bootstrap,
            {**connector, "write.method": method},
            rows,
            lambda: highest_of(last, index),
            Restarted(cluster, 0, is_needed=False),
        )
        assert documents(last, index) == last_of_each(rows)


class Restarted:
    """One node of a cluster as a store that goes away. Where it is not needed the others write on."""

    def __init__(self, cluster: SearchNodes, number: int, *, is_needed: bool = True) -> None:
        self._cluster = cluster
        self._number = number
        self.is_needed = is_needed

    def stop(self) -> None:
        self._cluster.kill(self._number)

    def start(self) -> None:
        self._cluster.start(self._number)
        self._cluster.wait()


def test_poison_goes_to_the_dead_letter_queue(
    url: str, barnabas_broker: Broker, barnabas_topic: str, tmp_path: Path
) -> None:
    from confluent_kafka import Consumer
    from tests.connect.connectors.killed_sink import produce
    from tests.connect.connectors.worker import running_worker, until

    index, dead = barnabas_topic.lower(), f"{barnabas_topic}-dead"
    produce(barnabas_broker.bootstrap, barnabas_topic, [("a", {"n": 1}), ("b", {"n": "x"}), ("c", {"n": 2})])
    connector = {
        "name": "poison",
        "connector.class": "ElasticsearchSink",
        "topics": barnabas_topic,
        "connection.url": url,
        "read.timeout.ms": "60000",
        "schema.ignore": "true",
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": dead,
        "errors.deadletterqueue.topic.replication.factor": "1",
        "errors.deadletterqueue.context.headers.enable": "true",
    }
    with running_worker(tmp_path, barnabas_broker.bootstrap, connector):
        until(lambda: set(documents_or_none(url, index)) == {"a", "c"}, 90.0)
        consumer = Consumer(
            {"bootstrap.servers": barnabas_broker.bootstrap, "group.id": "d", "auto.offset.reset": "earliest"}
        )
        consumer.subscribe([dead])
        seen: list[Any] = []
        until(
            lambda: (one := consumer.poll(0.5)) is not None and one.error() is None and not seen.append(one)
        )
        consumer.close()
    assert seen[0].key() == b"b"
    headers = dict(seen[0].headers())
    assert REFUSAL.search(headers["__connect.errors.exception.message"].decode())


def documents_or_none(url: str, index: str) -> dict[str, Any]:
    return documents(url, index) if httpx.head(f"{url}/{index}").status_code == 200 else {}
