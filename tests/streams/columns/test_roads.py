"""An explanation names the road of each step, and what keeps a step from columns."""

from __future__ import annotations

from collections.abc import Callable

from tests.streams.columns.batches import plan

from barnabas.streams import JoinWindows, StreamsBuilder, TimeWindows, call, key, left, lit, right, value
from barnabas.streams.columns.roads import explain, roads


def words(builder: StreamsBuilder) -> None:
    split = builder.stream("lines", value=str).flat_map_values(call("split", value(), lit(" ")), value=str)
    split.group_by(value(), key=str, name="words").count().to_stream().to("counts")


def test_built_in_functions_run_over_columns() -> None:
    found = roads(plan(words))
    assert [str(road) for some in found.values() for road in some] == ["columns"] * 9


def test_functions_in_python_are_named() -> None:
    def build(builder: StreamsBuilder) -> None:
        users = builder.global_table("users", value=str)
        stream = builder.stream("in", value=str).filter(lambda key, text: True)
        stream.join(users, call("round", left(), right()), on=key(), value=str).to("out")

    [some] = roads(plan(build)).values()
    assert [str(road) for road in some][1:3] == [
        "columns, with Python for each value: <lambda>()",
        "columns, with Python for each value: round() has no form over columns",
    ]


def test_one_step_sends_its_sub_topology_record_by_record() -> None:
    def build(builder: StreamsBuilder) -> None:
        grouped = builder.stream("in", value=str).group_by_key().windowed_by(TimeWindows(10, 10)).final()
        grouped.count().to_stream().to("out")

    text = explain(plan(build))
    assert "KSTREAM-AGGREGATE-0000000002: record by record: windows by records, or final results" in text
    assert "KSTREAM-SOURCE-0000000000: record by record: KSTREAM-AGGREGATE-0000000002 of the same" in text


def test_a_stream_that_is_joined_with_itself_runs_record_by_record() -> None:
    def joined(is_self: bool) -> Callable[[StreamsBuilder], None]:
        def build(builder: StreamsBuilder) -> None:
            one = builder.stream("one", value=str)
            two = one if is_self else builder.stream("two", value=str)
            one.join(two, left(), JoinWindows(5, 5), value=str).to("out")

        return build

    roads_of = {is_self: roads(plan(joined(is_self)))[0] for is_self in (True, False)}
    assert all(road.obstacle is None for road in roads_of[False])
    assert any("must pass one before the other" in str(road) for road in roads_of[True])
