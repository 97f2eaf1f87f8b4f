"""Looks at endpoints that are up, away, and back: what is found there, and what stays as it was."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from barnabas.audit.core.buckets import WIDTH_MS
from barnabas.audit.core.ledger import Ledger
from barnabas.audit.core.messages import CountMessage, Entry, StreamKind, Tally
from barnabas.audit.core.report import Rules, alarm, make_report
from barnabas.audit.core.tiers import CLUSTER, PRODUCER
from barnabas.monitor.alert_service.evaluator import Evaluator
from barnabas.monitor.alert_service.file import alerts_file
from barnabas.monitor.alert_service.idle_rules import why_idle
from barnabas.monitor.alert_service.measuring import Measurements, Measuring, findings_for
from barnabas.monitor.alerts.defaults import DEFAULTS
from barnabas.monitor.alerts.rule import Finding, labels_of
from barnabas.monitor.alerts.states import State
from barnabas.testing.ports import free_ports

from .endpoints import pages, tls_listener

MINUTE_MS = 60_000
ELECTIONS = "kafka_controller_controllerstats_uncleanleaderelections_total"
THROTTLED = "kafka_server_quota_throttle_time"
RUNS = "barnabas_pipeline_runs_total"


class World:
    """An evaluator whose clock the test moves."""

    def __init__(self, loop: asyncio.Runner, **file: Any) -> None:
        self.file = alerts_file(file, "test")
        self.now_ms = 0
        self._loop = loop
        self._measuring = Measuring(self.file)
        self._evaluator = Evaluator(self.file, self._measuring, clock=lambda: self.now_ms)

    def look(self, after_ms: int = 0) -> set[str]:
        """The rules with firing alerts after one look."""
        self.now_ms += after_ms
        self._loop.run(self._evaluator.evaluate())
        return {each.rule for each in self.alerts}

    def look_until_due(self) -> set[str]:
        """Two looks, far enough from each other for every rule."""
        self.look()
        return self.look(11 * MINUTE_MS)

    @property
    def alerts(self) -> list[Any]:
        return [each for each in self._evaluator.book.alerts() if each.state is State.FIRING]

    @property
    def unknown(self) -> dict[Any, str]:
        return self._evaluator.unknown

    def end(self) -> None:
        self._loop.run(self._measuring.stop())


@pytest.fixture
def world() -> Any:
    with ExitStack() as stack:
        loop = stack.enter_context(asyncio.Runner())

        def make(**file: Any) -> World:
            found = World(loop, **file)
            stack.callback(found.end)
            return found

        yield make


@pytest.fixture
def closed() -> str:
    (port,) = free_ports(1)
    return f"http://127.0.0.1:{port}"


Make = Callable[..., World]


def status(**states: str) -> str:
    """The answer of Connect about connectors with one task each."""
    return json.dumps(
        {
            name: {
                "status": {
                    "connector": {"state": "RUNNING"},
                    "tasks": [{"id": 0, "state": state, "trace": "java.lang.Oops: no\n\tat x"}],
                }
            }
            for name, state in states.items()
        }
    )


CONNECTORS = "connectors?expand=status"


def alarms(*buckets: int) -> str:
    """The answer of the audit's service: the cluster counted two records less in each of these buckets."""
    book = Ledger(keep_ms=2**60)
    for bucket in buckets:
        for tier, count in ((PRODUCER, 10), (CLUSTER, 8)):
            start = bucket * WIDTH_MS
            entry = Entry(start, Tally(count), 0)
            book.apply(
                CountMessage(
                    tier,
                    "orders",
                    "h",
                    f"{tier}-{bucket}",
                    StreamKind.SESSION,
                    1,
                    2,
                    start,
                    (entry,),
                    WIDTH_MS,
                    is_last=True,
                ),
                start,
            )
    found = make_report(book, Rules(), 100 * WIDTH_MS)
    return json.dumps({"alarms": [alarm(row) for row in found.alarms]})


