"""Staging and writing: what is in the file, what counts, what is refused."""

from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.storage import Log

from .building import append, batch_at, files, fill, read_all, stage


def test_a_staged_batch_has_an_offset_but_is_not_in_the_file(log: Log) -> None:
    stage(log, batch_at(0, 3))

    assert (log.end_offset, log.written_offset) == (3, 0)
    assert log.read(0, 1000).read() == b""


def test_written_batches_can_be_read(log: Log) -> None:
    batch = batch_at(0, 3)
    append(log, batch)

    assert log.written_offset == 3
    assert log.read(0, 1000).read() == batch


def test_many_staged_batches_are_written_in_order(log: Log) -> None:
    batches = [batch_at(i, value_bytes=1) for i in range(2500)]  # more than one system call takes
    append(log, *batches)

    assert read_all(log) == batches


def test_the_log_goes_on_after_a_gap_in_offsets(log: Log) -> None:
    append(log, batch_at(0), batch_at(10))

    assert log.end_offset == 11
    assert [len(batch) > 0 for batch in read_all(log)] == [True, True]


def test_offsets_never_go_back(log: Log) -> None:
    append(log, batch_at(5))

    with pytest.raises(KafkaError) as refused:
        stage(log, batch_at(5))
    assert refused.value.code == ErrorCode.INVALID_RECORD


def test_a_batch_larger_than_a_segment_is_refused(log: Log) -> None:
    with pytest.raises(KafkaError) as refused:
        stage(log, batch_at(0, value_bytes=5000))
    assert refused.value.code == ErrorCode.RECORD_LIST_TOO_LARGE
    assert log.end_offset == 0


def test_leader_epochs_follow_the_batches(log: Log) -> None:
    append(log, batch_at(0, epoch=3), batch_at(1, epoch=3), batch_at(2, epoch=7))

    assert log.epochs.entries == [(3, 0), (7, 2)]
    assert files(log.directory)["leader-epoch-checkpoint"] == b"0\n2\n3 0\n7 2\n"


def test_a_log_that_was_closed_is_the_same_when_it_is_opened_again(
    log: Log, reopen: Callable[..., Log]
) -> None:
    appended = fill(log, 100)
    log.close()

    again = reopen(clean=True, recovery_point=log.recovery_point)

    assert again.end_offset == again.recovery_point == 100
    assert read_all(again) == appended


def test_appending_goes_on_after_opening(log: Log, reopen: Callable[..., Log]) -> None:
    appended = fill(log, 30)
    log.close()
    again = reopen(clean=True, recovery_point=30)
    appended += fill(again, 30)

    assert read_all(again) == appended
    assert again.epochs.entries == [(0, 0)]


def test_opening_a_closed_log_needs_no_file_to_be_read(log: Log, reopen: Callable[..., Log]) -> None:
    fill(log, 100)
    log.close()
    again = reopen(clean=True, recovery_point=100)

    assert [segment.file for segment in again.segments] == [None] * len(again.segments)
    assert again.size_bytes == log.size_bytes


def test_a_file_that_grew_while_it_was_closed_is_detected(log: Log, reopen: Callable[..., Log]) -> None:
    fill(log, 5)
    log.close()
    with Path(log.active.path).open("ab") as file:
        file.write(batch_at(5))
    again = reopen(clean=True, recovery_point=5)

    with pytest.raises(KafkaError) as refused:
        stage(again, batch_at(5))
    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
