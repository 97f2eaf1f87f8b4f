"""Every check of a cluster on facts that are good, bad and not seen: each default rule can fire."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from barnabas.client.admin.cluster import LogDir, Quorum, QuorumReplica
from barnabas.client.core.topology import Node, Partition, TopicPartition
from barnabas.monitor.alerts.defaults import DEFAULTS
from barnabas.monitor.alerts.rule import labels_of
from barnabas.monitor.checks.cluster_checks import (
    CHECKS,
    QUORUM_LAG_MS,
    IncompleteCheck,
    blind_checks,
    broker_replicas,
    disk_full_hours,
    replication_factor,
    seen,
)
from barnabas.monitor.checks.cluster_facts import FENCED, QUORUM, SETTINGS, ClusterFacts, log_dirs_of
from barnabas.monitor.checks.disk_trend import HOUR_MS, DiskTrends

NOW_MS = 1_000_000
PLACE = TopicPartition("orders", 0)
Change = Callable[[ClusterFacts], ClusterFacts]


def voter(number: int, caught_up_ms: int = NOW_MS) -> QuorumReplica:
    return QuorumReplica(number, bytes(16), 100, NOW_MS, caught_up_ms)


GOOD = ClusterFacts(
    cluster_id="c",
    controller_id=1,
    brokers={number: Node(number, "h", 9000 + number) for number in (1, 2, 3)},
    partitions={PLACE: Partition(0, 1, 5, (1, 2, 3), (1, 2, 3))},
    min_isr={"orders": 2},
    quorum=Quorum(1, 3, 100, (voter(1), voter(2), voter(3)), (), {}),
    log_dirs={number: (LogDir("/d", 0, 1000, 500, {}),) for number in (1, 2, 3)},
)


def with_partition(leader: int, isr: tuple[int, ...]) -> Change:
    return lambda facts: replace(facts, partitions={PLACE: Partition(0, leader, 5, (1, 2, 3), isr)})


def with_quorum(leader: int, *voters: QuorumReplica) -> Change:
    return lambda facts: replace(facts, quorum=Quorum(leader, 3, 100, voters, (), {}))


def without_quorum(reason: str, leaderless: str) -> Change:
    return lambda facts: replace(facts, quorum=None, problems={QUORUM: reason}, leaderless=leaderless)


def with_broker(fenced: bool = False, silent: str = "") -> Change:
    return lambda facts: replace(
        facts,
        brokers={**facts.brokers, 3: Node(3, "h", 9003, None, fenced)},
        silent={3: silent} if silent else {},
        problems={log_dirs_of(3): silent} if silent else {},
    )


def with_dir(error_code: int, usable_bytes: int) -> Change:
    dirs = (LogDir("/d", error_code, 1000, usable_bytes, {}),)
    return lambda facts: replace(facts, log_dirs={**facts.log_dirs, 2: dirs})


BAD: list[tuple[str, Change, float, str]] = [
    ("offline_partitions", with_partition(-1, (2,)), 1, "orders-0"),
    ("offline_partitions", with_partition(9, (9,)), 1, "orders-0"),
    ("under_replicated", with_partition(1, (1, 2)), 1, "orders-0; broker 3 lacks 1"),
    ("under_min_isr", with_partition(1, (1,)), 1, "orders-0"),
    ("no_controller", with_quorum(-1, voter(1)), 1, "the quorum elects no leader"),
    (
        "no_controller",
        without_quorum("no answer about quorum within 8 s", "no answer about quorum within 8 s"),
        1,
        "no leader of the quorum answers: no answer about quorum within 8 s",
    ),
    (
        "no_controller",
        lambda facts: replace(without_quorum("not supported", "")(facts), controller_id=-1),
        1,
        "no broker knows a controller",
    ),
    ("brokers_gone", with_broker(fenced=True), 1, "3 (h:9003)"),
    ("brokers_gone", with_broker(silent="connection refused"), 1, "3 (h:9003)"),
    ("quorum_lag", with_quorum(1, voter(1), voter(2, NOW_MS - QUORUM_LAG_MS - 1)), 1, "voter 2"),
    ("offline_log_dirs", with_dir(56, -1), 1, "/d"),
    ("disk_free_percent", with_dir(0, 140), 14, ""),
]


@pytest.mark.parametrize("check", CHECKS)
def test_a_check_has_a_bad_case_here_and_finds_nothing_where_all_is_good(check: str) -> None:
    assert check in {name for name, *_ in BAD}
    (rule,) = [rule for rule in DEFAULTS if rule.check == check]
    assert not any(rule.is_violated(each.value, is_firing=False) for each in CHECKS[check](GOOD))
    assert list(blind_checks(GOOD)) == []


@pytest.mark.parametrize(("check", "change", "value", "detail"), BAD)
def test_a_check_finds_what_its_default_rule_is_about(
    check: str, change: Change, value: float, detail: str
) -> None:
    (rule,) = [rule for rule in DEFAULTS if rule.check == check]
    findings = dict(seen(change(GOOD)))[check]
    (found,) = [each for each in findings if rule.is_violated(each.value, is_firing=False)]
    assert (found.value, found.detail) == (value, detail)


def test_a_quorum_that_may_not_be_asked_about_is_unknown_and_not_good() -> None:
    facts = without_quorum("CLUSTER_AUTHORIZATION_FAILED", "")(GOOD)
    assert "no_controller" not in dict(seen(facts))
    assert set(blind_checks(facts)) == {
        IncompleteCheck(check, (), "CLUSTER_AUTHORIZATION_FAILED")
        for check in ("no_controller", "quorum_lag")
    }


def test_a_lost_quorum_leaves_only_its_lag_unknown() -> None:
    facts = without_quorum("no answer", "no answer")(GOOD)
    assert list(blind_checks(facts)) == [IncompleteCheck("quorum_lag", (), "no answer", is_expected=True)]


@pytest.mark.parametrize(
    ("part", "check"), [(FENCED, "brokers_gone"), (SETTINGS, "under_min_isr"), (QUORUM, "quorum_lag")]
)
def test_a_part_that_was_not_read_is_no_good_news(part: str, check: str) -> None:
    facts = replace(GOOD, problems={part: "a right is missing"})
    assert check not in dict(seen(facts))
    assert IncompleteCheck(check, (), "a right is missing") in set(blind_checks(facts))


def test_log_dirs_that_may_not_be_read_are_unknown_and_their_broker_is_not_gone() -> None:
    reason = "CLUSTER_AUTHORIZATION_FAILED"
    dirs = {number: GOOD.log_dirs[number] for number in (1, 2)}
    facts = replace(GOOD, log_dirs=dirs, problems={log_dirs_of(3): reason})
    [gone] = dict(seen(facts))["brokers_gone"]
    assert gone.value == 0
    assert {(each.check, each.labels, each.reason) for each in blind_checks(facts)} == {
        (check, labels_of(broker=3), reason)
        for check in ("offline_log_dirs", "disk_free_percent", "disk_full_hours")
    }


def test_a_disk_that_fills_has_an_end() -> None:
    trends = DiskTrends()
    for hour in range(7):
        facts = with_dir(0, 700 - 100 * hour)(GOOD)
        found = disk_full_hours(facts, trends, NOW_MS + hour * HOUR_MS)
    (rule,) = [rule for rule in DEFAULTS if rule.check == "disk_full_hours"]
    [full] = [each for each in found if rule.is_violated(each.value, is_firing=False)]
    assert full.labels == labels_of(broker=2, dir="/d")
    assert full.value == pytest.approx(1)


def test_the_layout_of_topics_is_counted() -> None:
    partitions = {**GOOD.partitions, TopicPartition("orders", 1): Partition(1, 2, 5, (2,), (2,))}
    facts = replace(GOOD, partitions=partitions)
    assert [(each.value, each.labels) for each in replication_factor(facts)] == [
        (1, labels_of(topic="orders"))
    ]
    counts = {dict(each.labels)["broker"]: each.value for each in broker_replicas(facts)}
    assert counts == {"1": 1, "2": 2, "3": 1}
