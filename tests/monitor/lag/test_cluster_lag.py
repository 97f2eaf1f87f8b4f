"""The lag of a cluster: records of the offsets topic, statuses, what is removed, and histories."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.groups.basics.records import Entry, encode
from barnabas.metadata.steps import at_once
from barnabas.monitor.alert_service.measuring import PATIENT_RULES
from barnabas.monitor.checks.group_checks import group_findings, idle_topics
from barnabas.monitor.lag.cluster_lag import ClusterLag, GroupInfo, LagRules
from barnabas.monitor.lag.commit_records import CommitRecords, commit_of
from barnabas.monitor.lag.group_lag import lags_of
from barnabas.monitor.lag.groups import Member
from barnabas.monitor.lag.judgement import Status
from barnabas.monitor.lag.statuses import Method, is_found, status_of
from barnabas.monitor.lag.topics import Placement
from barnabas.protocol.log_records.consumer_offsets import (
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from barnabas.protocol.types import NULL_UUID

NOW_MS = 1_700_000_000_000
ANN = Member("m-1", "ann", "/10.0.0.7", {"t": 1})


def cluster(rules: LagRules | None = None, partitions: int = 2, end: int = 100) -> ClusterLag:
    found = ClusterLag("local", rules)
    found.set_topics({"t": ([Placement(1, (1, 2), (1,))] * partitions, False)})
    for index in range(partitions):
        found.set_end("t", index, end, NOW_MS - 1_000)
    return found


def commit(lag: ClusterLag, offset: int, *, group: str = "g", partition: int = 0, order: int = 0) -> None:
    place = lag.place(group, "t", partition)
    if place is not None:
        lag.commit(place, offset, NOW_MS + order, NOW_MS + order, order)


@given(
    st.integers(0, 2**62),
    st.integers(0, 2**40),
    st.text(max_size=200),
    st.sampled_from([NULL_UUID, b"0123456789abcdef"]),
    st.sampled_from([-1, 5]),
)
def test_a_commit_is_read_from_every_form_of_its_value(
    offset: int, time_ms: int, metadata: str, topic_id: bytes, expires: int
) -> None:
    value = OffsetCommitValue(
        offset=offset,
        metadata=metadata,
        commit_timestamp=time_ms,
        topic_id=topic_id,
        expire_timestamp=expires,
    )
    records = CommitRecords(lag := cluster())
    for order in (1, 2):  # the first one leads to its place by its whole key, the second by the key's bytes
        key, data = encode(Entry(OffsetCommitKey(group="g", topic="t", partition=0), value))
        assert records.apply(key, data, order, time_ms) is None
    assert [each.committed for _, _, each in lag.groups["g"].partitions()] == [offset]
    if len(metadata.encode()) < 127:
        assert data is not None
        assert commit_of(data) == (offset, time_ms)


def test_a_tombstone_removes_what_a_group_committed() -> None:
    records = CommitRecords(lag := cluster())
    key, value = encode(
        Entry(
            OffsetCommitKey(group="g", topic="t", partition=0),
            OffsetCommitValue(offset=5, commit_timestamp=NOW_MS),
        )
    )
    records.apply(key, value, 1, NOW_MS)
    records.apply(key, None, 2, NOW_MS)
    assert "g" not in lag.groups
    records.apply(key, value, 3, NOW_MS)
    assert lag.groups["g"].topics["t"][0].committed == 5


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (GroupMetadataKey(group="g"), GroupMetadataValue()),
        (ConsumerGroupMetadataKey(group_id="g"), ConsumerGroupMetadataValue()),
    ],
)
def test_records_about_members_name_their_group(key: GroupMetadataKey, value: GroupMetadataValue) -> None:
    records = CommitRecords(cluster())
    assert records.apply(*encode(Entry(key, value)), 1, NOW_MS) == "g"


@given(st.binary(max_size=40), st.none() | st.binary(max_size=40))
def test_no_bytes_stop_the_reader(key: bytes, value: bytes | None) -> None:
    records = CommitRecords(lag := cluster())
    records.apply(b"\0\1" + key, value, 1, NOW_MS)
    records.apply(key, value, 2, NOW_MS)
    at_once(lag.sample(NOW_MS))


def test_a_status_has_all_partitions_of_a_topic() -> None:
    lag = cluster(LagRules(intervals=2), partitions=3)
    commit(lag, 90, order=1)
    commit(lag, 90, order=2)
    commit(lag, 100, partition=2, order=3)
    found = at_once(status_of(lag, lag.groups["g"], NOW_MS + 2))
    assert [(each.partition, each.status, each.lag, each.complete) for each in found.partitions] == [
        (0, Status.STALL, 10, 1.0),
        (1, Status.OK, 0, 0.0),
        (2, Status.OK, 0, 0.5),
    ]
    assert (found.status, found.lag, found.complete) == (Status.ERR, 10, pytest.approx(1 / 3))
    assert found.largest is found.partitions[0]


def test_too_few_commits_are_not_judged() -> None:
    lag = cluster(LagRules(intervals=10, minimum_complete=0.5))
    commit(lag, 90, order=1)
    found = at_once(status_of(lag, lag.groups["g"], NOW_MS + 100_000))
    assert (found.status, found.partitions[0].complete) == (Status.OK, 0.1)


def test_owners_are_those_of_the_last_description() -> None:
    lag = cluster()
    commit(lag, 90)
    info = GroupInfo("g", "Classic", "Stable", "consumer", "range", 1, (ANN,), {("t", 0): ANN, ("t", 1): ANN})
    lag.describe(info)
    status = at_once(status_of(lag, lag.groups["g"], NOW_MS))
    assert [(each.owner, each.client_id, each.complete) for each in status.partitions] == [
        ("/10.0.0.7", "ann", 0.1),
        ("/10.0.0.7", "ann", 0.1),
    ]
    lag.describe(GroupInfo("g", "Classic", "Empty", "consumer", "", 1, ()))
    status = at_once(status_of(lag, lag.groups["g"], NOW_MS))
    assert [each.client_id for each in status.partitions] == ["", ""]


def test_groups_are_chosen_by_expressions() -> None:
    lag = cluster(LagRules(group_allowed=re.compile("^app-"), group_denied=re.compile("-test$")))
    for group in ("app-one", "app-test", "console-1"):
        commit(lag, 1, group=group)
    assert list(lag.groups) == ["app-one"]


def test_a_topic_that_is_gone_takes_its_commits_along() -> None:
    lag = cluster()
    commit(lag, 90)
    lag.set_topics({})
    assert (lag.topics, lag.groups) == ({}, {})


def test_a_topic_that_metadata_does_not_know_yet_is_kept_for_one_look() -> None:
    lag = ClusterLag("local")
    commit(lag, 5)
    assert lag.groups["g"].topics["t"][0].lag is None
    lag.set_topics({})
    assert "t" in lag.topics
    lag.set_topics({})
    assert (lag.topics, lag.groups) == ({}, {})


def test_a_silent_group_is_forgotten() -> None:
    lag = cluster(LagRules(expire_group_ms=60_000))
    commit(lag, 90)
    group = lag.groups["g"]
    assert is_found(lag, group, NOW_MS + 60_000)
    assert not is_found(lag, group, NOW_MS + 60_001)
    lag.expire(NOW_MS + 60_001)
    assert lag.groups == {}


def test_an_exact_timestamp_wins_over_an_estimate_until_the_next_commit() -> None:
    lag = cluster()
    lag.set_end("t", 0, 200, NOW_MS)
    commit(lag, 150)
    place = lag.groups["g"].topics["t"][0]
    estimate = at_once(status_of(lag, lag.groups["g"], NOW_MS)).partitions[0].time
    assert (estimate.method, estimate.seconds) == (Method.INTERPOLATED, 0.5)
    place.written_offset, place.written_ms = 150, NOW_MS - 42_000
    exact = at_once(status_of(lag, lag.groups["g"], NOW_MS)).partitions[0].time
    assert (exact.method, exact.seconds) == (Method.EXACT, 42.0)
    commit(lag, 160, order=1)
    assert at_once(status_of(lag, lag.groups["g"], NOW_MS)).partitions[0].time.method is Method.INTERPOLATED


def test_the_age_of_deleted_records_is_that_of_the_first_one_that_is_left() -> None:
    lag = cluster()
    commit(lag, 10)
    place = lag.groups["g"].topics["t"][0]
    place.written_offset, place.written_ms = 10, NOW_MS - 900_000
    lag.set_start("t", 0, 60)
    assert (place.first_unread, place.lacks_time) == (60, True)
    place.written_offset, place.written_ms = 60, NOW_MS - 42_000
    left = at_once(status_of(lag, lag.groups["g"], NOW_MS)).partitions[0]
    assert (left.lag, left.time.method, left.time.seconds) == (90, Method.EXACT, 42.0)
    lag.set_start("t", 0, 100)
    assert not place.lacks_time
    assert at_once(status_of(lag, lag.groups["g"], NOW_MS)).partitions[0].time.seconds == 0.0


def test_series_of_a_history_end_together_and_are_bounded() -> None:
    lag = cluster(LagRules(history_points=4))
    for sample in range(6):
        if sample >= 3:
            commit(lag, sample, order=sample)
        at_once(lag.sample(NOW_MS + sample))
    place = lag.groups["g"].topics["t"][0]
    assert list(lag.sampled_ms) == [NOW_MS + sample for sample in (2, 3, 4, 5)]
    assert list(place.committed_seen) == [3, 4, 5]
    assert list(place.offsets.ends_seen) == [100] * 4


def test_groups_furthest_behind_come_first() -> None:
    lag = cluster()
    for group, offset in (("a", 90), ("b", 10), ("c", 90)):
        commit(lag, offset, group=group)
    assert [(each.group_id, each.lag) for each in lags_of(lag, NOW_MS)] == [("b", 90), ("a", 10), ("c", 10)]


@pytest.mark.parametrize(("minutes", "expected"), [(14, Status.OK), (16, Status.ERR)])
def test_alerts_give_a_group_that_committed_once_some_time(minutes: int, expected: Status) -> None:
    """Its next commit tells how often it commits. Burrow calls it stalled at once, and soon stopped."""
    burrow, patient = cluster(), cluster(PATIENT_RULES)
    for each in (burrow, patient):
        commit(each, 10)
    assert at_once(status_of(burrow, burrow.groups["g"], NOW_MS)).status is Status.ERR
    later_ms = NOW_MS + minutes * 60_000
    assert at_once(status_of(patient, patient.groups["g"], later_ms)).status is expected


def test_topics_to_which_nobody_writes_are_idle() -> None:
    lag = cluster()
    lag.set_topics({**{name: ([Placement(1, (1,), (1,))], False) for name in ("t", "quiet", "new")}})
    for minute in range(4):
        at_ms = NOW_MS + minute * 60_000
        lag.set_end("t", 0, 100 + minute, at_ms)
        lag.set_end("quiet", 0, 7, at_ms)
    found = {dict(each.labels)["topic"]: each.value for each in at_once(idle_topics(lag, NOW_MS + 200_000))}
    assert found == {"t": pytest.approx(20 / 60), "quiet": pytest.approx(200 / 60)}


def test_hours_to_retention_are_told_for_groups_that_are_behind() -> None:
    lag = cluster()
    lag.set_start("t", 0, 60)
    for group, offset in (("lost", 10), ("done", 100), ("kminion-end-to-end-1", 10)):  # no probe's
        commit(lag, offset, group=group)
    found = at_once(group_findings(lag, NOW_MS))
    [risk] = found["retention_hours"]
    assert (risk.value, dict(risk.labels)) == (0.0, {"group": "lost"})
    assert "50 records were deleted" in risk.detail
    assert {dict(each.labels)["group"]: each.value for each in found["group_lag"]} == {"lost": 90, "done": 0}
