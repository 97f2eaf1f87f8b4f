"""Lag as metrics: names, labels and values of each dialect, on a page that Prometheus can read."""

from __future__ import annotations

from math import isnan

import pytest
from prometheus_client.parser import text_string_to_metric_families

from barnabas.metadata.steps import at_once
from barnabas.monitor.lag.cluster_lag import Broker, ClusterLag, GroupInfo, LagRules
from barnabas.monitor.lag.groups import Member
from barnabas.monitor.lag.topics import Placement
from barnabas.monitor.lag_metrics import burrow, kafka_exporter, kminion, lag_exporter, opentelemetry, own
from barnabas.monitor.lag_metrics.kminion import Extras
from barnabas.monitor.lag_metrics.page import Page
from barnabas.monitor.lag_service import probe

from .conftest import OnService, World

NOW_MS = 1_700_000_000_000
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def cluster(name: str = "local") -> ClusterLag:
    """Topic t with two partitions; group g is behind by 10 in the first and did not commit to the second."""
    lag = ClusterLag(name, LagRules(intervals=2))
    lag.brokers, lag.cluster_id, lag.controller_id = (Broker(1, "h", 9092, "r"),), "abc", 1
    lag.set_topics({"t": ([Placement(1, (1, 2), (1,)), Placement(2, (1, 2), (1, 2))], False)})
    for index, end in enumerate((100, 50)):
        lag.set_end("t", index, end - 20, NOW_MS - 10_000)
        lag.set_end("t", index, end, NOW_MS)
        lag.set_start("t", index, 5)
    place = lag.place('g"\n\\', "t", 0)
    assert place is not None
    for order in (1, 2):
        lag.commit(place, 90, NOW_MS - 1_000 + order, NOW_MS, order)
    ann = Member("m-1", "ann", "/10.0.0.7", {"t": 1})
    idle = Member("m-2", "bob", "/10.0.0.8", {})
    lag.describe(
        GroupInfo('g"\n\\', "Classic", "Stable", "consumer", "range", 1, (ann, idle), {("t", 0): ann})
    )
    return lag


def samples(page: Page | str) -> Samples:
    text = page if isinstance(page, str) else "".join(page.chunks())
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in found, f"{sample.name} is there twice"
            found[key] = sample.value
    return found


def one(found: Samples, name: str, **labels: str) -> float:
    return found[name, frozenset(labels.items())]


G = 'g"\n\\'


def test_burrows_names() -> None:
    at_once(burrow.write(page := Page(), [cluster()], NOW_MS))
    found = samples(page)
    group = {"cluster": "local", "consumer_group": G}
    first = {**group, "topic": "t", "partition": "0"}
    assert one(found, "burrow_kafka_consumer_lag_total", **group) == 10
    assert one(found, "burrow_kafka_consumer_status", **group) == 3
    assert one(found, "burrow_kafka_consumer_partition_lag", **first) == 10
    assert one(found, "burrow_kafka_consumer_partition_lag", **{**first, "partition": "1"}) == 0
    assert one(found, "burrow_kafka_consumer_current_offset", **first) == 90
    assert one(found, "burrow_kafka_topic_partition_status", **first) == 5
    assert one(found, "burrow_kafka_topic_partition_offset", cluster="local", topic="t", partition="1") == 50
    assert len(found) == 8


def test_kafka_exporters_names() -> None:
    at_once(kafka_exporter.write(page := Page(), [cluster()], NOW_MS))
    found = samples(page)
    assert found.pop(("kafka_brokers", frozenset())) == 1
    assert one(found, "kafka_broker_info", id="1", address="h:9092") == 1
    assert one(found, "kafka_topic_partitions", topic="t") == 2
    for name, values in {
        "current_offset": (100, 50),
        "oldest_offset": (5, 5),
        "leader": (1, 2),
        "replicas": (2, 2),
        "in_sync_replica": (1, 2),
        "leader_is_preferred": (1, 0),
        "under_replicated_partition": (1, 0),
    }.items():
        for index, value in enumerate(values):
            full = f"kafka_topic_partition_{name}"
            assert one(found, full, topic="t", partition=str(index)) == value
    assert one(found, "kafka_consumergroup_members", consumergroup=G) == 2
    for name, values in {"current_offset": (90, -1), "lag": (10, -1)}.items():
        for index, value in enumerate(values):
            full = f"kafka_consumergroup_{name}"
            assert one(found, full, consumergroup=G, topic="t", partition=str(index)) == value
    assert one(found, "kafka_consumergroup_lag_sum", consumergroup=G, topic="t") == 10
    assert one(found, "kafka_consumergroup_current_offset_sum", consumergroup=G, topic="t") == 89


