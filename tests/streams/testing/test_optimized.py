"""Topologies that are optimized: Kafka Streams' description, and the results that they had before."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.streams.testing import oracle

from barnabas.plans.description import describe
from barnabas.plans.plan import Plan
from barnabas.plans.stores import StoreKind
from barnabas.spark.jars import cache_folder
from barnabas.streams import JoinWindows, KStream, StreamsBuilder, TestDriver
from barnabas.streams.run.topologies import TopologyError, load_plan

HERE = Path(__file__).parent
RECORDED = json.loads((HERE / "optimized.json").read_text())
OPTIMIZATIONS = "reuse.ktable.source.topics,merge.repartition.topics"
Texts = KStream[str, str]
WINDOWS = JoinWindows(10, 10, grace_ms=5)


def initial(key: str, value: str) -> str:
    return value[0]


def together(one: str, other: str) -> str:
    return one + other


def stream(builder: StreamsBuilder, topic: str) -> Texts:
    return builder.stream(topic, value=str)


def keyed(builder: StreamsBuilder) -> Texts:
    return stream(builder, "one").select_key(initial, key=str)


def count(given: Texts, topic: str) -> None:
    given.group_by_key(value=str).count().to_stream().map_values(str, value=str).to(topic)


def reduce(given: Texts, topic: str) -> None:
    given.group_by_key(value=str).reduce(together).to_stream().to(topic)


def two_groups(builder: StreamsBuilder) -> None:
    again = keyed(builder)
    count(again, "counts")
    reduce(again, "texts")


def steps_between(builder: StreamsBuilder) -> None:
    moved = stream(builder, "one").map(lambda key, value: (value[0], value), key=str, value=str)
    count(moved.filter(lambda key, value: not value.endswith("3")), "counts")
    seen = moved.peek(lambda key, value: None)
    reduce(seen, "texts")
    seen.to("copies")
    moved.to("keyed")


def values_change(builder: StreamsBuilder) -> None:
    again = keyed(builder)
    count(again.map_values(lambda value: value + "!", value=str), "counts")
    reduce(again, "texts")
    count(again, "more")


def one_group(builder: StreamsBuilder) -> None:
    count(keyed(builder), "counts")


def named(builder: StreamsBuilder) -> None:
    again = keyed(builder)
    again.group_by_key(name="first").count().to_stream().map_values(str, value=str).to("counts")
    again.group_by_key(name="second").reduce(together).to_stream().to("texts")


def join(builder: StreamsBuilder) -> None:
    again = keyed(builder)
    again.join(stream(builder, "two"), together, WINDOWS, value=str).to("joined")
    count(again, "counts")


def join_table(builder: StreamsBuilder) -> None:
    again = stream(builder, "one").flat_map(lambda key, value: [(value[0], value)], key=str, value=str)
    again.join(builder.table("two", value=str), together, value=str).to("joined")
    count(again, "counts")


def merged(builder: StreamsBuilder) -> None:
    one = keyed(builder)
    both = one.merge(stream(builder, "two").select_key(lambda key, value: value[1:], key=str))
    count(both, "counts")
    reduce(both, "texts")


def merged_half(builder: StreamsBuilder) -> None:
    both = keyed(builder).merge(stream(builder, "two"))
    count(both, "counts")
    reduce(both, "texts")


def to_table(builder: StreamsBuilder) -> None:
    again = keyed(builder)
    again.to_table(store="kept").to_stream().to("rows")
    count(again, "counts")


def two_keys(builder: StreamsBuilder) -> None:
    again = keyed(builder)
    count(again, "counts")
    by_value = again.select_key(lambda key, value: value, key=str)
    count(by_value, "more")
    reduce(by_value, "texts")


def explicit(builder: StreamsBuilder) -> None:
    moved = keyed(builder).repartition("moved")
    count(moved, "counts")
    reduce(moved, "texts")


def branches(builder: StreamsBuilder) -> None:
    """Kafka Streams 4.3.1 cannot optimize this: two repartitions behind one step."""
    parts = keyed(builder).split({"a": lambda key, value: value.endswith("1")}, default="rest")
    count(parts["a"], "counts")
    reduce(parts["rest"], "texts")


SAME: list[Callable[[StreamsBuilder], None]] = [
    two_groups, steps_between, values_change, one_group, named, merged, merged_half, to_table, two_keys,
    explicit,
]  # fmt: skip
# Streams that are repartitioned for a join have other names in Kafka Streams, optimized or not.
NAMED_OTHERWISE: list[Callable[[StreamsBuilder], None]] = [join, join_table]


def plan_of(build: Callable[[StreamsBuilder], None], optimization: str) -> Plan:
    builder = StreamsBuilder("application")
    build(builder)
    return builder.build(optimization)


@pytest.mark.parametrize("build", SAME, ids=lambda build: build.__name__)
def test_descriptions_are_those_of_kafka_streams(build: Callable[[StreamsBuilder], None]) -> None:
    text = describe(plan_of(build, OPTIMIZATIONS))
    assert lines_of(text) == lines_of("\n".join(RECORDED[build.__name__]))


def lines_of(description: str) -> list[str]:
    """The lines of a description. Kafka Streams orders successors of a node by sizes that it is still
    counting, so hashes of names decide."""
    lines = description.rstrip().splitlines()
    return [
        "      --> " + ", ".join(sorted(line.partition("--> ")[2].split(", "))) if "-->" in line else line
        for line in lines
    ]


@pytest.mark.parametrize("build", [*SAME, *NAMED_OTHERWISE, branches], ids=lambda build: build.__name__)
def test_results_are_those_of_the_topology_as_it_was(build: Callable[[StreamsBuilder], None]) -> None:
    found = []
    for optimization in ("none", "all"):
        rng = random.Random(build.__name__)
        plan = plan_of(build, optimization)
        read = {topic for part in plan.subtopologies for topic in part.source_topics} & {"one", "two"}
        with TestDriver(plan) as driver:
            for time in range(300):
                key = rng.choice("abc") if rng.random() < 0.9 else None
                value = f"{rng.choice('abc')}{rng.randint(0, 9)}"
                driver.input(rng.choice(sorted(read)), value=str).pipe(key, value, time)
            topics = ("counts", "texts", "more", "joined", "copies", "keyed", "rows")
            found.append(
                {topic: sorted(map(repr, driver.output(topic, value=str).pairs())) for topic in topics}
            )
    assert found[0] == found[1]
    assert any(found[0].values())


def test_one_repartition_topic_takes_the_place_of_several() -> None:
    def topics(optimization: str) -> list[str]:
        return [topic.name for topic in plan_of(branches, optimization).repartition_topics]

    assert len(topics("none")) == 2
    assert topics("merge.repartition.topics") == topics("none")[:1]
    assert topics("reuse.ktable.source.topics") == topics("none")


def test_a_source_topic_is_the_changelog_of_its_table() -> None:
    builder = StreamsBuilder("tables")
    builder.table("plain", store="plain")
    builder.table("versions", store="versions", history_ms=10)
    builder.table("timed", store="timed", timestamp=lambda value, time: time)
    builder.stream("one").to_table(store="made")
    builder.global_table("everywhere", store="everywhere")
    stores = builder.build("all").stores
    assert stores["versions"].kind is StoreKind.VERSIONED
    assert {name for name, spec in stores.items() if spec.source_topic is not None} == {"plain"}
    assert stores["plain"].changelog_topic("tables") == "plain"
    assert all(spec.source_topic is None for spec in builder.build().stores.values())


def test_a_name_that_is_no_optimization_is_refused() -> None:
    with pytest.raises(ValueError, match=r"topology\.optimization 'most': give all, none, or some of"):
        plan_of(one_group, "most")


def test_a_plan_cannot_be_optimized_any_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "optimized_topology.py").write_text(
        "from barnabas.streams import StreamsBuilder\n"
        "builder = StreamsBuilder('shop')\n"
        "builder.table('items', store='items')\n"
        "plan = builder.build()\n"
    )
    monkeypatch.chdir(tmp_path)
    stores = load_plan("optimized_topology:builder", "shop", "all").stores
    assert stores["items"].source_topic == "items"
    with pytest.raises(TopologyError, match="needs the builder that makes it"):
        load_plan("optimized_topology:plan", "shop", "all")


@pytest.mark.long
def test_recorded_descriptions_are_still_those_of_java(tmp_path: Path) -> None:
    if reason := oracle.missing():
        pytest.skip(reason)
    ran = subprocess.run(
        ["java", "-cp", f"{cache_folder(oracle.JARS)}/*", str(HERE / "java" / "Optimized.java"), *RECORDED],
        capture_output=True,
        text=True,
        timeout=oracle.TIMEOUT_S,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    found: dict[str, list[str]] = {}
    for line in ran.stdout.splitlines():
        word, _, text = line.partition("\t")
        if word == "topology":
            found[text] = []
        else:
            found[list(found)[-1]].append(text)
    assert found == RECORDED
