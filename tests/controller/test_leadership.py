"""Elections as properties: whatever brokers come and go, a leader is always a broker that may lead."""

from hypothesis import given
from hypothesis import strategies as st

from barnabas.controller.leadership import Rules, change
from barnabas.metadata.partitions import NO_LEADER, NO_LEADER_CHANGE, PartitionRegistration

REPLICAS = (1, 2, 3)


def log_dirs(replica: int) -> tuple[bytes, ...]:
    return (b"d" * 16,)


SOME = st.sets(st.sampled_from(REPLICAS)).map(lambda found: tuple(sorted(found)))


@st.composite
def partitions(draw: st.DrawFn) -> PartitionRegistration:
    isr = draw(SOME)
    elr = tuple(replica for replica in draw(SOME) if replica not in isr)
    leader = draw(st.sampled_from((*isr, NO_LEADER)))
    last = draw(st.sampled_from([(), (1,), (2,)])) if leader == NO_LEADER else ()
    directories = (b"d" * 16,) * len(REPLICAS)
    return PartitionRegistration(REPLICAS, directories, isr, leader, elr=elr, last_known_elr=last)


@given(partitions(), SOME, SOME, st.booleans(), st.integers(1, 3))
def test_a_leader_is_alive_and_in_sync(
    partition: PartitionRegistration,
    alive: tuple[int, ...],
    gone: tuple[int, ...],
    unclean: bool,
    minimum: int,
) -> None:
    rules = Rules(
        lambda replica: replica in alive and replica not in gone, log_dirs, minimum, True, unclean, False
    )
    isr = tuple(replica for replica in partition.isr if replica not in gone)
    record = change(partition, b"t" * 16, 0, isr, rules)
    after = partition.merge(record) if record is not None else partition
    if after.leader != NO_LEADER:
        assert after.leader in alive
        assert after.leader in after.isr
    assert not set(after.isr) & set(after.elr)


@given(partitions(), SOME, st.integers(1, 3))
def test_without_unclean_elections_only_replicas_in_sync_eligible_or_last_known_lead(
    partition: PartitionRegistration, alive: tuple[int, ...], minimum: int
) -> None:
    rules = Rules(lambda replica: replica in alive, log_dirs, minimum, True, False, False)
    record = change(partition, b"t" * 16, 0, partition.isr, rules)
    after = partition.merge(record) if record is not None else partition
    if after.leader != NO_LEADER:
        assert after.leader in {*partition.isr, *partition.elr, *partition.last_known_elr}


@given(partitions(), SOME, st.integers(1, 3))
def test_a_second_decision_changes_nothing(
    partition: PartitionRegistration, alive: tuple[int, ...], minimum: int
) -> None:
    """Decided again for its own result, leader and ISR stay as they are."""
    rules = Rules(lambda replica: replica in alive, log_dirs, minimum, True, False, False)
    record = change(partition, b"t" * 16, 0, partition.isr, rules)
    after = partition.merge(record) if record is not None else partition
    again = change(after, b"t" * 16, 0, after.isr, rules)
    assert again is None or (again.leader == NO_LEADER_CHANGE and again.isr is None)


def test_without_eligible_leader_replicas_the_last_isr_is_kept() -> None:
    partition = PartitionRegistration((1, 2), (b"d" * 16,) * 2, (1,), 1)
    rules = Rules(lambda replica: False, log_dirs, 1, False, False, False)
    record = change(partition, b"t" * 16, 0, (), rules)
    assert record is not None
    assert record.leader == NO_LEADER
    assert record.isr is None


def test_old_levels_begin_a_new_leader_epoch_when_the_isr_shrinks() -> None:
    partition = PartitionRegistration((1, 2), (b"d" * 16,) * 2, (1, 2), 1)
    rules = Rules(lambda replica: replica == 1, log_dirs, 1, False, False, True)
    record = change(partition, b"t" * 16, 0, (1,), rules)
    assert record is not None
    assert record.leader == 1
    assert partition.merge(record).leader_epoch == partition.leader_epoch + 1


def test_a_broker_does_not_lead_a_replica_in_a_directory_that_it_lost() -> None:
    partition = PartitionRegistration((1,), (b"d" * 16,), (1,), NO_LEADER)
    kept = Rules(lambda replica: True, log_dirs, 1, True, False, False)
    assert change(partition, b"t" * 16, 0, (1,), kept) is not None
    lost = Rules(lambda replica: True, lambda replica: (b"other" + b"-" * 11,), 1, True, False, False)
    assert change(partition, b"t" * 16, 0, (1,), lost) is None
