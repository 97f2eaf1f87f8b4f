"""The auditor: keeps a ledger up to date with the audit topic, and makes reports of it.

In: a client of the brokers, rules. Out: reports; alarms that are new, and alarms that ended, as they come. It
keeps nothing on disk: after a restart the audit topic tells everything again.
Does not know: HTTP, how a report is shown.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from barnabas.audit.core.ledger import KEEP_MS, Ledger
from barnabas.audit.core.messages import CountMessage
from barnabas.audit.core.report import Report, Row, Rules, make_report
from barnabas.audit.counters.audit_topic import AUDIT_TOPIC, ensure_topic
from barnabas.audit.counters.audit_topic_reader import AuditTopicReader
from barnabas.audit.report.broker_time import BrokerTime
from barnabas.client.core.cluster import ClusterCore
from barnabas.client.core.errors import ClientError
from barnabas.protocol import KafkaError

log = logging.getLogger("barnabas.audit")
ALARMS_WAITING_MAX = 10_000
REPORTS_MISSED_MAX = 3
REPORT_S_MAX = 60.0  # that a report may take
EXPECTED = (KafkaError, ClientError, OSError, TimeoutError)

AlarmKey = tuple[str, int, str]  # topic, bucket, tier


@dataclass(frozen=True, slots=True)
class AlarmChange:
    """An alarm that is raised, or has changed, or ended because late records came."""

    row: Row
    is_over: bool
    revision: int


def system_ms() -> int:
    return int(time.time() * 1000)


class Auditor:
    def __init__(
        self,
        cluster: ClusterCore,
        topic: str = AUDIT_TOPIC,
        rules: Rules | None = None,
        *,
        history_ms: int = KEEP_MS,
        now_ms: Callable[[], int] = system_ms,
    ) -> None:
        self.rules = rules or Rules()
        self.ledger = Ledger(keep_ms=history_ms)
        self.last: Report | None = None
        self.on_report: list[Callable[[Report], None]] = []  # called in the thread that made it
        self.problem = ""  # why there is no newer report
        self.cluster = cluster
        self._topic = topic
        self._reader = AuditTopicReader(cluster, topic, from_ms=now_ms() - history_ms)
        self._now_ms = now_ms
        self._time = BrokerTime()
        self._alarms: dict[AlarmKey, AlarmChange] = {}
        self._followers: set[asyncio.Queue[AlarmChange]] = set()

    async def refresh(self) -> Report:
        """Read what is new in the audit topic, and make the next report."""
        await ensure_topic(self.cluster, self._topic)
        looked_ms = self._now_ms()
        await self._reader.catch_up(self._apply)
        self.ledger.since_ms = self._reader.since_ms
        now_ms = self._time.time_ms(looked_ms, self._now_ms())
        self.ledger.forget_before(now_ms)
        self.last = await asyncio.to_thread(self._make_report, now_ms)
        self._note_alarms(self.last)
        return self.last

    def _make_report(self, now_ms: int) -> Report:
        report = make_report(self.ledger, self.rules, now_ms)
        for each in self.on_report:
            each(report)
        return report

    def _apply(self, message: CountMessage, arrived_ms: int) -> None:
        self._time.saw(arrived_ms)
        self.ledger.apply(message, arrived_ms)

    async def run(self, interval_s: float) -> None:
        """Make a report every so often, for ever."""
        while True:
            try:
                report = await self.refresh()
            except EXPECTED as error:
                self.problem = str(error) or type(error).__name__
                log.warning("no report: %s. Trying again in %.0f s", self.problem, interval_s)
            except Exception as error:
                self.problem = f"unexpected: {error or type(error).__name__}"
                log.exception("no report. Trying again in %.0f s", interval_s)
            else:
                self.problem = ""
                log.info("report: %d rows, %d alarms", len(report.rows), len(report.alarms))
            await asyncio.sleep(interval_s)

    def why_not_ready(self, interval_s: float) -> str | None:
        """A sentence while there is no report, or none of late."""
        if self.last is None:
            return f"there is no report: {self.problem}" if self.problem else "the first report is being made"
        age_s = (self._now_ms() - self._time.ahead_ms - self.last.time_ms) / 1000
        if age_s <= REPORTS_MISSED_MAX * interval_s + REPORT_S_MAX:
            return None
        return f"the last report is {age_s:.0f} s old: {self.problem or 'the next one does not end'}"

    def _note_alarms(self, report: Report) -> None:
        now: dict[AlarmKey, Row] = {(row.topic, row.bucket_ms, row.tier): row for row in report.alarms}
        rows = {(row.topic, row.bucket_ms, row.tier): row for row in report.rows}
        for key, row in now.items():
            before = self._alarms.get(key)
            if before is None or before.row.verdict != row.verdict:
                self._tell(key, AlarmChange(row, False, before.revision + 1 if before else 1))
        for key in self._alarms.keys() - now.keys():
            before = self._alarms[key]
            self._tell(key, AlarmChange(rows.get(key, before.row), True, before.revision + 1))
            del self._alarms[key]

    def _tell(self, key: AlarmKey, change: AlarmChange) -> None:
        self._alarms[key] = change
        for queue in self._followers:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(change)

    async def alarms(self) -> AsyncIterator[AlarmChange]:
        """Alarms that hold now, then every change, for a service that sends them on."""
        queue: asyncio.Queue[AlarmChange] = asyncio.Queue(ALARMS_WAITING_MAX)
        for change in self._alarms.values():
            queue.put_nowait(change)
        self._followers.add(queue)
        try:
            while True:
                yield await queue.get()
        finally:
            self._followers.discard(queue)

    async def close(self) -> None:
        await self._reader.close()