def test_kminions_names() -> None:
    extras = Extras(True, 7, "v4.3", {1: 1_000}, {"t": 600})
    at_once(kminion.write(page := Page(), [cluster()], {"local": extras}, "1.0", "kminion"))
    found = samples(page)
    prefix = "kminion_kafka"
    group, topic = f"{prefix}_consumer_group", {"group_id": G, "topic_name": "t"}
    broker = {"broker_id": "1", "address": "h", "port": "9092", "rack_id": "r"}
    assert one(found, "kminion_exporter_up", version="1.0") == 1
    assert one(found, "kminion_exporter_offset_consumer_records_consumed_total") == 7
    info = {"cluster_version": "v4.3", "broker_count": "1", "controller_id": "1", "cluster_id": "abc"}
    assert one(found, f"{prefix}_cluster_info", **info) == 1
    assert one(found, f"{prefix}_broker_info", **broker, is_controller="true") == 1
    assert one(found, f"{prefix}_broker_log_dir_size_total_bytes", **broker) == 1_000
    assert one(found, f"{prefix}_topic_log_dir_size_total_bytes", topic_name="t") == 600
    shape = {"partition_count": "2", "replication_factor": "2", "cleanup_policy": "N/A"}
    assert one(found, f"{prefix}_topic_info", topic_name="t", **shape) == 1
    assert one(found, f"{prefix}_topic_partition_high_water_mark", topic_name="t", partition_id="0") == 100
    assert one(found, f"{prefix}_topic_partition_low_water_mark", topic_name="t", partition_id="0") == 5
    assert one(found, f"{prefix}_topic_high_water_mark_sum", topic_name="t") == 150
    assert one(found, f"{prefix}_topic_low_water_mark_sum", topic_name="t") == 10
    state = {"protocol": "range", "protocol_type": "consumer", "state": "Stable", "coordinator_id": "1"}
    assert one(found, f"{group}_info", group_id=G, **state) == 1
    assert one(found, f"{group}_members", group_id=G) == 2
    assert one(found, f"{group}_empty_members", group_id=G) == 1
    assert one(found, f"{group}_offset_commits_total", group_id=G) == 2
    assert one(found, f"{group}_topic_members", **topic) == 1
    assert one(found, f"{group}_topic_assigned_partitions", **topic) == 1
    assert one(found, f"{group}_topic_offset_sum", **topic) == 90
    assert one(found, f"{group}_topic_lag", **topic) == 10
    assert one(found, f"{group}_topic_partition_lag", **topic, partition_id="0") == 10


def test_kafka_lag_exporters_names() -> None:
    at_once(lag_exporter.write(page := Page(), [cluster()], {"local": 1.5}, NOW_MS))
    found = samples(page)
    group = {"cluster_name": "local", "group": G}
    member = {"member_host": "/10.0.0.7", "consumer_id": "m-1", "client_id": "ann"}
    first = {**group, "topic": "t", "partition": "0", **member}
    assert one(found, "kafka_consumergroup_group_offset", **first) == 90
    assert one(found, "kafka_consumergroup_group_lag", **first) == 10
    assert one(found, "kafka_consumergroup_group_lag_seconds", **first) == 5.0
    assert one(found, "kafka_consumergroup_group_max_lag", **group) == 10
    assert one(found, "kafka_consumergroup_group_max_lag_seconds", **group) == 5.0
    assert one(found, "kafka_consumergroup_group_sum_lag", **group) == 10
    assert one(found, "kafka_consumergroup_group_topic_sum_lag", **group, topic="t") == 10
    assert one(found, "kafka_consumergroup_poll_time_ms", cluster_name="local") == 1.5
    place = {"cluster_name": "local", "topic": "t", "partition": "0"}
    assert one(found, "kafka_partition_latest_offset", **place) == 100
    assert one(found, "kafka_partition_earliest_offset", **place) == 5
    # As kafka-lag-exporter 0.8.2 does: no partitions that no group consumes, and `unknown` without a member.
    assert [name for name, labels in found if ("partition", "1") in labels] == []
    lag = cluster()
    lag.groups[G].topics["t"][0].owner = None
    at_once(lag_exporter.write(page := Page(), [lag], {}, NOW_MS))
    nobody = dict.fromkeys(member, "unknown")
    assert one(samples(page), "kafka_consumergroup_group_lag", **{**first, **nobody}) == 10


def test_a_lag_in_time_that_nobody_knows_is_no_number() -> None:
    lag = cluster()
    del lag.topics["t"].partitions[0].offset_times[:]
    at_once(lag_exporter.write(page := Page(), [lag], {}, NOW_MS))
    found = {name: value for (name, _), value in samples(page).items()}
    assert isnan(found["kafka_consumergroup_group_lag_seconds"])
    assert isnan(found["kafka_consumergroup_group_max_lag_seconds"])


