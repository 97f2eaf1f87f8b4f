"""A state that is lost comes back from the changelogs, and each record counts once."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.streams.spark.local import KEEPS_OLD_RECORDS, LocalApplication

from barnabas.client.admin.group_offsets import GroupOffsetAdmin
from barnabas.client.blocking import run
from barnabas.client.core.topology import TopicPartition
from barnabas.client.core.transaction import Transaction
from barnabas.plans.plan import Plan
from barnabas.spark.basics.cluster import shared_cluster
from barnabas.spark.basics.settings import ClientSettings
from barnabas.spark.reading.fetcher import LATEST, OffsetRange
from barnabas.sql.running.processing_log import LogSettings
from barnabas.sql.running.task_logic import MakeSqlLogic
from barnabas.streams import JoinWindows, StreamsBuilder, TestDriver, TimeWindows
from barnabas.streams.dsl.suppressions import until_window_closes
from barnabas.streams.spark.plan_logic import MakePlanLogic
from barnabas.streams.spark.state_files import StateFile, StateLost
from barnabas.streams.spark.task_batches import run_task, settle
from barnabas.streams.spark.task_port import Restores, TaskBatch, TaskId, TaskSettings
from barnabas.testing.broker import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(in_process=False, overrides=KEEPS_OLD_RECORDS) as found:
        yield found


def plan(name: str) -> Plan:
    """Counts, windows that close, and records that wait for a match: every kind of state."""
    builder = StreamsBuilder(name)
    left, right = (builder.stream(f"{name}-{side}", value=str) for side in ("left", "right"))
    closed = left.group_by_key().windowed_by(TimeWindows(10, 10)).count().suppress(until_window_closes())
    closed.to_stream().select_key(lambda key, _: f"{key.key}@{key.start}", key=str).to(
        f"{name}-out", value=int
    )
    left.group_by_key().count().to_stream().to(f"{name}-out", value=int)
    pairs = left.outer_join(
        right, lambda a, b: 1 if a is None or b is None else 2, JoinWindows(3, 3), value=int
    )
    pairs.to(f"{name}-out")
    return builder.build()


INPUT = [("ab"[at % 2], "x", at) for at in range(0, 40, 2)]
RIGHT = [("b", "y", 6), ("a", "y", 30)]


def expected(name: str) -> list[tuple[object, object, int]]:
    with TestDriver(plan(name)) as driver:
        for at, part in enumerate((INPUT[:12], INPUT[12:])):
            for record in part:
                driver.input(f"{name}-left", value=str).pipe(*record)
            driver.input(f"{name}-right", value=str).pipe(*RIGHT[at])
        return [
            (each.key, each.value, each.timestamp) for each in driver.output(f"{name}-out", value=int).read()
        ]


def run_in_two_parts(broker: Broker, name: str, state: Path, second: Path | None, loses: bool) -> object:
    with LocalApplication(broker, plan(name), state) as application:
        application.create(*(f"{name}-{word}" for word in ("left", "right", "out")), partitions=1)
        for at, part in enumerate((INPUT[:12], INPUT[12:])):
            application.produce(f"{name}-left", part)
            application.run(second if at else None)
            application.produce(f"{name}-right", [RIGHT[at]])
            application.run(second if at else None)
            if loses:
                shutil.rmtree(state)
        return sorted(application.read(f"{name}-out", value=int), key=str)


def test_a_state_folder_that_was_deleted(broker: Broker, tmp_path: Path) -> None:
    found = run_in_two_parts(broker, "deleted", tmp_path / "state", None, loses=True)
    assert found == sorted(expected("deleted"), key=str)


def test_a_task_that_moves_to_another_executor(broker: Broker, tmp_path: Path) -> None:
    found = run_in_two_parts(broker, "moved", tmp_path / "one", tmp_path / "two", loses=False)
    assert found == sorted(expected("moved"), key=str)


def test_a_table_without_a_changelog_is_restored_from_its_topic_as_far_as_it_was_read(
    broker: Broker, tmp_path: Path
) -> None:
    """Were the next colour restored too, it would leave its own group in place of the one before."""
    builder = StreamsBuilder("colours")
    table = builder.table("colours-in", value=str, store="colours")
    counts = table.group_by(lambda user, colour: (colour, user), key=str, value=str).count()
    counts.to_stream().to("colours-out", value=int)
    state = tmp_path / "state"
    with LocalApplication(broker, builder.build("all"), state) as application:
        application.create("colours-in", "colours-out", partitions=1)
        application.produce("colours-in", [("ann", "blue", 1), ("bob", "blue", 2)])
        application.run()
        shutil.rmtree(state)
        application.produce("colours-in", [("ann", "red", 3)])
        application.run()
        found = {key: value for key, value, _ in application.read("colours-out", value=int)}
        client = ClientSettings(broker.bootstrap, "topics", isolation_level="read_committed")
        topics = run(shared_cluster(client).topics(None))
    assert found == {"blue": 1, "red": 1}
    assert [name for name in topics if name.startswith("colours-") and "colours-changelog" in name] == []


def words(name: str) -> Plan:
    builder = StreamsBuilder(name)
    builder.stream(f"{name}-in", value=str).group_by_key().count(store="counts").to_stream().to(f"{name}-out")
    return builder.build()


@pytest.mark.parametrize("step", ["prepared", "written", "offsets", "committed", "applied"])
def test_a_kill_and_the_loss_of_the_folder(broker: Broker, tmp_path: Path, step: str) -> None:
    name = f"killed-{step}"
    with LocalApplication(broker, words(name), tmp_path / "state") as application:
        application.create(f"{name}-in", f"{name}-out", partitions=1)
        application.produce(f"{name}-in", [("a", "x", 1)] * 3)
        application.run()
        application.produce(f"{name}-in", [("a", "x", 2), ("b", "x", 2)])
        child = os.fork()
        if child == 0:
            client = ClientSettings(broker.bootstrap, "child", isolation_level="read_committed")
            settings = TaskSettings(name, client, str(tmp_path / "state"), True, wait_ms=20_000)
            place = TopicPartition(f"{name}-in", 0)
            try:
                stop = shared_cluster(client).offsets({place: LATEST})[place]
                batch = TaskBatch(TaskId(0, 0), (OffsetRange(place.topic, b"", 0, 0, stop),))
                make = MakePlanLogic(words(name), 0, client)
                run_task(settings, batch, make, lambda at: os._exit(9) if at == step else None)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
        shutil.rmtree(tmp_path / "state")
        application.produce(f"{name}-in", [("a", "x", 3)])
        application.run()
        found = application.read(f"{name}-out", value=int)
        assert [(key, value) for key, value, _ in found if key == "b"] == [("b", 1)]
        assert [value for key, value, _ in found if key == "a"] in ([3, 4, 5], [3, 5])


def test_offsets_of_a_tool_restore_a_file_that_is_new(broker: Broker, tmp_path: Path) -> None:
    with LocalApplication(broker, words("tooled"), tmp_path / "state") as application:
        application.create("tooled-in", "tooled-out", partitions=1)
        application.produce("tooled-in", [("a", "x", 1)] * 3)
        application.run()
        admin = GroupOffsetAdmin(application.cluster)
        run(admin.alter_offsets("tooled", {TopicPartition("tooled-in", 0): 1}, {}))
        application.run(tmp_path / "other")
        assert application.read("tooled-out", value=int)[-1] == ("a", 5, 1)


def test_a_restore_that_was_cut_begins_again(broker: Broker, tmp_path: Path) -> None:
    with LocalApplication(broker, words("cut"), tmp_path / "state") as application:
        application.create("cut-in", "cut-out", partitions=1)
        application.produce("cut-in", [("a", "x", 1)] * 3)
        application.run()
        committed = run(Transaction(application.cluster).committed("cut"))
        make = MakePlanLogic(words("cut"), 0, application.client)
        state = StateFile(tmp_path / "cut.sqlite")
        state.clear("restoring")
        state.put("counts", b"kz", bytes(16))
        state.keep()
        settle(state, 0, committed, make)
        assert [key for key, _ in state.range("counts", b"k", b"l")] == [b"ka"]
        with pytest.raises(StateLost):
            settle(StateFile(tmp_path / "new.sqlite"), 0, committed, lambda state, partition: make(state, 0))


def test_queries_of_sql_restore_their_state_too(tmp_path: Path) -> None:
    client = ClientSettings("localhost:1")
    make = MakeSqlLogic(words("sql"), 0, client, LogSettings("query", None))
    assert isinstance(make, Restores)
    state = StateFile(tmp_path / "sql.sqlite")
    assert make.facts(state) == MakePlanLogic(words("sql"), 0, client).facts(state)
