"""Measures everything that rules ask about: clusters, groups, metrics, services, certificates.

In: the file of alerts. Out: for each check its findings, or why it could not measure. A part that fails or
hangs changes nothing for the others. Does not know: rules' limits, states, targets.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import httpx

from barnabas.client.admin.admin import Admin
from barnabas.client.cluster import Cluster
from barnabas.client.core.address import Address
from barnabas.monitor.alert_service.file import AlertsFile, ClusterSettings
from barnabas.monitor.alerts.rule import Finding, Labels, Rule, labels_of
from barnabas.monitor.checks.certificates import certificate_days, certificates_of
from barnabas.monitor.checks.cluster_checks import CHECKS, LAYOUT_CHECKS, blind_checks, disk_full_hours, seen
from barnabas.monitor.checks.cluster_facts import ERRORS, ClusterFacts, read_cluster, reason_of
from barnabas.monitor.checks.disk_trend import DiskTrends
from barnabas.monitor.checks.group_checks import group_findings, idle_topics
from barnabas.monitor.checks.scraped_metrics import MetricHistory, samples_of
from barnabas.monitor.checks.services import audit_alarms, failed_connectors
from barnabas.monitor.lag.cluster_lag import LagRules
from barnabas.monitor.lag_service.cluster_watch import ClusterWatch, WatchSettings
from barnabas.runtime.pieces import Pieces

log = logging.getLogger("barnabas.alerts")

CLIENT_ID = "barnabas-alerts"
ASK_S_MAX = 15.0
PART_S_MAX = 40.0  # of one round: a cluster of which no part answers in time needs less
PAGE_BYTES_MAX = 64 * 1024 * 1024
METRIC_CHECKS = ("metric", "metric_increase", "metric_peers")
BLIND = "check_blind"
Spans = Mapping[str, Collection[float]]  # by metric: of which seconds its growth is asked for
Place = tuple[str, Labels]  # a check, and the labels of the object that it could not measure
# Burrow judges from the first commit on. An alert waits until it is known how often a group commits, and
# as long as Kafka's clients may take for the records of one poll (max.poll.interval.ms).
PATIENT_RULES = LagRules(minimum_complete=0.5, silence_ms_min=300_000, silence_ms_max=900_000)
GROUP_CHECKS = ("group_status", "group_lag", "group_lag_seconds", "retention_hours")
IDLE = "topic_idle_minutes"
LAG_CHECKS = (*GROUP_CHECKS, IDLE)


@dataclass(slots=True)
class Measurements:
    """The findings of each check. In a place of `unknown` a check could not measure: its alerts with these
    labels stay as they are. `expected` has places whose reason is an alert of another check."""

    findings: dict[str, list[Finding]] = field(default_factory=dict)
    unknown: dict[Place, str] = field(default_factory=dict)
    expected: dict[Place, str] = field(default_factory=dict)
    facts: dict[str, ClusterFacts] = field(default_factory=dict)  # by cluster

    def add(self, check: str, findings: Iterable[Finding], labels: Labels = (), words: Labels = ()) -> None:
        known = self.findings.setdefault(check, [])
        for each in findings:
            known.append(replace(each, labels=tuple(sorted({*labels, *each.labels})), words=words))

    def fail(self, checks: Iterable[str], labels: Labels, reason: str, *, is_expected: bool = False) -> None:
        places = self.expected if is_expected else self.unknown
        for check in checks:
            places[check, tuple(sorted(labels))] = reason

    def blind_places(self, check: str) -> list[Labels]:
        return [labels for found, labels in (*self.unknown, *self.expected) if found == check]


def place_text(place: Place) -> str:
    check, labels = place
    where = " ".join(f"{name}={value}" for name, value in labels)
    return f"{check} ({where})" if where else check


class WatchedCluster:
    """One cluster under watch: its client, its disks over time, the lag of its groups."""

    def __init__(
        self,
        settings: ClusterSettings,
        pieces: Pieces,
        rules: LagRules | None,
        certificates: Sequence[Address] = (),
        asked: frozenset[str] = frozenset(),
        span_s_max: float = 0.0,
    ) -> None:
        """`rules`: which groups to watch; None for no groups. `certificates`: addresses that are measured
        anyhow; those of the cluster's brokers are measured here, if clients reach them by TLS. `asked`: the
        checks of all rules. `span_s_max`: for how long metrics are kept."""
        self.settings = settings
        self._layout = [name for name in LAYOUT_CHECKS if name in asked]
        self._cluster_checks = ("unreachable", *CHECKS, "disk_full_hours", *self._layout)
        self._watches_idle = IDLE in asked
        self._certificates = frozenset(certificates)
        self.client = Cluster(settings.bootstrap, client_id=CLIENT_ID, security=settings.security)
        self._admin = Admin(self.client)
        self._trends = DiskTrends()
        self._pieces = pieces
        self._metrics = MetricHistory(span_s_max)
        self._watch: ClusterWatch | None = None
        if rules is not None:
            watch = WatchSettings(settings.name, settings.bootstrap, settings.security, CLIENT_ID, rules)
            self._watch = ClusterWatch(watch, pieces)

    def start(self) -> None:
        if self._watch is not None:
            self._watch.start()

    async def stop(self) -> None:
        if self._watch is not None:
            await self._watch.stop()
        await self.client.close()

    @property
    def labels(self) -> Labels:
        return labels_of(cluster=self.settings.name)

    @property
    def words(self) -> Labels:
        return labels_of(bootstrap=self.settings.bootstrap_text)

    async def measure(self, measured: Measurements, names: Spans, now_ms: int) -> None:
        await asyncio.gather(
            attempt(
                measured,
                self._cluster_checks,
                self.labels,
                lambda: self._measure_cluster(measured, now_ms),
            ),
            attempt(measured, LAG_CHECKS, self.labels, lambda: self._measure_groups(measured, now_ms)),
            scrape(measured, self._metrics, self.settings.metrics, names, now_ms, self.labels, self.words),
        )

    async def _measure_cluster(self, measured: Measurements, now_ms: int) -> None:
        try:
            facts = await read_cluster(self._admin)
        except ERRORS as error:
            reason = reason_of(error)
            measured.add("unreachable", [Finding(1, (), reason)], self.labels, self.words)
            measured.fail(self._cluster_checks[1:], self.labels, reason, is_expected=True)
            await self._measure_certificates(measured, self.settings.bootstrap)
            return
        measured.facts[self.settings.name] = facts
        measured.add("unreachable", [Finding(0)], self.labels, self.words)
        for name, findings in seen(facts):
            measured.add(name, findings, self.labels, self.words)
        for name in self._layout:
            measured.add(name, LAYOUT_CHECKS[name](facts), self.labels, self.words)
        measured.add("disk_full_hours", disk_full_hours(facts, self._trends, now_ms), self.labels, self.words)
        brokers = [each.address for each in facts.brokers.values() if not each.fenced]
        await self._measure_certificates(measured, brokers)
        for blind in blind_checks(facts):
            measured.fail(
                (blind.check,), self.labels + blind.labels, blind.reason, is_expected=blind.is_expected
            )

    async def _measure_certificates(self, measured: Measurements, addresses: Sequence[Address]) -> None:
        """Measure certificates of a cluster that cannot be reached, too: they may be the reason."""
        if self.settings.security.tls is None:
            return
        found, failures = await certificates_of(set(addresses) - self._certificates)
        measured.add("certificate_days", found, self.labels, self.words)
        for address, reason in failures.items():  # a broker that is gone: other checks say so
            labels = self.labels + labels_of(address=address)
            measured.fail(("certificate_days",), labels, reason, is_expected=True)

    async def _measure_groups(self, measured: Measurements, now_ms: int) -> None:
        if self._watch is None:
            return
        reason = self._watch.why_not_ready()
        if reason is not None:
            measured.fail(LAG_CHECKS, self.labels, reason)
            return
        if self._watches_idle:
            found = await self._pieces.run(idle_topics(self._watch.lag, now_ms))
            measured.add(IDLE, found, self.labels, self.words)
        for name, findings in (await self._pieces.run(group_findings(self._watch.lag, now_ms))).items():
            measured.add(name, findings, self.labels, self.words)


class Measuring:
    """`start`, then `measure` from time to time; `stop` closes all connections."""

    def __init__(self, file: AlertsFile, *, with_groups: bool = True) -> None:
        """`with_groups`: watch the groups if rules ask for them, which takes a while."""
        self._file = file
        pieces = Pieces(time.perf_counter)
        checks = {rule.check for rule in file.rules}
        rules = None
        if with_groups and not checks.isdisjoint(LAG_CHECKS):
            rules = file.lag_rules or replace(
                PATIENT_RULES, group_allowed=file.groups_allowed, group_denied=file.groups_denied
            )
        self._names: dict[str, set[float]] = {}
        for rule in file.rules:
            if rule.check in METRIC_CHECKS:
                self._names.setdefault(str(rule.options["metric"]), set()).add(span_of(rule))
        span_s_max = max((span for spans in self._names.values() for span in spans), default=0.0)
        self.clusters = [
            WatchedCluster(each, pieces, rules, file.certificates, frozenset(checks), span_s_max)
            for each in file.clusters
        ]
        self._metrics = MetricHistory(span_s_max)

    def start(self) -> None:
        for each in self.clusters:
            each.start()

    async def stop(self) -> None:
        await asyncio.gather(*(each.stop() for each in self.clusters))

    async def measure(self, now_ms: int) -> Measurements:
        measured = Measurements()
        file = self._file
        await asyncio.gather(
            *(each.measure(measured, self._names, now_ms) for each in self.clusters),
            *(ask(measured, "audit", url, "/alarms", audit_alarms) for url in file.audit),
            *(
                ask(measured, "connector_failed", url, "/connectors?expand=status", failed_connectors)
                for url in file.connect
            ),
            *(measure_certificate(measured, address) for address in file.certificates),
            scrape(measured, self._metrics, file.metrics, self._names, now_ms, (), ()),
        )
        return measured


async def scrape(
    measured: Measurements,
    history: MetricHistory,
    urls: Sequence[str],
    names: Spans,
    now_ms: int,
    labels: Labels,
    words: Labels,
) -> None:
    """Read the pages of some endpoints side by side, and put what rules ask about into the measured."""
    wanted = frozenset(names)
    instances: list[str] = []

    async def one(url: str) -> None:
        instance = httpx.URL(url).netloc.decode()
        text = await get_text(url)
        samples = await asyncio.to_thread(samples_of, text, wanted, instance)
        history.add(instance, samples, now_ms)
        instances.append(instance)
        for name, spans in names.items():
            measured.add(f"metric:{name}", history.values(name, instance), labels, words)
            for span_s in spans:
                grown = history.increases(name, instance, span_s)
                measured.add(f"metric_increase:{name}:{span_s:g}", grown, labels, words)

    if names:
        await asyncio.gather(
            *(attempt(measured, METRIC_CHECKS, labels + instance_of(url), partial(one, url)) for url in urls)
        )
        for name in names:
            measured.add(f"metric_peers:{name}", history.peers(name, instances), labels, words)


def instance_of(url: str) -> Labels:
    return labels_of(instance=httpx.URL(url).netloc.decode())


async def ask(
    measured: Measurements, check: str, url: str, path: str, read: Callable[[Any, str], list[Finding]]
) -> None:
    async def one() -> None:
        async with httpx.AsyncClient(timeout=ASK_S_MAX) as client:
            response = await client.get(url + path)
            response.raise_for_status()
            measured.add(check, read(response.json(), url))

    await attempt(measured, (check,), labels_of(url=url), one)


async def measure_certificate(measured: Measurements, address: Address) -> None:
    async def one() -> None:
        measured.add("certificate_days", [await asyncio.to_thread(certificate_days, address)])

    await attempt(measured, ("certificate_days",), labels_of(address=address), one)


async def get_text(url: str) -> str:
    async with httpx.AsyncClient(timeout=ASK_S_MAX) as client, client.stream("GET", url) as response:
        response.raise_for_status()
        parts, size = [], 0
        async for part in response.aiter_bytes():
            size += len(part)
            if size > PAGE_BYTES_MAX:
                raise ValueError(f"the page has more than {PAGE_BYTES_MAX} bytes")
            parts.append(part)
    return b"".join(parts).decode("utf-8", "replace")


async def attempt(
    measured: Measurements, checks: Iterable[str], place: Labels, work: Callable[[], Awaitable[None]]
) -> None:
    """Run a part of the measurements. If it fails, its checks are blind at this place, and nowhere else."""
    try:
        async with asyncio.timeout(PART_S_MAX):
            await work()
    except (httpx.HTTPError, OSError, TimeoutError, ValueError) as error:
        measured.fail(checks, place, reason_of(error))
    except Exception as error:
        log.exception("a part of the measurements failed")
        measured.fail(checks, place, f"unexpected: {reason_of(error)}")


def span_of(rule: Rule) -> float:
    """The seconds of which a rule wants the growth; 0: since the last look."""
    span_s = rule.options.get("over", 0.0)
    return float(span_s) if isinstance(span_s, int | float) else 0.0


def findings_for(measured: Measurements, rule: Rule) -> list[Finding]:
    if rule.check == BLIND:
        return [
            Finding(1, tuple(sorted({*labels, ("check", check)})), reason)
            for (check, labels), reason in measured.unknown.items()
        ]
    key = f"{rule.check}:{rule.options['metric']}" if rule.check in METRIC_CHECKS else rule.check
    if rule.check == "metric_increase":
        key += f":{span_of(rule):g}"
    found = measured.findings.get(key, [])
    if rule.has_patterns:
        found = [each for each in found if rule.admits(each)]
    match, least = rule.options.get("match"), rule.options.get("least")
    if isinstance(match, Mapping):
        wanted = dict(match).items()
        found = [each for each in found if wanted <= dict(each.labels).items()]
    if isinstance(least, int | float):  # of the sample itself, where a check compares it
        found = [each for each in found if isinstance(each.subject, float) and each.subject >= least]
    return found
