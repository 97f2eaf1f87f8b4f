"""How many partitions internal topics get, and topologies for which there is no answer."""

from __future__ import annotations

import pytest

from barnabas.groups.streams.partition_counts import PartitionCounts, Status, TopicProblem
from barnabas.groups.streams.topology import StreamsTopology, Subtopology, from_value
from barnabas.metadata.steps import at_once
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.log_records.consumer_offsets import StreamsGroupTopologyValue as Value

LINKS = 2_000


def info(name: str, partitions: int = 0) -> Value.TopicInfo:
    return Value.TopicInfo(name=name, partitions=partitions)


def topology(*subtopologies: Subtopology) -> StreamsTopology:
    return from_value(Value(subtopologies=list(subtopologies)))


def decided(found: StreamsTopology, **existing: int) -> dict[str, int]:
    return at_once(PartitionCounts(found, existing).decide())


def test_a_repartition_topic_is_as_large_as_what_its_writer_reads() -> None:
    found = topology(
        Subtopology(subtopology_id="0", source_topics=["a", "b"], repartition_sink_topics=["r"]),
        Subtopology(
            subtopology_id="1", repartition_source_topics=[info("r")], state_changelog_topics=[info("c")]
        ),
    )
    assert decided(found, a=3, b=5) == {"r": 5, "c": 5}


def test_a_repartition_topic_has_the_size_that_the_application_fixed() -> None:
    found = topology(
        Subtopology(subtopology_id="0", source_topics=["a"], repartition_sink_topics=["r"]),
        Subtopology(
            subtopology_id="1", repartition_source_topics=[info("r", 7)], state_changelog_topics=[info("c")]
        ),
    )
    assert decided(found, a=3) == {"r": 7, "c": 7}


def test_a_topic_beside_a_source_gets_its_size() -> None:
    together = Subtopology.CopartitionGroup(source_topics=[0], repartition_source_topics=[0])
    found = topology(
        Subtopology(subtopology_id="0", source_topics=["a"], repartition_sink_topics=["r"]),
        Subtopology(
            subtopology_id="1",
            source_topics=["b"],
            repartition_source_topics=[info("r")],
            copartition_groups=[together],
        ),
    )
    assert decided(found, a=3, b=8) == {"r": 8}


def test_sources_that_belong_together_must_have_one_size() -> None:
    together = Subtopology.CopartitionGroup(source_topics=[0, 1])
    found = topology(Subtopology(subtopology_id="0", source_topics=["a", "b"], copartition_groups=[together]))
    with pytest.raises(TopicProblem) as refused:
        decided(found, a=1, b=2)
    assert refused.value.status is Status.INCORRECTLY_PARTITIONED_TOPICS
    assert "[{a=1, b=2}]" in refused.value.detail


def test_a_loop_has_no_answer() -> None:
    found = topology(
        Subtopology(subtopology_id="0", repartition_source_topics=[info("a")], repartition_sink_topics=["b"]),
        Subtopology(subtopology_id="1", repartition_source_topics=[info("b")], repartition_sink_topics=["a"]),
    )
    with pytest.raises(KafkaError) as refused:
        decided(found)
    assert refused.value.code is ErrorCode.STREAMS_INVALID_TOPOLOGY


def test_a_chain_against_the_order_takes_steps_in_proportion_to_its_length() -> None:
    links = [
        Subtopology(
            subtopology_id=str(number),
            source_topics=["a"] if number == LINKS else [],
            repartition_source_topics=[info(f"r{number + 1}")] if number < LINKS else [],
            repartition_sink_topics=[f"r{number}"],
        )
        for number in range(LINKS + 1)
    ]
    counts = PartitionCounts(topology(*links), {"a": 4})
    assert sum(1 for _ in counts.decide()) < 6 * LINKS
    assert set(counts.decided.values()) == {4}
