"""Sums of contents by columns are those of single records."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import StructType

from audit.counted import T0, ledger_of
from barnabas.audit import PRODUCER
from barnabas.audit.cluster.remote_counter import RemoteCounter
from barnabas.audit.core.batch_counts import Opens
from barnabas.audit.core.buckets import bucket_of
from barnabas.audit.core.contents import MODULUS_MASK, content_of
from barnabas.audit.lake.contents import by_bucket, contents_of
from barnabas.audit.lake.topics import audited
from barnabas.client.cluster import Cluster
from barnabas.client.core.address import parse_bootstrap
from barnabas.spark.sink import write_rows
from barnabas.spark.sink_options import sink_options
from barnabas.testing import Broker

WIDTH = 1_000
parts = st.none() | st.binary(max_size=5)
Row = tuple[bytes | None, bytes | None, int]
rows = st.lists(st.tuples(parts, parts, st.integers(-1, 5_000) | st.integers(2**40, 2**62)), max_size=30)


@given(rows)
def test_columns_have_the_numbers_of_their_records(
    records: list[tuple[bytes | None, bytes | None, int]],
) -> None:
    columns = tuple(pa.array([each[at] for each in records], pa.binary()) for at in (0, 1))
    stamps = np.array([each[2] for each in records], np.int64)
    expected = [content_of(*each) for each in records]
    contents = contents_of((columns[0], columns[1]), stamps)
    assert contents.tolist() == expected
    sums: dict[int, list[int]] = {}
    for (_, _, stamp), content in zip(records, expected, strict=True):
        sums.setdefault(bucket_of(stamp, WIDTH), []).append(content)
    assert {
        bucket_of(stamp, WIDTH): (count, content)
        for stamp, count, content in by_bucket(stamps, WIDTH, contents)
    } == {bucket: (len(some), sum(some) & MODULUS_MASK) for bucket, some in sums.items()}


@pytest.mark.parametrize("is_append_time", [False, True])
def test_a_sink_counts_what_the_brokers_have_at_the_time_of_their_log(
    counting: Broker, new_topic: Callable[..., str], is_append_time: bool
) -> None:
    """Rows without a timestamp, and a topic that gives its own: both would be counted at another time."""
    topic = new_topic(2, message_timestamp_type="LogAppendTime" if is_append_time else "CreateTime")
    rows = {"key": [b"a", None, b"c"], "value": [b"1", None, "é".encode()], "partition": [0, 1, 1]}
    types = (pa.binary(), pa.binary(), pa.int32())
    columns = [pa.array(each, type_) for each, type_ in zip(rows.values(), types, strict=True)]
    stamps = pa.array([T0 * 1_000, None, T0 * 1_000], pa.timestamp("us", "UTC"))
    batch = pa.RecordBatch.from_arrays([*columns, stamps], names=[*rows, "timestamp"])
    options = {"kafka.bootstrap.servers": counting.bootstrap, "topic": topic, **audited(sums="true")}
    schema = StructType().add("key", "binary").add("value", "binary").add("partition", "integer")
    write_rows(sink_options(options, schema.add("timestamp", "timestamp")), iter([batch]), None)
    asyncio.run(count_contents(counting.bootstrap, topic))
    tallies = [
        (column[PRODUCER].by_partition(), column["cluster/outside"].by_partition())
        for (name, _), column in ledger_of(counting.bootstrap).columns.items()
        if name == topic
    ]
    assert len(tallies) == (1 if is_append_time else 2)
    assert all(sink == log for sink, log in tallies)
    assert sum(each.summed for sink, _ in tallies for each in (sink or {}).values()) == 3


async def count_contents(bootstrap: str, topic: str) -> None:
    addresses = parse_bootstrap(bootstrap)
    async with Cluster(addresses) as counted, Cluster(addresses) as audited_:
        tier = "cluster/outside"
        counter = RemoteCounter(counted, audited_, tier=tier, topics={topic}, opens=Opens.CONTENTS)
        await counter.count_all()
        await counter.close()
