"""Internal topics have Kafka Streams' names, partitions and settings."""

import pytest

from barnabas.plans.aggregates import BuiltIns, F
from barnabas.plans.nodes import Sink, Source, StreamAggregate
from barnabas.plans.plan import Plan, PlanError
from barnabas.plans.stores import StoreKind, StoreSpec
from barnabas.streams import StreamsBuilder
from barnabas.streams.spark.internal_topics import internal_topics, repartition_counts

COUNTS = BuiltIns(((None, F.count()),))


def word_count(partitions: int | None = None, kind: StoreKind = StoreKind.TIMESTAMPED) -> Plan:
    store = StoreSpec("counts", kind, retention_ms=60_000)
    return Plan(
        (
            Source(name="in", topics=("lines",)),
            Sink(
                name="out",
                parents=("in",),
                topic="app-x-repartition",
                is_internal=True,
                partitions=partitions,
            ),
            Source(name="again", topics=("app-x-repartition",), is_internal=True),
            StreamAggregate(name="count", parents=("again",), store="counts", aggregate=COUNTS),
        ),
        {"counts": store},
        application_id="app",
    )


def test_a_repartition_topic_has_the_partitions_of_what_writes_it() -> None:
    found = {topic.name: topic for topic in internal_topics(word_count(), {"lines": 3})}
    assert {name: topic.partitions for name, topic in found.items()} == {
        "app-x-repartition": 3,
        "app-counts-changelog": 3,
    }
    assert found["app-x-repartition"].settings["retention.ms"] == "-1"
    assert found["app-counts-changelog"].settings["cleanup.policy"] == "compact"


def test_a_number_of_partitions_that_was_given_holds() -> None:
    assert [topic.partitions for topic in internal_topics(word_count(5), {"lines": 3})] == [5, 5]


def test_changelogs_of_windows_are_kept_a_day_longer() -> None:
    changelog = internal_topics(word_count(kind=StoreKind.WINDOW), {"lines": 1})[1]
    assert changelog.settings["cleanup.policy"] == "compact,delete"
    assert changelog.settings["retention.ms"] == str(60_000 + 24 * 3600 * 1000)


def test_topics_that_are_joined_must_have_the_same_partitions() -> None:
    plan = Plan(
        (Source(name="a", topics=("left",)), Source(name="b", topics=("right",))),
        copartitioned=(frozenset({"a", "b"}),),
    )
    with pytest.raises(PlanError, match="left has 2, right has 3"):
        internal_topics(plan, {"left": 2, "right": 3})


def test_topics_of_a_foreign_key_join_match_the_tables_that_they_lead_to() -> None:
    builder = StreamsBuilder("fk")
    orders, users = builder.table("orders"), builder.table("users")
    orders.join(users, lambda order, user: order, foreign_key=lambda order: order["user"]).to_stream().to(
        "out"
    )
    plan = builder.build()
    counts = repartition_counts(plan, {"orders": 3, "users": 5})
    assert {name.split("-")[5]: count for name, count in counts.items()} == {"REGISTRATION": 5, "RESPONSE": 3}
