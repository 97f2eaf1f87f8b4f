"""Records out of a fetch: from the position on, without markers, without what was aborted."""

import pytest

from barnabas.client.core.fetching import DamagedBatch, PartitionData, fetch_request, read_partition
from barnabas.client.core.topology import Partition, Topic, TopicPartition
from barnabas.protocol.messages.fetch import FetchResponse
from barnabas.records.batch import TimestampType
from barnabas.records.control import EndMarker, build_end_marker
from barnabas.records.record import Record, build_batch

WHERE = TopicPartition("t", 0)
Aborted = FetchResponse.FetchableTopicResponse.PartitionData.AbortedTransaction


def batch(offset: int, *values: bytes, producer: int = -1, **settings: object) -> bytes:
    records = [Record(timestamp=1, value=value) for value in values]
    transactional = producer >= 0
    return bytes(
        build_batch(
            records,
            base_offset=offset,
            producer_id=producer,
            producer_epoch=0 if transactional else -1,
            base_sequence=0 if transactional else -1,
            transactional=transactional,
            **settings,  # type: ignore[arg-type]
        )
    )


def marker(offset: int, producer: int, *, aborted: bool) -> bytes:
    return bytes(build_end_marker(EndMarker(aborted, 0), producer, 0, 1, base_offset=offset))


def values(
    data: bytes, position: int = 0, aborted: list[tuple[int, int]] | None = None
) -> tuple[list[bytes | None], int]:
    listed = [Aborted(producer_id=producer, first_offset=first) for producer, first in aborted or ()]
    partition = PartitionData(records=data, aborted_transactions=listed)
    records, after = read_partition(WHERE, partition, position, read_committed=aborted is not None)
    return [record.value for record in records], after


def test_records_before_the_position_are_left_out() -> None:
    data = batch(0, b"a", b"b", b"c") + batch(3, b"d")
    assert values(data, 1) == ([b"b", b"c", b"d"], 4)


def test_a_cut_batch_at_the_end_is_left_for_the_next_fetch() -> None:
    data = batch(0, b"a") + batch(1, b"b")[:-3]
    assert values(data) == ([b"a"], 1)


def test_nothing_moves_nothing() -> None:
    assert values(b"", 7) == ([], 7)


def test_markers_are_not_shown_but_passed() -> None:
    data = batch(0, b"a", producer=5) + marker(1, 5, aborted=False)
    assert values(data) == ([b"a"], 2)


def test_read_committed_leaves_aborted_transactions_out() -> None:
    data = (
        batch(0, b"bad", producer=5)
        + batch(1, b"good", producer=6)
        + marker(2, 5, aborted=True)
        + batch(3, b"again", producer=5)
        + marker(4, 5, aborted=False)
        + marker(5, 6, aborted=False)
    )
    assert values(data, aborted=[(5, 0)]) == ([b"good", b"again"], 6)


def test_read_uncommitted_shows_them() -> None:
    data = batch(0, b"bad", producer=5) + marker(1, 5, aborted=True)
    assert values(data) == ([b"bad"], 2)


def test_append_time_is_told_apart() -> None:
    partition = PartitionData(records=batch(0, b"a", append_time_ms=9))
    [record], _ = read_partition(WHERE, partition, 0, read_committed=False)
    assert (record.timestamp_type, record.timestamp) == (TimestampType.LOG_APPEND_TIME, 9)


def test_what_comes_before_a_damaged_batch_is_given_first() -> None:
    damaged = bytearray(batch(1, b"b"))
    damaged[-1] ^= 1
    data = batch(0, b"a") + damaged
    assert values(data) == ([b"a"], 1)
    with pytest.raises(DamagedBatch, match="offsets 1 to 1 of t-0 cannot be read") as caught:
        values(data, 1)
    assert caught.value.next_offset == 2


def test_a_fetch_that_begins_at_an_abort_marker_shows_the_next_transaction() -> None:
    data = marker(2, 5, aborted=True) + batch(3, b"good", producer=5) + marker(4, 5, aborted=False)
    assert values(data, position=2, aborted=[(5, 0)]) == ([b"good"], 5)


@pytest.mark.parametrize(("replica_id", "expected"), [(-1, 7), (-2, -1)])
def test_a_consumer_names_the_leader_epoch_that_it_knows(replica_id: int, expected: int) -> None:
    topics = {"t": Topic("t", partitions={0: Partition(0, 3, 7, (3,), (3,))})}
    request = fetch_request(
        {WHERE: 60, TopicPartition("t", 1): 0},
        topics,
        12,
        wait_ms_max=0,
        bytes_max=1,
        partition_bytes_max=1,
        replica_id=replica_id,
    )
    [topic] = request.topics
    assert [each.current_leader_epoch for each in topic.partitions] == [expected, -1]
