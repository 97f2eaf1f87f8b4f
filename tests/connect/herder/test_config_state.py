"""The config topic's records give the same state as in an Apache worker."""

from __future__ import annotations

from barnabas.connect.herder import config_state as records
from barnabas.connect.herder.config_state import Change, ConfigState, Record
from barnabas.connect.herder.offsets import Offsets
from barnabas.connect.herder.states import State, Status, Target


def replay(state: ConfigState, *groups: list[Record]) -> list[Change]:
    found = [state.apply(key, value) for group in groups for key, value in group]
    return [each.change for each in found if each is not None]


def test_tasks_count_from_their_commit_on() -> None:
    state = ConfigState()
    replay(state, records.config_records("a-b", {"name": "a-b"}))
    *tasks, commit = records.task_records("a-b", [{"n": "0"}, {"n": "1"}])
    assert replay(state, tasks) == []
    assert state.tasks == {}
    assert replay(state, [commit]) == [Change.TASKS]
    assert state.tasks["a-b"] == [{"n": "0"}, {"n": "1"}]


def test_a_commit_without_all_its_tasks_makes_the_connector_inconsistent() -> None:
    state = ConfigState()
    replay(
        state, records.config_records("a", {}), [("task-a-1", {"properties": {}}), ("commit-a", {"tasks": 2})]
    )
    assert state.inconsistent == {"a"}
    assert state.tasks["a"] == []
    replay(state, records.task_records("a", [{}]))
    assert state.inconsistent == set()


def test_records_of_tasks_that_a_removed_connector_left_are_ignored() -> None:
    state = ConfigState()
    replay(state, records.task_records("gone", [{}]))
    replay(
        state, records.config_records("a", {}), records.task_records("a", [{}]), records.removal_records("a")
    )
    assert (state.connectors, state.tasks, state.targets) == ({}, {}, {})


def test_stopped_is_written_as_paused_for_old_workers_and_read_as_stopped() -> None:
    assert records.target_record("a", Target.STOPPED)[1] == {"state": "PAUSED", "state.v2": "STOPPED"}
    state = ConfigState()
    replay(state, records.config_records("a", {}, Target.STOPPED))
    assert state.target("a") is Target.STOPPED
    assert replay(state, [("target-state-a", {"state": "PAUSED"})]) == [Change.TARGET]
    assert state.target("a") is Target.PAUSED


def test_records_that_make_no_sense_change_nothing() -> None:
    state = ConfigState()
    for key, value in [
        ("connector-a", 5),
        ("connector-a", {}),
        ("commit-a", {"tasks": "x"}),
        ("task-", None),
        ("target-state-a", {"state": "LOUD"}),
        ("nonsense", {}),
        ("task-a-x", {}),
    ]:
        assert state.apply(key, value) is None
    assert state == ConfigState()


def test_a_status_is_written_as_connect_writes_it() -> None:
    assert Status(State.RUNNING, "h:1", 3, None, "4.3.1").record() == {
        "state": "RUNNING", "trace": None, "worker_id": "h:1", "generation": 3, "version": "4.3.1",
    }  # fmt: skip
    assert "version" not in Status(State.UNASSIGNED, "h:1").record()


def test_an_offset_is_written_back_under_the_bytes_of_its_key() -> None:
    offsets = Offsets()
    key = b'["a", {"b": 1,  "a": 2}]'
    offsets.apply(key, b'{"position":12}')
    offsets.apply(b"nonsense", b"{}")
    assert offsets.read("a", {"a": 2, "b": 1}) == {"position": 12}
    assert offsets.records("a", [({"a": 2, "b": 1}, None)]) == [(key, None)]
    assert offsets.key("a", {"filename": "/x"}) == b'["a",{"filename":"/x"}]'
    offsets.apply(key, None)
    assert offsets.of("a") == []