def test_a_failed_connector_fires_and_ends(world: Make) -> None:
    with pages(**{CONNECTORS: status(jdbc="FAILED", files="RUNNING")}) as connect:
        found = world(connect=[connect.url])
        assert found.look_until_due() == {"ConnectorFailed"}
        [alert] = found.alerts
        assert alert.labels == labels_of(connector="jdbc", url=connect.url)
        assert "task 0 failed: java.lang.Oops: no" in alert.summary
        connect.pages[f"/{CONNECTORS}"] = status(jdbc="RUNNING")
        assert found.look(1_000) == set()


def test_an_alarm_of_the_audit_fires_for_each_bucket(world: Make) -> None:
    with pages(alarms=alarms(1, 2)) as audit:
        found = world(audit=[audit.url])
        assert found.look() == {"AuditIncomplete"}
        assert {dict(each.labels)["bucket"] for each in found.alerts} == {str(WIDTH_MS), str(2 * WIDTH_MS)}
        assert all("2 of 10 records are missing" in each.summary for each in found.alerts)
        audit.pages["/alarms"] = alarms(2)
        found.look(1_000)
        assert [dict(each.labels)["bucket"] for each in found.alerts] == [str(2 * WIDTH_MS)]


def test_an_endpoint_that_is_away_hides_nothing_of_the_others(world: Make, closed: str) -> None:
    with pages(**{CONNECTORS: status(jdbc="FAILED")}) as one, pages(**{CONNECTORS: status()}) as other:
        found = world(connect=[one.url, closed, other.url])
        assert found.look_until_due() == {"ConnectorFailed", "CheckBlind"}
        assert set(found.unknown) == {("connector_failed", labels_of(url=closed))}
        other.pages[f"/{CONNECTORS}"] = status(mongo="FAILED")
        found.look(1_000)
        found.look(6 * MINUTE_MS)
        failed = {dict(each.labels).get("connector") for each in found.alerts} - {None}
        assert failed == {"jdbc", "mongo"}


def test_only_the_alerts_of_the_blind_place_stay_as_they_are(world: Make) -> None:
    with pages(**{CONNECTORS: status(a="FAILED")}) as one, pages(**{CONNECTORS: status(b="FAILED")}) as other:
        found = world(connect=[one.url, other.url])
        assert found.look_until_due() == {"ConnectorFailed"}
        one.status = 500
        other.pages[f"/{CONNECTORS}"] = status(b="RUNNING")
        found.look(1_000)
        assert [dict(each.labels)["connector"] for each in found.alerts] == ["a"]
        one.status = 200
        one.pages[f"/{CONNECTORS}"] = status(a="RUNNING")
        assert found.look(1_000) == set()


def test_an_answer_of_another_form_is_no_good_news(world: Make) -> None:
    with pages(**{CONNECTORS: "[]"}) as connect:
        found = world(connect=[connect.url])
        found.look()
        [reason] = found.unknown.values()
        assert "is not Kafka Connect" in reason


def test_a_value_of_a_metric_fires_with_its_labels(world: Make) -> None:
    with pages(metrics=f'{THROTTLED}{{client_id="shop"}} 2500\n') as broker:
        found = world(metrics=[f"{broker.url}/metrics"])
        assert found.look_until_due() == {"ClientsThrottled"}
        [alert] = found.alerts
        assert alert.labels == labels_of(client_id="shop", instance=broker.netloc)


@pytest.mark.parametrize(
    ("rule", "before", "after"),
    [
        ("UncleanElections", f"{ELECTIONS} 3", f"{ELECTIONS} 4"),
        ("PipelineFailing", f'{RUNS}{{result="failed"}} 1', f'{RUNS}{{result="failed"}} 2'),
        ("PipelineFailing", f'{RUNS}{{result="failed"}} 9', f'{RUNS}{{result="failed"}} 1'),  # it restarted
        ("PipelineFailing", "other 1", f'{RUNS}{{result="failed"}} 1'),  # the first failure makes the series
    ],
)
def test_a_counter_that_grew_fires(world: Make, rule: str, before: str, after: str) -> None:
    with pages(metrics=f"{before}\n") as service:
        found = world(metrics=[f"{service.url}/metrics"])
        assert found.look() == set()
        service.pages["/metrics"] = f"{after}\n"
        assert found.look(1_000) == {rule}
        assert found.look(30 * MINUTE_MS) == {rule}  # it is kept a while after the last increase
        assert found.look(30 * MINUTE_MS) == set()


