"""One look at everything that rules ask about: clusters, groups, metrics, services, certificates.

In: the file of alerts. Out: for each check its findings, or why it could not look. A part that fails or
hangs changes nothing for the others. Does not know: rules' limits, states, targets.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import httpx

from barnabas.client.admin.admin import Admin
from barnabas.client.cluster import Cluster
from barnabas.client.core.address import Address
from barnabas.monitor.alert_service.file import AlertsFile, ClusterSettings
from barnabas.monitor.alerts.rule import Finding, Labels, labels_of
from barnabas.monitor.checks.certificates import certificate_days
from barnabas.monitor.checks.cluster_checks import CHECKS, disk_full_hours
from barnabas.monitor.checks.cluster_facts import ERRORS, read_cluster
from barnabas.monitor.checks.disk_trend import DiskTrends
from barnabas.monitor.checks.group_checks import group_findings
from barnabas.monitor.checks.scraped_metrics import MetricHistory, Sample, samples_of
from barnabas.monitor.checks.services import audit_alarms, failed_connectors
from barnabas.monitor.lag_service.cluster_watch import ClusterWatch, WatchSettings
from barnabas.runtime.pieces import Pieces

T = TypeVar("T")

CLIENT_ID = "barnabas-alerts"
ASK_S_MAX = 15.0
PAGE_BYTES_MAX = 64 * 1024 * 1024
METRIC_CHECKS = ("metric", "metric_increase")
GROUP_CHECKS = ("group_status", "group_lag", "group_lag_seconds", "retention_hours")


@dataclass(slots=True)
class Look:
    """The findings of each check. A check in `unknown` could not look, at least not everywhere: its alerts
    stay as they are."""

    findings: dict[str, list[Finding]] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)

    def add(self, check: str, findings: Iterable[Finding], labels: Labels = (), words: Labels = ()) -> None:
        known = self.findings.setdefault(check, [])
        for each in findings:
            known.append(replace(each, labels=tuple(sorted({*labels, *each.labels})), words=words))

    def fail(self, checks: Iterable[str], reason: str) -> None:
        for check in checks:
            self.unknown[check] = reason


class ClusterLook:
    """One cluster under watch: its client, its disks over time, the lag of its groups."""

    def __init__(self, settings: ClusterSettings, pieces: Pieces, *, with_groups: bool) -> None:
        self.settings = settings
        self.client = Cluster(settings.bootstrap, client_id=CLIENT_ID, security=settings.security)
        self._admin = Admin(self.client)
        self._trends = DiskTrends()
        self._pieces = pieces
        self._metrics = MetricHistory()
        self._watch: ClusterWatch | None = None
        if with_groups:
            watch = WatchSettings(settings.name, settings.bootstrap, settings.security, CLIENT_ID)
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

    async def look(self, look: Look, names: Sequence[str], now_ms: int) -> None:
        try:
            facts = await read_cluster(self._admin)
        except ERRORS as error:
            reason = str(error) or type(error).__name__
            look.add("unreachable", [Finding(1, (), reason)], self.labels, self.words)
            look.fail((*CHECKS, "disk_full_hours"), f"cluster {self.settings.name}: {reason}")
        else:
            look.add("unreachable", [Finding(0)], self.labels, self.words)
            for name, check in CHECKS.items():
                look.add(name, check(facts), self.labels, self.words)
            look.add("disk_full_hours", disk_full_hours(facts, self._trends, now_ms), self.labels, self.words)
        await self._look_at_groups(look, now_ms)
        await self._look_at_metrics(look, names)

    async def _look_at_groups(self, look: Look, now_ms: int) -> None:
        if self._watch is None:
            return
        reason = self._watch.why_not_ready()
        if reason is not None:
            look.fail(GROUP_CHECKS, reason)
            return
        for name, findings in (await self._pieces.run(group_findings(self._watch.lag, now_ms))).items():
            look.add(name, findings, self.labels, self.words)

    async def _look_at_metrics(self, look: Look, names: Sequence[str]) -> None:
        await scrape(look, self._metrics, self.settings.metrics, names, self.labels, self.words)


class Looking:
    """`start`, then `look` from time to time; `stop` closes all connections."""

    def __init__(self, file: AlertsFile) -> None:
        self._file = file
        pieces = Pieces(time.perf_counter)
        checks = {rule.check for rule in file.rules}
        with_groups = not checks.isdisjoint(GROUP_CHECKS)
        self.clusters = [ClusterLook(each, pieces, with_groups=with_groups) for each in file.clusters]
        self._names = sorted(
            {str(rule.options["metric"]) for rule in file.rules if rule.check in METRIC_CHECKS}
        )
        self._metrics = MetricHistory()

    def start(self) -> None:
        for each in self.clusters:
            each.start()

    async def stop(self) -> None:
        await asyncio.gather(*(each.stop() for each in self.clusters))

    async def look(self, now_ms: int) -> Look:
        look = Look()
        file = self._file
        await asyncio.gather(
            *(each.look(look, self._names, now_ms) for each in self.clusters),
            *(ask(look, "audit", url, "/alarms", audit_alarms) for url in file.audit),
            *(
                ask(look, "connector_failed", url, "/connectors?expand=status", failed_connectors)
                for url in file.connect
            ),
            *(look_at_certificate(look, address) for address in file.certificates),
            scrape(look, self._metrics, file.metrics, self._names, (), ()),
        )
        return look


async def scrape(
    look: Look,
    history: MetricHistory,
    urls: Sequence[str],
    names: Sequence[str],
    labels: Labels,
    words: Labels,
) -> None:
    """Read the pages of some endpoints, and put what rules ask about into the look."""
    if not urls or not names:
        return
    samples: list[Sample] = []
    wanted = frozenset(names)
    for url in urls:
        instance = httpx.URL(url).netloc.decode()
        text = await attempt(look, METRIC_CHECKS, url, lambda url=url: get_text(url))  # type: ignore[misc]
        if text is None:
            continue
        found = await attempt(
            look,
            METRIC_CHECKS,
            url,
            lambda text=text, instance=instance: asyncio.to_thread(  # type: ignore[misc]
                samples_of, text, wanted, instance
            ),
        )
        samples += found or ()
    history.take(samples)
    for name in names:
        look.add(f"metric:{name}", history.values(name), labels, words)
        look.add(f"metric_increase:{name}", history.increases(name), labels, words)


async def ask(look: Look, check: str, url: str, path: str, read: Callable[[Any, str], list[Finding]]) -> None:
    async def findings() -> list[Finding]:
        async with httpx.AsyncClient(timeout=ASK_S_MAX) as client:
            response = await client.get(url + path)
            response.raise_for_status()
            return read(response.json(), url)

    found = await attempt(look, (check,), url, findings)
    if found is not None:
        look.add(check, found)


async def look_at_certificate(look: Look, address: Address) -> None:
    found = await attempt(
        look, ("certificate_days",), str(address), lambda: asyncio.to_thread(certificate_days, address)
    )
    if found is not None:
        look.add("certificate_days", [found])


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
    look: Look, checks: Iterable[str], place: str, work: Callable[[], Awaitable[T]]
) -> T | None:
    try:
        async with asyncio.timeout(2 * ASK_S_MAX):
            return await work()
    except (httpx.HTTPError, OSError, TimeoutError, ValueError) as error:
        look.fail(checks, f"{place}: {error or type(error).__name__}")
        return None


def findings_for(look: Look, check: str, options: Mapping[str, object]) -> list[Finding] | None:
    """The findings for a rule; None if the check could not look."""
    if check in look.unknown:
        return None
    if check not in METRIC_CHECKS:
        return look.findings.get(check, [])
    match = options.get("match")
    wanted = dict(match) if isinstance(match, Mapping) else {}
    return [
        each
        for each in look.findings.get(f"{check}:{options['metric']}", [])
        if wanted.items() <= dict(each.labels).items()
    ]