def test_names_of_opentelemetrys_receiver() -> None:
    at_once(opentelemetry.write(page := Page(), [cluster()], NOW_MS))
    found = samples(page)
    assert one(found, "kafka_brokers") == 1
    assert one(found, "kafka_topic_partitions", topic="t") == 2
    assert one(found, "kafka_partition_replicas_in_sync", topic="t", partition="0") == 1
    assert one(found, "kafka_consumer_group_lag", group=G, topic="t", partition="0") == 10
    assert one(found, "kafka_consumer_group_lag_sum", group=G, topic="t") == 10
    assert one(found, "kafka_consumer_group_offset_sum", group=G, topic="t") == 90


def test_our_own_names() -> None:
    at_once(own.write(page := Page(), [cluster()], NOW_MS))
    found = samples(page)
    labels = {"cluster": "local", "group": G, "type": "Classic"}
    assert one(found, "barnabas_lag_group_records", **labels) == 10
    assert one(found, "barnabas_lag_group_seconds", **labels) == 5.0
    assert one(found, "barnabas_lag_group_status", **labels) == 3
    assert one(found, "barnabas_lag_groups", cluster="local") == 1


@pytest.mark.parametrize("dialect", [kafka_exporter, opentelemetry])
def test_several_clusters_get_a_label(dialect: object) -> None:
    at_once(dialect.write(page := Page(), [cluster("a"), cluster("b")], NOW_MS))  # type: ignore[attr-defined]
    assert {dict(labels)["cluster"] for _, labels in samples(page)} == {"a", "b"}


def test_a_page_has_the_names_that_are_asked_for(on_service: OnService, name: str) -> None:
    async def use(world: World) -> None:
        [at] = await world.topic(name, 10)
        await world.commit(name, at, 4)
        ask = "/metrics?dialect=kafka_exporter,kminion&dialect=lag_exporter"
        text = await world.until(ask, lambda text: f'kafka_consumergroup_lag{{consumergroup="{name}"' in text)
        found = samples(text)
        assert one(found, "kafka_consumergroup_lag", consumergroup=name, topic=name, partition="0") == 6
        kminion_lag = "kminion_kafka_consumer_group_topic_lag"
        assert one(found, kminion_lag, group_id=name, topic_name=name) == 6
        usual = samples((await world.http.get("/metrics")).text)
        assert one(usual, "burrow_kafka_consumer_lag_total", cluster="local", consumer_group=name) == 6
        assert not any(key.startswith("kminion_") for key, _ in usual)
        wrong = await world.http.get("/metrics?dialect=klingon")
        assert (wrong.status_code, wrong.json()["error_code"]) == (400, 40002)
        assert (await world.http.get("/metrics?cluster=none")).status_code == 404

    on_service(use)


def test_the_probe_measures_records_that_come_back(on_service: OnService, name: str) -> None:
    async def use(world: World) -> None:
        page = "/metrics?dialect=kminion"
        received = "kminion_end_to_end_messages_received_total"

        def has_arrived(text: str) -> bool:
            found = samples(text)
            return any(key == received and value >= 3 for (key, _), value in found.items())

        found = samples(await world.until(page, has_arrived))
        partition = {"partition_id": "0"}
        produced = one(found, "kminion_end_to_end_messages_produced_total", **partition)
        assert produced >= one(found, received, **partition) >= 3
        assert one(found, "kminion_end_to_end_messages_lost_total", **partition) == 0
        assert one(found, "kminion_end_to_end_messages_produced_failed_total", **partition) == 0
        assert one(found, "kminion_end_to_end_roundtrip_latency_seconds_count", **partition) >= 3
        assert one(found, "kminion_end_to_end_produce_latency_seconds_count", **partition) >= 3

    on_service(use, probe_enabled="true", probe_topic=name, probe_interval_ms="20")


def test_the_probe_goes_on_when_its_topic_changes(
    on_service: OnService, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "TOPIC_S", 0.2)

    async def use(world: World) -> None:
        async def received(partition: int, count: float) -> float:
            def has_arrived(text: str) -> bool:
                return value(text) > count

            def value(text: str) -> float:
                key = "kminion_end_to_end_messages_received_total"
                labels = frozenset({("partition_id", str(partition))})
                return samples(text).get((key, labels), 0.0)

            return value(await world.until("/metrics?dialect=kminion", has_arrived))

        await received(0, 0)
        await world.admin.create_partitions({name: 3})
        count = await received(2, 2)
        await world.admin.delete_topics([name])
        await received(0, count + 20)

    on_service(use, probe_enabled="true", probe_topic=name, probe_interval_ms="20")