def test_an_increase_while_an_endpoint_was_away_is_not_lost(world: Make, closed: str) -> None:
    with pages(metrics=f"{ELECTIONS} 3\n") as one, pages(metrics=f"{ELECTIONS} 3\n") as other:
        found = world(metrics=[f"{one.url}/metrics", f"{other.url}/metrics"])
        found.look()
        one.status = 503
        other.pages["/metrics"] = f"{ELECTIONS} 4\n"
        assert found.look(1_000) == {"UncleanElections"}
        assert [dict(each.labels)["instance"] for each in found.alerts] == [other.netloc]
        one.status = 200
        one.pages["/metrics"] = f"{ELECTIONS} 5\n"
        found.look(1_000)
        assert {dict(each.labels)["instance"]: each.value for each in found.alerts} == {
            one.netloc: 2,
            other.netloc: 0,
        }


TIME = 'kafka_network_requestmetrics_totaltimems{{request="Produce",quantile="0.99"}} {}\n'


@pytest.mark.parametrize(
    ("times", "slow"), [((400, 20, 30), 400), ((90, 5, 5), None), ((400, 20, 350), None), ((400, 20), None)]
)
def test_a_broker_that_is_slower_than_the_others_fires(
    world: Make, times: tuple[int, ...], slow: int | None
) -> None:
    """Nothing fires for short times, for several slow brokers, nor where there are only two."""
    with ExitStack() as stack:
        brokers = [stack.enter_context(pages(metrics=TIME.format(each))) for each in times]
        found = world(metrics=[f"{each.url}/metrics" for each in brokers])
        assert found.look_until_due() == ({"BrokerSlowerThanOthers"} if slow else set())
        if slow:
            [alert] = found.alerts
            assert dict(alert.labels)["instance"] == brokers[0].netloc
            assert "16 times as long" in alert.summary
            assert f"{slow}, others have 25 ms" in alert.summary
            brokers[0].pages["/metrics"] = TIME.format(50)
            found.look()
            assert found.look(2 * MINUTE_MS) == set()


def test_an_endpoint_that_is_away_is_no_peer(world: Make, closed: str) -> None:
    with pages(metrics=TIME.format(400)) as one, pages(metrics=TIME.format(20)) as two:
        found = world(metrics=[f"{one.url}/metrics", f"{two.url}/metrics", f"{closed}/metrics"])
        assert found.look_until_due() == {"CheckBlind"}


def test_records_that_the_probe_loses_fire_after_a_while_and_end(world: Make) -> None:
    lost = 'kminion_end_to_end_messages_lost_total{{partition_id="0"}} {}\n'
    with pages(metrics=lost.format(0)) as lag:
        found = world(metrics=[f"{lag.url}/metrics"])
        found.look()
        for number in range(1, 8):  # they time out in bursts, so some looks see none
            lag.pages["/metrics"] = lost.format(8 * number)
            assert found.look(15_000) == (set() if number < 5 else {"ProbeLosesRecords"})
            assert found.look(15_000) == (set() if number < 5 else {"ProbeLosesRecords"})
        assert found.look(MINUTE_MS) == set()


def test_a_restart_in_which_the_probe_loses_records_does_not_fire(world: Make) -> None:
    lost = 'kminion_end_to_end_messages_lost_total{{partition_id="0"}} {}\n'
    with pages(metrics=lost.format(0)) as lag:
        found = world(metrics=[f"{lag.url}/metrics"])
        for number in (0, 0, 5, 9, 12, *[12] * 20):
            lag.pages["/metrics"] = lost.format(number)
            assert found.look(15_000) == set()


