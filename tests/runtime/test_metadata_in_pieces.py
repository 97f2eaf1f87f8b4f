"""A follower that applies many records in pieces ends with the same image as one that does it at once."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from barnabas.metadata.image import EMPTY_IMAGE
from barnabas.metadata.steps import at_once
from barnabas.metadata.transactions import TransactionFilter
from barnabas.protocol import Message
from barnabas.protocol.log_records.metadata import (
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from barnabas.quorum import snapshot_files
from barnabas.quorum.uncommitted import Batch, Uncommitted
from barnabas.raft.voters import Membership


def topic_id(number: int) -> bytes:
    return number.to_bytes(16, "big")


def records_of(rng: random.Random, topics: dict[int, int], count: int) -> list[Message]:
    """Records that fit the existing topics; `topics` is updated."""
    found: list[Message] = []
    while len(found) < count:
        number, what = rng.randrange(20), rng.random()
        if number not in topics:
            topics[number] = rng.randrange(1, 30)
            found.append(TopicRecord(name=f"t{number}", topic_id=topic_id(number)))
            found += [
                PartitionRecord(
                    partition_id=index, topic_id=topic_id(number), replicas=[1, 2], isr=[1, 2], leader=1
                )
                for index in range(topics[number])
            ]
        elif what < 0.1:
            del topics[number]
            found.append(RemoveTopicRecord(topic_id=topic_id(number)))
        else:
            index = rng.randrange(topics[number])
            found.append(
                PartitionChangeRecord(
                    partition_id=index, topic_id=topic_id(number), leader=rng.choice((1, 2))
                )
            )
    return found


def filled(seed: int) -> Uncommitted:
    rng, topics, offset = random.Random(seed), dict[int, int](), 0
    uncommitted = Uncommitted(TransactionFilter(), {})
    first: list[Message] = [FeatureLevelRecord(name="metadata.version", feature_level=30)]
    for number in range(30):
        records = first if number == 0 else records_of(rng, topics, rng.choice((1, 5, 200)))
        if number == 10:
            records = [BeginTransactionRecord(name="x"), *records]
        if number == 20:
            records = [*records, EndTransactionRecord()]
        uncommitted.add(Batch(offset, offset + len(records), 1, number, records))
        offset += len(records)
    return uncommitted


@pytest.mark.parametrize("seed", range(10))
def test_the_image_is_the_same_in_any_pieces(seed: int) -> None:
    at_last = filled(seed).batches[-1].end_offset
    whole = filled(seed).commit(EMPTY_IMAGE, at_last)
    assert whole is not None
    rng, uncommitted, image = random.Random(seed), filled(seed), EMPTY_IMAGE
    while uncommitted.batches:
        below = uncommitted.below(rng.randrange(at_last + 1))
        if not below:
            continue
        replayed = at_once(uncommitted.replay_in_steps(image, below))
        assert uncommitted.begins_with(below)
        _, image = uncommitted.committed(below, replayed)
    assert image == whole[1]


def test_replaying_pauses_and_changes_nothing_before_it_is_committed() -> None:
    uncommitted = filled(1)
    below = uncommitted.below(1 << 60)
    steps = uncommitted.replay_in_steps(EMPTY_IMAGE, below)
    pauses = sum(1 for _ in steps)
    assert pauses > sum(len(batch.records) for batch in below) // 40
    assert uncommitted.begins_with(below)
    uncommitted.truncate(below[-1].base_offset)
    assert not uncommitted.begins_with(below)


def test_a_snapshot_made_in_steps_loads_as_the_image(tmp_path: Path) -> None:
    found = filled(3).commit(EMPTY_IMAGE, 1 << 60)
    assert found is not None
    steps = snapshot_files.encode_image(found[1], Membership(), 0)
    pauses, data = 0, b""
    while not data:
        try:
            next(steps)
            pauses += 1
        except StopIteration as done:
            data = done.value
    assert pauses > 10

    from barnabas.raft.snapshot_ids import SnapshotId
    from barnabas.runtime.disk import REAL_DISK

    at = found[1].provenance
    snapshot = SnapshotId(at.offset + 1, at.epoch)
    snapshot_files.store(REAL_DISK, str(tmp_path), snapshot, data)
    loaded = snapshot_files.load(REAL_DISK, str(tmp_path / snapshot.file_name), Membership())
    assert loaded.image(snapshot).topics == found[1].topics


def test_a_follower_that_becomes_leader_meanwhile_applies_nothing_twice() -> None:
    """Batches that were popped while they were replayed are not applied again."""

    async def main() -> None:
        uncommitted = filled(2)
        below = uncommitted.below(1 << 60)
        replayed = at_once(uncommitted.replay_in_steps(EMPTY_IMAGE, below))
        uncommitted.pop_all(EMPTY_IMAGE)
        assert not uncommitted.begins_with(below)
        assert replayed[0].topics is not None

    asyncio.run(main())
