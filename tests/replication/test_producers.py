import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.metadata.steps import at_once
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.records.batch import BatchHeader, headers
from barnabas.records.control import EndMarker, build_end_marker, read_end_marker
from barnabas.records.record import Record, build_batch
from barnabas.replication import producer_snapshot
from barnabas.replication.producers import ProducerStates
from barnabas.replication.verification import NOT_REQUIRED, ONGOING, Verification
from replication.transcript import replay

HERE = Path(__file__).parent
RECORDED = HERE / "recorded"
INT32_MAX = 2**31 - 1


def header(
    producer_id: int,
    epoch: int,
    sequence: int,
    *,
    offset: int = 0,
    count: int = 1,
    timestamp: int = 1000,
    transactional: bool = False,
) -> BatchHeader:
    return BatchHeader(
        build_batch(
            [Record(timestamp=timestamp)] * count,
            base_offset=offset,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            transactional=transactional,
        )
    )


class Partition:
    """Appends as a leader does: check, give an offset, apply."""

    def __init__(self) -> None:
        self.states = ProducerStates()
        self.high_watermark: int | None = None
        self.verification: Verification = NOT_REQUIRED

    def answer(self, verb: str, given: dict[str, str]) -> str:
        try:
            said: str = getattr(self, verb.replace("-", "_"))(**given)
        except KafkaError as error:
            return str(error)
        return said

    def produce(
        self, id: str, epoch: str, seq: str, n: str = "1", time: str = "1000", txn: str = "no"
    ) -> str:
        batch = header(
            int(id),
            int(epoch),
            eval_sequence(seq),
            count=int(n),
            timestamp=int(time),
            transactional=txn == "yes",
        )
        duplicate = self.states.check(batch, self.verification)
        if duplicate is not None:
            return f"duplicate of offset {duplicate.base_offset}, timestamp {duplicate.timestamp}"
        batch.base_offset = self.states.end_offset
        self.states.apply(batch)
        return f"offset {batch.base_offset}"

    def verify(self, id: str, epoch: str, seq: str, bumps: str = "no", now: str = "0") -> str:
        """What is returned comes with the batches that follow."""
        found = self.states.start_verification(
            int(id), eval_sequence(seq), int(epoch), bumps_epoch=bumps == "yes", now_ms=int(now)
        )
        self.verification = found or ONGOING
        return "ongoing" if found is None else f"from sequence {found.lowest_sequence}"

    def unverified(self) -> str:
        self.verification = ONGOING
        return ""

    def verifications(self) -> str:
        return f"{len(self.states.verifications)} verifications"

    def end(
        self,
        id: str,
        epoch: str,
        how: str,
        coordinator: str = "0",
        time: str = "2000",
        version: str = "0",
    ) -> str:
        marker = EndMarker(how == "abort", int(coordinator))
        batch = BatchHeader(
            build_end_marker(marker, int(id), int(epoch), int(time), base_offset=self.states.end_offset)
        )
        self.states.check_marker(batch, marker.coordinator_epoch, int(version))
        completed = self.states.apply_marker(batch, marker.coordinator_epoch, aborted=marker.aborted)
        if completed is None:
            return f"offset {batch.base_offset}, nothing ended"
        return (
            f"offset {batch.base_offset}, ended {completed.first_offset}..{completed.last_offset}"
            f" aborted={completed.aborted} stable={self.states.last_stable_offset_after(completed)}"
        )

    def unstable(self) -> str:
        states = self.states
        return (
            f"undecided {states.first_undecided_offset()}, unstable {states.first_unstable_offset()},"
            f" oldest timestamp {states.oldest_transaction_timestamp()}"
        )

    def replicated(self, to: str) -> str:
        self.states.advance_high_watermark(int(to))
        return ""

    def expire(self, now: str, after: str) -> str:
        return f"expired {at_once(self.states.expire(int(now), int(after)))}"

    def restart(self) -> str:
        snapshot = producer_snapshot.encode(self.states)
        end_offset = self.states.end_offset
        self.states = ProducerStates()
        self.states.reset(end_offset, producer_snapshot.decode(snapshot))
        return ""

    def show(self) -> str:
        return "\n".join(
            f"{s.producer_id}: epoch {s.producer_epoch}, next sequence {s.next_sequence},"
            f" last offset {s.last_offset}, {len(s.batches)} batches, transaction {s.txn_first_offset}"
            for s in self.states
        )