def test_a_page_that_is_no_page_of_metrics_blinds_its_place(world: Make) -> None:
    with pages(metrics="<html>\n") as broken, pages(metrics=f"{THROTTLED} 2500\n") as broker:
        found = world(metrics=[f"{broken.url}/metrics", f"{broker.url}/metrics"])
        assert found.look_until_due() == {"ClientsThrottled", "CheckBlind"}
        assert {labels for _, labels in found.unknown} == {labels_of(instance=broken.netloc)}


def test_a_certificate_that_ends_soon_fires(world: Make, tmp_path: Path) -> None:
    with tls_listener(tmp_path, days=5) as ending, tls_listener(tmp_path, days=90) as fresh:
        found = world(certificates=[ending, fresh])
        assert found.look() == {"CertificateEnds"}
        [alert] = found.alerts
        assert alert.labels == labels_of(address=ending)
        assert "CN=node-1" in alert.summary


def test_a_plain_listener_has_no_certificate_to_look_at(world: Make) -> None:
    with pages() as plain:
        found = world(certificates=[plain.netloc])
        found.look()
        assert list(found.unknown) == [("certificate_days", labels_of(address=plain.netloc))]


def test_a_cluster_that_is_away_is_one_alert(world: Make, closed: str) -> None:
    properties = {"bootstrap.servers": closed.removeprefix("http://")}
    rules = [{"name": each.name, "enabled": False} for each in DEFAULTS if each.check.startswith("group")]
    rules += [{"name": "RetentionOvertakesGroup", "enabled": False}]
    found = world(clusters=[{"name": "main", "properties": properties}], rules=rules)
    assert found.look_until_due() == {"ClusterUnreachable"}
    assert found.unknown == {}


def test_an_error_of_ours_in_one_part_ends_no_look(world: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*given: object) -> None:
        raise RuntimeError("a bug")

    with pages(metrics=f"{THROTTLED} 2500\n", **{CONNECTORS: status(jdbc="FAILED")}) as service:
        found = world(metrics=[f"{service.url}/metrics"], connect=[service.url])
        monkeypatch.setattr("barnabas.monitor.alert_service.measuring.samples_of", broken)
        assert found.look_until_due() == {"ConnectorFailed", "CheckBlind"}
        assert "unexpected: a bug" in " ".join(found.unknown.values())


def test_rules_without_a_place_to_look_at_are_told(world: Make) -> None:
    idle = {rule.name: why_idle(rule, world().file) for rule in DEFAULTS}
    assert {name for name, reason in idle.items() if reason} == {
        "AuditIncomplete",
        "CertificateEnds",
        "UncleanElections",
        "UnexpectedErrors",
        "ProduceSlow",
        "BrokerSlowerThanOthers",
        "LoopBusy",
        "MetadataBehind",
        "ProbeLosesRecords",
        "ProbeIsRefused",
        "ClientsThrottled",
        "ConnectorFailed",
        "PipelineFailing",
    }
    assert "the file has no `connect`" in str(idle["ConnectorFailed"])
    found = world(
        connect=["http://a"], metrics=["http://a/metrics"], audit=["http://a"], certificates=["a:1"]
    )
    assert [why_idle(rule, found.file) for rule in DEFAULTS] == [None] * len(DEFAULTS)


def test_places_are_matched_by_all_their_labels() -> None:
    look = Measurements()
    look.fail(["a", "b"], labels_of(cluster="x", broker=1), "away")
    look.fail(["a"], labels_of(cluster="y"), "gone", is_expected=True)
    assert look.blind_places("a") == [labels_of(cluster="x", broker=1), labels_of(cluster="y")]
    assert look.blind_places("b") == [labels_of(cluster="x", broker=1)]


def test_a_rule_of_ones_own_is_about_the_objects_that_match_and_names_them() -> None:
    given = {"name": "Idle", "check": "topic_idle_minutes", "match": {"topic": "orders"}, "above": 15}
    rule = next(each for each in alerts_file({"rules": [given]}, "test").rules if each.name == "Idle")
    look = Measurements()
    look.add("topic_idle_minutes", [Finding(20, labels_of(topic=each)) for each in ("orders", "other")])
    [found] = findings_for(look, rule)
    assert rule.summary_of(found) == "Idle: 20 (topic=orders) "
