"""Bugs to plant, one at a time: each breaks one promise, and the simulation must notice.

In: pytest's monkeypatch. Out: a broker with this one bug. Where a bug is planted is as close as can be to the
place where a person would have made it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from barnabas.broker.access.rights import Rights
from barnabas.broker.coordinators import transaction_markers
from barnabas.broker.coordinators.host import CoordinatorHost
from barnabas.broker.fetch.consumer_fetch import ConsumerFetch
from barnabas.broker.handlers import produce
from barnabas.broker.partitions.partition import Partition
from barnabas.broker.produce.tick import Tick
from barnabas.broker.topics.streams_topics import StreamsTopics
from barnabas.client.core.transaction import Transaction
from barnabas.groups.basics.timers import MemberTimers
from barnabas.groups.classic import coordinator as classic
from barnabas.groups.consumer import commits, reconciliation
from barnabas.groups.consumer.state import Due
from barnabas.groups.offsets.offsets import Offsets
from barnabas.groups.streams import assignor as streams_assignor
from barnabas.groups.streams import commits as streams_commits
from barnabas.groups.streams import reconciliation as streams_reconciliation
from barnabas.groups.streams.group import StreamsGroup
from barnabas.groups.streams.state import Due as StreamsDue
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.registry.log.fenced_writer import FencedWriter
from barnabas.registry.log.reader import LogReader
from barnabas.registry.log.schema_log import SchemaLog
from barnabas.replication.producers import ProducerStates
from barnabas.security.acls.vocabulary import Operation, ResourceType
from barnabas.simulation.world.history import Result
from barnabas.storage.logs import opening
from barnabas.storage.logs.log import Log
from barnabas.storage.logs.syncing import SyncWork

Plant = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True, slots=True)
class Bug:
    name: str
    history: str
    plant: Plant
    first: int = 0  # a seed to begin with: one that finds it is not far
    is_long: bool = False  # it takes too long for `make test`


BUGS: list[Bug] = []


def is_badly_planted(found: Result) -> bool:
    """Whether a history failed only because the code around a planted bug has changed its names."""
    return any(name in found.details for name in ("TypeError", "AttributeError", "NameError"))


def bug(history: str, first: int = 0, *, is_long: bool = False) -> Callable[[Plant], Plant]:
    def register(plant: Plant) -> Plant:
        BUGS.append(Bug(plant.__name__.replace("_", " "), history, plant, first, is_long))
        return plant

    return register


# -- records -----------------------------------------------------------------------------------------


@bug("records")
def acknowledge_before_the_write(patch: pytest.MonkeyPatch) -> None:
    """The response leaves at once; the bytes follow a little later."""
    write = Tick.close

    def close(tick: Tick) -> None:
        if tick.is_open:
            responses, tick._responses = tick._responses, []
            tick._finish([], responses, {}, [])
            asyncio.get_running_loop().call_later(0.05, write, tick)

    patch.setattr(Tick, "close", close)


@bug("records")
def forget_a_sync(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SyncWork, "_sync_segment", lambda *_: None)


@bug("records")
def let_a_waiter_of_the_tick_fail(patch: pytest.MonkeyPatch) -> None:
    """It is kept from stopping others, and must not be kept from those who look."""

    def look(fetch: ConsumerFetch, *, final: bool = False) -> None:
        raise RuntimeError("planted")

    patch.setattr(ConsumerFetch, "check_again", look)


@bug("records")
def forget_to_sync_the_folder(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SyncWork, "_sync_folder", lambda *_: None)


@bug("records", first=846)
def show_what_is_not_synced(patch: pytest.MonkeyPatch) -> None:
    """What this simulation found: a sync let readers see what came while it was under way."""
    advance = Partition.advance
    patch.setattr(Partition, "advance", lambda partition, end_offset=None: advance(partition))


@bug("records", first=5, is_long=True)
def trust_a_log_that_was_not_closed(patch: pytest.MonkeyPatch) -> None:
    open_log = opening.open_log

    def open_as_clean(*arguments: Any, **options: Any) -> Any:
        return open_log(*arguments, **{**options, "clean": True})

    patch.setattr(opening, "open_log", open_as_clean)


@bug("records", first=4)
def forget_the_sequences_of_producers(patch: pytest.MonkeyPatch) -> None:
    """A batch that is sent again is taken again."""
    patch.setattr(ProducerStates, "check", lambda *_: None)


# -- groups ------------------------------------------------------------------------------------------


@bug("groups")
def skip_the_replay(patch: pytest.MonkeyPatch) -> None:
    def start(host: CoordinatorHost[Any]) -> None:
        host.partition.before_write = host.journal.flush
        host.partition.on_lost = host.reload_after
        host.partition.wait(host._on_high_watermark)
        host._activate()

    patch.setattr(CoordinatorHost, "start", start)


@bug("groups", first=14)
def take_commits_of_members_that_are_gone(patch: pytest.MonkeyPatch) -> None:
    check = classic.ClassicGroups.check_commit

    def check_commit(groups: Any, group_id: str, *arguments: Any) -> Any:
        try:
            return check(groups, group_id, *arguments)
        except KafkaError as error:
            if error.code is ErrorCode.UNKNOWN_MEMBER_ID:
                return None
            raise

    patch.setattr(classic.ClassicGroups, "check_commit", check_commit)


@bug("groups", first=1)
def take_commits_of_members_that_were_replaced(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(commits, "check_commit", lambda *_: None)


@bug("groups", first=1)
def forget_that_a_partition_is_still_owned(patch: pytest.MonkeyPatch) -> None:
    advance = reconciliation.advance

    def take_everything(member: Any, epoch: int, goal: Any, reported: Any) -> Any:
        free = reconciliation.Goal(goal.epoch, goal.target, goal.reads, lambda topic_id, partition: None)
        return advance(member, epoch, free, reported)

    patch.setattr(reconciliation, "advance", take_everything)


@bug("groups", first=1)
def end_sessions_too_early(patch: pytest.MonkeyPatch) -> None:
    set_timer = MemberTimers.set

    def set_early(timers: Any, due: Any, group_id: str, member_id: str, at_ms: int) -> None:
        set_timer(timers, due, group_id, member_id, at_ms - 5_500 if due is Due.SESSION else at_ms)

    patch.setattr(MemberTimers, "set", set_early)


# -- streams groups ----------------------------------------------------------------------------------


@bug("streams")
def start_tasks_that_others_still_run(patch: pytest.MonkeyPatch) -> None:
    advance = streams_reconciliation.advance

    def take_everything(member: Any, epoch: int, goal: Any, reported: Any) -> Any:
        free = replace(goal, is_active_anywhere=lambda subtopology, partition: False)
        return advance(member, epoch, free, reported)

    patch.setattr(streams_reconciliation, "advance", take_everything)


@bug("streams", first=5)
def take_commits_of_tasks_that_moved(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(streams_commits, "check_commit", lambda *_: None)


@bug("streams")
def put_standbys_beside_their_tasks(patch: pytest.MonkeyPatch) -> None:
    class Forgetful(set[Any]):
        def __contains__(self, task: object) -> bool:
            return False

    make = streams_assignor.Process.__init__

    def without_memory(process: Any, *arguments: Any, **fields: Any) -> None:
        make(process, *arguments, **fields)
        process.tasks = Forgetful()

    patch.setattr(streams_assignor.Process, "__init__", without_memory)


@bug("streams")
def end_sessions_of_streams_members_too_early(patch: pytest.MonkeyPatch) -> None:
    set_timer = MemberTimers.set

    def set_early(timers: Any, due: Any, group_id: str, member_id: str, at_ms: int) -> None:
        set_timer(timers, due, group_id, member_id, at_ms - 5_500 if due is StreamsDue.SESSION else at_ms)

    patch.setattr(MemberTimers, "set", set_early)


@bug("streams")
def never_create_internal_topics(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StreamsTopics, "begin", lambda *_: None)


@bug("streams")
def never_release_tasks(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StreamsGroup, "_stop", lambda *_: None)


# -- transactions ------------------------------------------------------------------------------------


@bug("transactions", first=10, is_long=True)
def take_batches_of_an_old_epoch(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ProducerStates, "check_epoch", staticmethod(lambda *_: None))


@bug("transactions")
def lose_a_marker(patch: pytest.MonkeyPatch) -> None:
    """Every now and then a partition is told to be done that is not."""
    write_one = transaction_markers.MarkerWriter._write_one
    count = 0

    def write(writer: Any, markers: Any, where: Any) -> bool:
        nonlocal count
        count += 1
        return True if count % 7 == 0 else write_one(writer, markers, where)

    patch.setattr(transaction_markers.MarkerWriter, "_write_one", write)


@bug("transactions")
def forget_which_transactions_were_aborted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Log, "add_aborted", lambda *_: None)


@bug("transactions")
def commit_offsets_of_open_transactions(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        Offsets, "apply_pending", lambda offsets, producer_id, key, value: offsets.apply(key, value)
    )


@bug("transactions", is_long=True)
def forget_prepared_transactions(patch: pytest.MonkeyPatch) -> None:
    """Markers that were not written before the end of the process never are."""
    from barnabas.transactions.shard import TransactionShard

    patch.setattr(TransactionShard, "loaded", lambda *_: [])


# -- guarded records ---------------------------------------------------------------------------------


@bug("guarded-records")
def topics_that_may_be_written_are_never_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Rights, "forget", lambda self: None)


@bug("guarded-records")
def a_refused_batch_is_appended(monkeypatch: pytest.MonkeyPatch) -> None:
    append = Partition.append

    def check(name: str, topic_id: bytes, context: Any, rights: Rights) -> None:
        if not rights.allow_write(name, 0):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)

    def append_first(request: Any, context: Any, *others: Any) -> Any:
        for data in request.topic_data:
            for given in data.partition_data:
                found = context.broker.partitions.get(data.name, given.index)
                if found is not None and not context.may(Operation.WRITE, ResourceType.TOPIC, data.name):
                    append(found, memoryview(bytearray(given.records)), 1, context.version, 0)
        return validated(request, context, *others)

    validated = produce.append_validated
    monkeypatch.setattr(produce, "check_topic", check)
    monkeypatch.setattr(produce, "append_validated", append_first)


# -- registry ----------------------------------------------------------------------------------------


@bug("registry")
def each_writer_of_the_registry_is_a_producer_of_its_own(patch: pytest.MonkeyPatch) -> None:
    async def take_over(self: FencedWriter, patience: Any) -> None:
        self._identity, self._sequence = Transaction(self._cluster), 0
        await self._identity.init()
        self.is_ready = True

    patch.setattr(FencedWriter, "take_over", take_over)


@bug("registry")
def a_new_primary_decides_before_it_has_read_the_log(patch: pytest.MonkeyPatch) -> None:
    async def take_over(self: SchemaLog, patience: Any) -> None:
        await self._writer.take_over(patience)
        self._is_current, self._taken_over_at = True, self._now()

    patch.setattr(SchemaLog, "_take_over", take_over)


@bug("registry")
def a_primary_applies_its_records_before_those_of_others(patch: pytest.MonkeyPatch) -> None:
    original = LogReader.apply_own

    def apply_own(self: LogReader, base_offset: int, records: Any, timestamp_ms: int) -> bool:
        self.next_offset = base_offset
        return original(self, base_offset, records, timestamp_ms)

    patch.setattr(LogReader, "apply_own", apply_own)
