"""Reads anywhere in a log, against a list of batches as the model."""

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.records.batch import BatchHeader
from barnabas.storage import Log, LogSettings
from barnabas.storage.files.open_files import OpenFiles

from .building import NOW_MS, append, batch_at, fill, read_all


def test_a_read_begins_with_the_batch_that_holds_the_offset(log: Log) -> None:
    append(log, batch_at(0, 5), batch_at(5, 5))

    assert log.read(7, 1000).read() == batch_at(5, 5)


def test_a_read_is_cut_at_a_batch_boundary(log: Log) -> None:
    append(log, batch_at(0), batch_at(1), batch_at(2))
    size = len(batch_at(0))

    assert len(log.read(0, 2 * size + 10)) == 2 * size


def test_the_first_batch_comes_whole_even_if_it_is_larger(log: Log) -> None:
    append(log, batch_at(0, value_bytes=500), batch_at(1))

    assert log.read(0, 10).read() == batch_at(0, value_bytes=500)
    assert log.read(0, 10, at_least_one=False).read() == b""


def test_one_batch_comes_however_few_bytes_are_asked_for(log: Log) -> None:
    append(log, batch_at(0), batch_at(1), batch_at(2))

    for read in (log.read, log.read_cold):
        assert read(1, 0, 2).read() == batch_at(1)
        assert read(1, 0, 3).read() == batch_at(1)


def test_nothing_at_or_above_the_upper_offset_is_read(log: Log) -> None:
    append(log, batch_at(0, 2), batch_at(2, 2), batch_at(4, 2))

    assert log.read(0, 10_000, 4).next_offset == 4
    assert log.read(0, 10_000, 3).next_offset == 2  # a batch is below the bound as a whole, or not read
    assert log.read(2, 10_000, 2).read() == b""


@pytest.mark.parametrize("offset", [-1, 2, 8])
def test_offsets_outside_of_the_log_are_out_of_range(log: Log, offset: int) -> None:
    append(log, batch_at(0), batch_at(1), batch_at(2, 5))
    log.advance_log_start(3)

    with pytest.raises(KafkaError) as refused:
        log.read(offset, 1000)
    assert refused.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_the_end_of_the_log_can_be_read_and_is_empty(log: Log) -> None:
    fill(log, 3)
    assert len(log.read(3, 1000)) == 0


def test_a_gap_between_batches_leads_to_the_next_one(log: Log) -> None:
    append(log, batch_at(0), batch_at(50), batch_at(51))

    assert log.read(20, 1).read() == batch_at(50)


def test_a_slice_outlives_its_segment(log: Log) -> None:
    appended = fill(log, 100)
    found = log.read(0, 1500)
    expected = b"".join(appended)[: len(found)]
    log.truncate_fully_and_start_at(1000)

    assert found.read() == expected


def test_a_slice_outlives_its_partition(log: Log) -> None:
    appended = fill(log, 1)
    found = log.read(0, 1500)
    log.delete()

    assert found.read() == appended[0]
    assert not Path(log.directory).exists()


def test_a_slice_of_bytes_that_were_truncated_is_an_error_not_a_short_answer(log: Log) -> None:
    fill(log, 5)
    found = log.read(0, 1500)
    log.truncate_to(2)

    with pytest.raises(KafkaError) as refused:
        found.read()
    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR


def test_reads_at_the_end_are_hot_and_old_ones_are_not(log: Log) -> None:
    fill(log, 200)

    assert log.is_likely_cached(199)
    assert log.read(199, 1000).likely_cached
    assert not log.is_likely_cached(0)
    assert not log.read(0, 1000).likely_cached


def test_reading_on_needs_no_search(log: Log) -> None:
    fill(log, 100)
    first = log.read(0, 300)

    assert first.next_offset in log.cursors
    assert log.cursors[first.next_offset] == (log.segments[0], first.position + len(first), 0)


def test_readers_that_are_remembered_are_bounded(directory: str) -> None:
    log = Log.create(directory, LogSettings(index_interval_bytes=100), now_ms=NOW_MS)
    fill(log, 1500, value_bytes=1)
    for offset in range(0, 400, 2):
        log.read(offset, 100)

    assert len(log.cursors) <= 128


def test_many_segments_need_few_descriptors(log: Log) -> None:
    log.context.files = OpenFiles(log.context.disk, limit=3)
    appended = fill(log, 300)

    assert read_all(log) == appended
    assert sum(segment.file is not None for segment in log.segments) <= 3