def eval_sequence(text: str) -> int:
    return int(text) if not text.startswith("max") else INT32_MAX - int(text[4:] or 0)


@pytest.mark.parametrize("name", ["sequences", "transactions", "verification", "markers"])
def test_producers_are_answered_as_written_down(name: str) -> None:
    replay(HERE / "transcripts" / f"producers_{name}.txt", Partition().answer)


def replayed(log: bytes) -> ProducerStates:
    states = ProducerStates()
    for position, batch in headers(log):
        if batch.is_control:
            marker = read_end_marker(log, position=position)
            assert marker is not None
            states.apply_marker(batch, marker.coordinator_epoch, aborted=marker.aborted)
        else:
            assert states.check(batch, NOT_REQUIRED) is None
            states.apply(batch)
    return states


@pytest.mark.parametrize("name", ["sequences", "transactions"])
def test_replaying_a_log_of_apache_kafka_gives_its_snapshot_byte_for_byte(name: str) -> None:
    states = replayed((RECORDED / f"{name}.log").read_bytes())
    assert producer_snapshot.encode(states) == (RECORDED / f"{name}.snapshot").read_bytes()


def test_the_transaction_index_of_apache_kafka_follows_from_its_log() -> None:
    log = (RECORDED / "transactions.log").read_bytes()
    states = ProducerStates()
    index = b""
    for position, batch in headers(log):
        if not batch.is_control:
            states.apply(batch)
            continue
        marker = read_end_marker(log, position=position)
        assert marker is not None
        ended = states.apply_marker(batch, marker.coordinator_epoch, aborted=marker.aborted)
        if ended is not None and ended.aborted:
            stable = states.last_stable_offset_after(ended)
            index += struct.pack(
                ">hqqqq", 0, ended.producer_id, ended.first_offset, ended.last_offset, stable
            )
    assert index == (RECORDED / "transactions.txnindex").read_bytes()


def test_batches_without_a_producer_only_move_the_end() -> None:
    states = ProducerStates()
    batch = header(-1, -1, -1, offset=41, count=2)
    assert states.check(batch) is None
    states.apply(batch)
    assert len(states) == 0 and states.end_offset == 43


def test_a_check_changes_nothing() -> None:
    states = ProducerStates()
    states.apply(header(1, 0, 0))
    before = producer_snapshot.encode(states)
    for epoch, sequence in ((0, 1), (0, 0), (0, 7), (1, 0), (1, 5), (-1, 0)):
        try:
            states.check(header(1, epoch, sequence))
        except KafkaError:
            pass
    assert producer_snapshot.encode(states) == before


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3)), max_size=40), st.integers(0, INT32_MAX))
def test_retries_of_the_last_five_batches_are_found_and_nothing_is_written_twice(
    sends: list[tuple[int, int]], first_sequence: int
) -> None:
    """A producer that sends batches in order and repeats one `back` of the newest now and then."""
    states = ProducerStates()
    appended: list[BatchHeader] = []
    sequence = first_sequence
    for back, count in sends:
        if back and len(appended) >= back:
            retried = appended[-back]
            found = states.check(header(9, 0, retried.base_sequence, count=retried.record_count))
            assert found is not None and found.base_offset == retried.base_offset
            continue
        batch = header(9, 0, sequence, offset=states.end_offset, count=count)
        assert states.check(batch) is None
        states.apply(batch)
        appended.append(batch)
        sequence = (sequence + count) & INT32_MAX
    if len(appended) > 5:
        with pytest.raises(KafkaError) as refusal:
            states.check(header(9, 0, appended[-6].base_sequence, count=appended[-6].record_count))
        assert refusal.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
