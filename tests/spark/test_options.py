"""Options of a query: the names of Spark's connector, and one sentence for each mistake."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("pyarrow", reason="needs the extra `spark`")

from barnabas.client.core.topology import TopicPartition
from barnabas.spark.basics.settings import OptionError
from barnabas.spark.options import duration_ms, source_options
from barnabas.spark.planning import cut, limited, split
from barnabas.spark.positions import EARLIEST, LATEST, from_checkpoint, to_checkpoint
from barnabas.spark.reading.fetcher import OffsetRange

BASE = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "t"}


def test_defaults_are_those_of_sparks_connector() -> None:
    batch, stream = (source_options(BASE, streaming=streaming) for streaming in (False, True))
    assert (batch.starting.special, batch.ending.special) == (EARLIEST, LATEST)
    assert stream.starting.special == LATEST
    assert batch.fails_on_data_loss and batch.poll_timeout_ms == 120_000 and batch.offset_retries == 3
    assert batch.columns == ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")


def test_names_of_options_do_not_mind_case() -> None:
    options = source_options({**BASE, "FAILONDATALOSS": "False", "IncludeHeaders": "true"}, streaming=True)
    assert not options.fails_on_data_loss and options.columns[-1] == "headers"


@pytest.mark.parametrize(
    ("changed", "streaming", "message"),
    [
        ({"kafka.bootstrap.servers": " "}, False, "kafka.bootstrap.servers is missing"),
        ({"subscribe": ""}, False, "option subscribe is empty"),
        ({"subscribe": " , "}, False, "subscribe names no topic"),
        ({"assign": '{"t": [0]}'}, False, "subscribe and assign are given"),
        ({"subscribe": None}, False, "exactly one of the options subscribe, subscribePattern, assign"),
        ({"subscribe": None, "subscribePattern": "("}, False, "subscribePattern is no regular expression"),
        ({"subscribe": None, "assign": "[]"}, False, "option assign is '[]'"),
        ({"subscribe": None, "assign": "{}"}, False, "assign names no partition"),
        ({"startingOffsets": "latest"}, False, "startingOffsets cannot be latest in a batch query"),
        ({"startingOffsets": '{"t": {"0": -1}}'}, False, "startingOffsets cannot be latest"),
        ({"startingOffsets": "newest"}, True, "startingOffsets is 'newest'"),
        ({"startingOffsets": "{"}, True, "startingOffsets is '{', it must look like"),
        ({"startingOffsets": '{"t": {"0": "5"}}'}, True, "startingOffsets is"),
        ({"startingOffsets": '{"t": {"0": -3}}'}, True, "offset -3"),
        ({"endingOffsets": "earliest"}, False, "endingOffsets cannot be earliest"),
        ({"endingOffsets": '{"t": {"0": -2}}'}, False, "endingOffsets cannot be earliest"),
        ({"endingOffsets": "latest"}, True, "endingOffsets is for batch queries"),
        ({"startingTimestamp": "yesterday"}, True, "startingTimestamp is 'yesterday'"),
        ({"startingOffsetsByTimestamp": '{"t": {"0": -5}}'}, True, "negative timestamp"),
        ({"startingOffsetsByTimestampStrategy": "x"}, True, "startingOffsetsByTimestampStrategy"),
        ({"failOnDataLoss": "maybe"}, True, "failOnDataLoss is 'maybe'"),
        ({"minPartitions": "0"}, True, "minPartitions is 0, it must be at least 1"),
        ({"maxOffsetsPerTrigger": "5", "minOffsetsPerTrigger": "6"}, True, "minOffsetsPerTrigger (6)"),
        ({"maxTriggerDelay": "soon"}, True, "maxTriggerDelay is 'soon'"),
        ({"columns": "key,lag"}, True, "columns names 'lag'"),
        ({"columns": "key,KEY"}, True, "columns names 'KEY' twice"),
        ({"startingOfsets": "earliest"}, True, "did you mean startingOffsets?"),
        ({"kafka.auto.offset.reset": "earliest"}, True, "use the option startingOffsets"),
        ({"kafka.isolation.level": "dirty"}, True, "kafka.isolation.level is 'dirty'"),
        ({"kafka.security.protocol": "TLS"}, True, "kafka.security.protocol is TLS, it may be PLAINTEXT"),
        ({"kafka.request.timeout.ms": "x"}, True, "kafka.request.timeout.ms is 'x'"),
    ],
)
def test_a_mistake_is_named_before_the_query_starts(
    changed: dict[str, str | None], streaming: bool, message: str
) -> None:
    given = {name: value for name, value in {**BASE, **changed}.items() if value is not None}
    with pytest.raises(OptionError, match=re.escape(message)):
        source_options(given, streaming=streaming)


def test_positions_come_back_from_a_checkpoint() -> None:
    offsets = {TopicPartition("a", 10): 5, TopicPartition("a", 2): 0, TopicPartition("b-1", 0): 2**40}
    assert to_checkpoint(offsets) == {"a": {"2": 0, "10": 5}, "b-1": {"0": 2**40}}
    assert from_checkpoint(to_checkpoint(offsets)) == offsets


def test_the_first_of_several_ways_to_begin_counts() -> None:
    options = source_options(
        {**BASE, "startingTimestamp": "1000", "startingOffsets": "earliest"}, streaming=True
    )
    assert options.starting.timestamp_ms == 1000 and options.starting.special is None


@pytest.mark.parametrize(
    ("text", "ms"), [("15m", 900_000), ("90 s", 90_000), ("250ms", 250), ("2 hours", 7_200_000)]
)
def test_times_are_written_as_people_write_them(text: str, ms: int) -> None:
    assert duration_ms(text, "maxTriggerDelay") == ms


def test_a_limit_is_shared_in_proportion() -> None:
    first, second, third = (TopicPartition("t", index) for index in range(3))
    start = {first: 0, second: 0, third: 100}
    end = {first: 900, second: 99, third: 101}
    assert limited(start, end, 100) == {first: 90, second: 9, third: 101}
    assert limited(start, end, 5000) == end


def span(partition: int, start: int, stop: int) -> OffsetRange:
    return OffsetRange("t", b"", partition, start, stop)


def test_ranges_are_cut_and_cover_everything_once() -> None:
    whole = [span(0, 0, 1000), span(1, 50, 60), span(2, 7, 7)]
    parts = split(whole, min_partitions=5, rows_max=None)
    assert len(parts) == 5
    assert sum(each.stop - each.start for each in parts) == 1010
    by_size = split(whole, None, rows_max=300)
    assert max(each.stop - each.start for each in by_size) <= 300 and len(by_size) == 5
    assert cut(span(0, 0, 2), 10) == [span(0, 0, 1), span(0, 1, 2)]