class ReadingMachine(RuleBasedStateMachine):
    """Appends, rolls, restarts and truncations; after each, reads agree with a list of batches."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp()
        self.directory = f"{self.folder}/t-0"
        self.appended: list[bytearray] = []

    @property
    def batches(self) -> list[bytearray]:
        """What is written; staging may write by itself when its buffer or a segment is full."""
        return [batch for batch in self.appended if BatchHeader(batch).last_offset < self.log.written_offset]

    @initialize(
        segment_bytes=st.sampled_from([400, 1000, 1 << 20]), interval=st.sampled_from([0, 100, 1000, 1 << 20])
    )
    def create(self, segment_bytes: int, interval: int) -> None:
        self.settings = LogSettings(segment_bytes=segment_bytes, index_interval_bytes=interval)
        self.log = Log.create(self.directory, self.settings, now_ms=NOW_MS)

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    @rule(
        sizes=st.lists(st.integers(0, 120), min_size=1, max_size=12),
        count=st.integers(1, 4),
        gap=st.sampled_from([0, 0, 0, 1, 7]),
    )
    def stage(self, sizes: list[int], count: int, gap: int) -> None:
        for size in sizes:
            batch = batch_at(self.log.end_offset + gap, count, value_bytes=size // count)
            self.log.stage(memoryview(batch), BatchHeader(batch), NOW_MS)
            self.appended.append(batch)

    @rule()
    def write(self) -> None:
        self.log.write_staged()
        assert self.batches == self.appended

    @rule()
    def roll(self) -> None:
        self.log.roll()
        assert self.batches == self.appended

    @rule(clean=st.booleans(), sync=st.booleans())
    def restart(self, clean: bool, sync: bool) -> None:
        self.write()
        if sync:
            self.log.sync()
        if clean:
            self.log.close()
        self.log = Log.open(
            self.directory,
            self.settings,
            recovery_point=self.log.recovery_point,
            log_start_offset=self.log.log_start_offset,
            clean=clean,
            now_ms=NOW_MS,
        )

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        self.write()
        offset = data.draw(st.integers(0, self.log.end_offset))
        self.log.truncate_to(offset)
        self.appended = [batch for batch in self.appended if BatchHeader(batch).last_offset < offset]

    @rule(data=st.data(), max_bytes=st.integers(0, 2000), at_least_one=st.booleans())
    @precondition(lambda self: self.batches)
    def read(self, data: st.DataObject, max_bytes: int, at_least_one: bool) -> None:
        written = self.log.written_offset
        offset = data.draw(st.integers(0, written), "offset")
        upper = data.draw(st.one_of(st.just(1 << 62), st.integers(0, written)), "upper")
        read = data.draw(st.sampled_from([self.log.read, self.log.read_cold]), "how")
        found = read(offset, max_bytes, upper, at_least_one)
        content = found.read()

        below = [b for b in self.batches if offset <= BatchHeader(b).last_offset < upper]
        assert b"".join(below).startswith(content)
        assert len(content) <= max_bytes or content == bytes(below[0])
        sizes = [0]
        for batch in below:
            sizes.append(sizes[-1] + len(batch))
        assert len(content) in sizes
        if below and offset < upper and (at_least_one or len(below[0]) <= max_bytes):
            assert content
        if content:
            assert found.next_offset <= upper or upper == 1 << 62
            assert found.next_offset > BatchHeader(below[sizes.index(len(content)) - 1]).last_offset

    @rule(max_bytes=st.integers(1, 3000))
    def read_everything(self, max_bytes: int) -> None:
        assert read_all_from(self.log, max_bytes) == self.batches

    @rule()
    def indexes_point_at_batches(self) -> None:
        for segment in self.log.segments:
            starts = {position: header.last_offset for position, header in segment.headers()}
            index = segment.offset_index()
            for slot in range(len(index)):
                offset, position = index.entry(slot)
                assert starts[position] == offset


def read_all_from(log: Log, max_bytes: int) -> list[bytes]:
    found = []
    offset = 0
    while offset < log.written_offset:
        piece = log.read(offset, max_bytes)
        if not len(piece):
            break
        data, position = piece.read(), 0
        while position < len(data):
            header = BatchHeader(data, position)
            found.append(data[position : position + header.size])
            position += header.size
            offset = header.next_offset
    return found


TestReadingMachine = ReadingMachine.TestCase
TestReadingMachine.settings = settings(
    max_examples=60, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
