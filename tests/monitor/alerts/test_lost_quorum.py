"""A cluster of three whose quorum is lost: health and alerts say so, and still see everything else."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from barnabas.cli.alerts import health_page
from barnabas.cli.main import main
from barnabas.client.admin.admin import Admin
from barnabas.client.cluster import Cluster as Client
from barnabas.client.core.address import parse_bootstrap
from barnabas.monitor.alert_service.file import alerts_file
from barnabas.monitor.alert_service.measuring import Measurements, Measuring
from barnabas.monitor.checks import cluster_facts
from barnabas.monitor.checks.cluster_checks import blind_checks, seen
from barnabas.monitor.checks.cluster_facts import ClusterFacts, read_cluster
from barnabas.testing.cluster import Cluster
from barnabas.testing.waiting import wait_until

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(combined=3) as found:
        found.create_topic("orders", 3, 3)
        found[2].kill()
        found[3].kill()
        yield found


@pytest.fixture(autouse=True)
def in_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_facts, "PART_S_MAX", 2.0)
    monkeypatch.setattr(health_page, "GROUPS_S_MAX", 2.0)


def facts_of(cluster: Cluster) -> ClusterFacts:
    async def read() -> ClusterFacts:
        client = Client(parse_bootstrap(cluster[1].address), client_id="test")
        try:
            await read_cluster(Admin(client))
            return await read_cluster(Admin(client))  # nothing of the first look holds up the second
        finally:
            await client.close()

    return asyncio.run(read())


def test_a_lost_quorum_is_found_and_the_other_parts_are_read(cluster: Cluster) -> None:
    wait_until(lambda: facts_of(cluster).leaderless, 30)  # a leader keeps its role for a moment
    facts = facts_of(cluster)
    findings = dict(seen(facts))
    [controller] = findings["no_controller"]
    assert (controller.value, "no leader of the quorum answers" in controller.detail) == (1, True)
    assert set(facts.silent) == {2, 3}
    assert [each.value for each in findings["brokers_gone"]] == [2]
    assert list(facts.log_dirs) == [1]
    assert {each.check for each in blind_checks(facts) if not each.is_expected} == set()


def test_a_look_at_it_leaves_only_its_own_checks_blind(cluster: Cluster) -> None:
    properties = {"bootstrap.servers": cluster[1].address}
    entries = [{"name": "main", "properties": properties}]
    file = alerts_file({"clusters": entries, "rules": [{"name": "GroupFailing", "enabled": False}]}, "test")

    async def one() -> Measurements:
        measuring = Measuring(file)
        try:
            return await measuring.measure(0)
        finally:
            await measuring.stop()

    look = asyncio.run(one())
    assert [each.value for each in look.findings["unreachable"]] == [0]
    assert [each.value for each in look.findings["no_controller"]] == [1]
    assert "quorum_lag" not in look.findings
    assert "quorum_lag" in {check for check, _ in look.expected}


def test_health_tells_it_in_words(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["health", "--bootstrap-server", cluster[1].address])
    shown = capsys.readouterr()
    assert status == 1
    assert "has no active controller: no leader of the quorum answers" in shown.out
    assert "active controller unknown" in shown.out
    assert shown.err == ""
