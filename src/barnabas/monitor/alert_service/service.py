"""The alert service made from its settings: evaluator, election, topics, HTTP.

In: `ServiceSettings` of the service `alerts`. Out: a `Service` of the frame. The first cluster of the file
keeps the state and the history, and elects the leader. While it cannot be reached, the service evaluates
without it and tells: an alert must not wait for the cluster that it is about.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from barnabas.client.core.errors import ClientError
from barnabas.client.groups.leadership import Leadership
from barnabas.client.groups.membership import GroupSettings
from barnabas.monitor.alert_service.alert_topics import AlertTopics, StateFollower
from barnabas.monitor.alert_service.api import AlertsApi
from barnabas.monitor.alert_service.burrow_alerts import read_any
from barnabas.monitor.alert_service.evaluator import HOST, Evaluator, now_ms
from barnabas.monitor.alert_service.file import BOOTSTRAP, AlertsFile, alerts_file
from barnabas.monitor.alert_service.measuring import Measuring, place_text
from barnabas.monitor.targets.texts import iso
from barnabas.protocol import KafkaError
from barnabas.services.app import Service
from barnabas.services.errors import ApiError
from barnabas.services.metrics import ServiceMetrics
from barnabas.services.settings.service_settings import ServiceSettings

log = logging.getLogger("barnabas.alerts")

NAME = "alerts"
GROUP = GroupSettings(
    "barnabas-alerts", "barnabas-leader", session_timeout_ms=10_000, rebalance_timeout_ms=10_000
)
CONNECT_S_MAX = 20.0
RETRY_S = 10.0
LEADERLESS_S_MAX = 30.0  # an election takes a session timeout of 10 s at the most
UNAVAILABLE = (KafkaError, ClientError, OSError, TimeoutError)


def service(settings: ServiceSettings) -> Service:
    return AlertService(file_of(settings)).service()


def file_of(settings: ServiceSettings) -> AlertsFile:
    if settings["alerts.file"]:
        found = read_any(Path(settings["alerts.file"]))
        if found.clusters:
            return found
    properties = {**settings.below("client."), BOOTSTRAP: settings[BOOTSTRAP]}
    given = {"clusters": [{"name": "default", "properties": properties}]}
    if not settings["alerts.file"]:
        return alerts_file(given, "settings")
    clusters = alerts_file(given, "settings").clusters
    return AlertsFile(**{**{name: getattr(found, name) for name in found.__slots__}, "clusters": clusters})


class AlertService:
    def __init__(self, file: AlertsFile) -> None:
        self.file = file
        self._measuring = Measuring(file)
        client = self._measuring.clusters[0].client
        self._topics = AlertTopics(client)
        self._state = StateFollower(client)
        self._leadership = Leadership(client, GROUP, f"{HOST}-{os.getpid()}", self._changed)
        self._started_ms = now_ms()
        self._has_memory = False
        self._is_loaded = False  # since this process leads
        self._work: set[asyncio.Task[None]] = set()
        self.evaluator = Evaluator(file, self._measuring, self._may_tell)

    def service(self) -> Service:
        metrics = ServiceMetrics(NAME)
        metrics.registry.register(AlertCollector(self.evaluator, self._may_tell))
        api = AlertsApi(self.evaluator, self._history, self._status)
        return Service(NAME, api.routes(), self._start, self._stop, self._why_not_ready, metrics=metrics)

    def _may_tell(self) -> bool:
        """The leader tells. Where nobody is elected for a while, everybody does: better twice than never."""
        if not self._has_memory or self._leadership.leaderless_s > LEADERLESS_S_MAX:
            return True
        return self._leadership.is_leader and self._is_loaded

    # -- life ----------------------------------------------------------------------------------------

    async def _start(self) -> None:
        self._measuring.start()
        try:
            async with asyncio.timeout(CONNECT_S_MAX):
                await self._remember()
        except UNAVAILABLE as error:
            log.error("the topics of alerts cannot be used yet: %s", error or type(error).__name__)
            self._begin(self._remember_later())
        self.evaluator.start()

    async def _stop(self) -> None:
        for task in tuple(self._work):
            task.cancel()
        await asyncio.gather(*self._work, return_exceptions=True)
        await self.evaluator.stop()
        await self._leadership.stop()
        await self._topics.close()
        await self._measuring.stop()

    async def _remember(self) -> None:
        """Follow what other processes store, and take part in the election."""
        await self._topics.create()
        following = self._begin(self._follow())
        try:
            await self._state.caught_up()
        except BaseException:
            following.cancel()
            raise
        self.evaluator.remember(self._topics, self._state.kept)
        self._has_memory = True
        self._leadership.start()

    async def _remember_later(self) -> None:
        while not self._has_memory:
            await asyncio.sleep(RETRY_S)
            with contextlib.suppress(*UNAVAILABLE):
                async with asyncio.timeout(CONNECT_S_MAX):
                    await self._remember()

    async def _follow(self) -> None:
        while True:
            try:
                await self._state.run()
            except UNAVAILABLE as error:
                log.warning("the state of alerts cannot be read: %s", error or type(error).__name__)
            await asyncio.sleep(RETRY_S)

    def _changed(self) -> None:
        leads = self._leadership.is_leader
        log.info("this process %s the evaluation of alerts", "leads" if leads else "follows")
        self._is_loaded = False
        if leads:
            self._begin(self._load())

    async def _load(self) -> None:
        """Learn what the leader before this one told, so that nobody hears of it twice."""
        while self._leadership.is_leader and not self._is_loaded:
            try:
                await self._state.caught_up()
            except UNAVAILABLE as error:
                log.warning("the state of alerts cannot be read: %s", error or type(error).__name__)
                await asyncio.sleep(RETRY_S)
            else:
                self.evaluator.remember(self._topics, self._state.kept)
                self._is_loaded = True

    def _begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)
        return task

    # -- answers -------------------------------------------------------------------------------------

    def _why_not_ready(self) -> str | None:
        return None if self.evaluator.looks else "the first look is not done yet"

    async def _history(self, since_ms: int, limit: int) -> list[dict[str, Any]]:
        if not self._has_memory:
            raise ApiError(503, 50301, "the topics of alerts cannot be read yet: ask again in a moment")
        return await self._topics.history(since_ms, limit)

    def _status(self) -> dict[str, Any]:
        return {
            "leader": self._leadership.leader,
            "is_leader": self._leadership.is_leader,
            "problem": self._leadership.problem,
            "checks_without_view": {
                place_text(place): reason for place, reason in self.evaluator.unknown.items()
            },
            "cluster": {"status": "ready" if self._has_memory else "settling", "peers": []},
            "versionInfo": {"version": "barnabas"},
            "uptime": iso(self._started_ms),
            "config": {"original": ""},
        }


class AlertCollector(Collector):
    """Metrics of the service, with `ALERTS` as Prometheus has it."""

    def __init__(self, evaluator: Evaluator, may_tell: Callable[[], bool]) -> None:
        self._evaluator = evaluator
        self._may_tell = may_tell

    def collect(self) -> Iterator[Metric]:
        evaluator = self._evaluator
        counts = Counter((each.rule, each.state.value, each.severity) for each in evaluator.book.alerts())
        labels = ["alertname", "alertstate", "severity"]
        alerts = GaugeMetricFamily("ALERTS", "Pending and firing alerts.", labels=labels)
        for key, count in counts.items():
            alerts.add_metric(list(key), count)
        yield alerts
        untracked = GaugeMetricFamily(
            "barnabas_alerts_untracked",
            "Objects that violate a rule beyond the number that it tracks.",
            labels=["alertname"],
        )
        for rule, count in evaluator.book.untracked.items():
            untracked.add_metric([rule], count)
        yield untracked
        blind = GaugeMetricFamily(
            "barnabas_alerts_check_failing",
            "Places at which a check could not look.",
            labels=["check"],
        )
        for check, count in Counter(check for check, _ in evaluator.unknown).items():
            blind.add_metric([check], count)
        yield blind
        tells = float(self._may_tell())
        yield GaugeMetricFamily("barnabas_alerts_leader", "1 if this process tells targets.", tells)
        for name, text, value in (
            ("looks", "Evaluations of all rules.", evaluator.looks),
            ("deliveries", "Messages that targets accepted.", evaluator.deliveries),
            ("delivery_failures", "Messages that targets did not accept.", evaluator.failures),
        ):
            yield CounterMetricFamily(f"barnabas_alerts_{name}", text, value)
