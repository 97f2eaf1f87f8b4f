"""The evaluator: measures from time to time, moves alerts through their states, tells targets, keeps the
history.

In: the file of alerts, topics. Out: alerts. One of several evaluators leads; the others measure too, so that
they can take over at once, and tell nobody. The leader stores a change before it tells anybody of it. A
change that cannot be stored (the cluster is the one that fails) is told all the same, and stored later.
Does not know: HTTP, how targets are reached.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import time
import uuid
from collections import deque
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Protocol

from barnabas.client.core.errors import ClientError
from barnabas.monitor.alert_service.alert_topics import KeptState
from barnabas.monitor.alert_service.file import AlertsFile
from barnabas.monitor.alert_service.measuring import Measurements, Place, findings_for, place_text
from barnabas.monitor.alerts.notices import Notice, Notices
from barnabas.monitor.alerts.silences import Silence, covered_by
from barnabas.monitor.alerts.states import Alert, AlertBook, State
from barnabas.monitor.targets.alertmanager import REFRESH_S, Alertmanager
from barnabas.monitor.targets.target import DeliveryFailed
from barnabas.protocol import KafkaError

log = logging.getLogger("barnabas.alerts")

NOTICES_EVERY_S = 1.0
DELIVERY_THREADS = 2  # of one target, so that one that hangs holds up no other
DELIVERY_S_MAX = 300.0
UNSTORED_MAX = 10_000
STORE_S_MAX = 10.0
SILENCES_MAX = 1_000
FOLLOWS_MS_MIN = 60_000
UNSTORABLE = (KafkaError, ClientError, OSError, TimeoutError)
HOST = socket.gethostname()


class MeasurementSource(Protocol):
    async def measure(self, now_ms: int) -> Measurements: ...


class Memory(Protocol):
    async def record_changes(
        self, changes: list[Alert], now_ms: int, host: str, known: Collection[str]
    ) -> None: ...
    async def record_told(
        self, target: str, fingerprints: Collection[str], underway: Collection[str], now_ms: int
    ) -> None: ...
    async def forget_alerts(self, fingerprints: list[str]) -> None: ...
    async def record_silence(self, silence: Silence) -> None: ...
    async def forget_silences(self, ids: list[str]) -> None: ...


class TooManySilences(Exception):
    """The bound on silences is reached."""


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class Evaluator:
    def __init__(
        self,
        file: AlertsFile,
        source: MeasurementSource,
        is_leader: Callable[[], bool] = lambda: True,
        clock: Callable[[], int] = now_ms,
    ) -> None:
        self.file = file
        self.book = AlertBook()
        self.silences: dict[str, Silence] = {}
        self.unknown: dict[Place, str] = {}  # what checks could not measure the last time, and why
        self.looks = self.deliveries = self.failures = 0
        self.looked_ms = 0
        self._source = source
        self._memory: Memory | None = None
        self._is_leader = is_leader
        self._clock = clock
        refreshed_s = {
            name: REFRESH_S for name, target in file.targets.items() if isinstance(target, Alertmanager)
        }
        self._notices = Notices(file.grouping, file.routes, {**refreshed_s, **file.refreshed_s})
        self._unstored: deque[tuple[Alert, int]] = deque(maxlen=UNSTORED_MAX)
        self._told: dict[str, set[str]] = {}  # by target: what it takes for firing
        self._underway: dict[str, set[str]] = {}  # by target: what it may have heard of, too
        self._told_ms = 0  # the last message to any target
        self._follows_since_ms: int | None = None
        self._not_stored_told: set[str] = set()  # targets of which `_told` is not stored
        self._over: set[str] = set()  # alerts whose end every target has heard of, and that are still stored
        self._threads = {
            name: ThreadPoolExecutor(DELIVERY_THREADS, f"alert delivery {name}") for name in file.targets
        }
        self._tasks: set[asyncio.Task[None]] = set()
        self._loops: list[asyncio.Task[None]] = []

    # -- life ----------------------------------------------------------------------------------------

    def remember(self, memory: Memory, kept: KeptState) -> None:
        """Store changes from now on, and continue where another evaluator ended. Alerts that fire already
        stay as they are."""
        self._memory = memory
        rules = {rule.name: rule for rule in self.file.rules}
        self.silences = kept.silences
        present = {alert.fingerprint for alert in self.book.alerts() if alert.state is State.FIRING}
        now = self._clock()
        found = []
        for mark, alert in kept.alerts.items():
            if alert.rule not in rules and alert.state is State.FIRING:
                alert = ended(alert, now)
                self._unstored.append((alert, now))
            if mark not in present:
                found.append(alert)
        self.book.restore(rules, found)
        # Count also what this process told while it could not store it.
        own = {target: self._told.get(target, set()) for target in self._not_stored_told}
        self._told = {
            target: kept.told.get(target, set()) | own.get(target, set()) for target in self.file.targets
        }
        self._told_ms = kept.told_ms
        self._underway = {target: set(kept.underway.get(target, ())) for target in self.file.targets}
        self._notices.restore(found, self._told, self._underway, kept.told_ms)
        known = self._known
        self._over |= {
            mark for mark, each in kept.alerts.items() if each.state is not State.FIRING and mark not in known
        }

    def start(self) -> None:
        self._loops = [
            asyncio.create_task(self._repeat(self.evaluate, self.file.interval_s)),
            asyncio.create_task(self._repeat(self.tell, NOTICES_EVERY_S)),
        ]

    async def stop(self) -> None:
        for task in self._loops:
            task.cancel()
        await asyncio.gather(*self._loops, return_exceptions=True)
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for threads in self._threads.values():
            threads.shutdown(wait=False, cancel_futures=True)

    async def _repeat(self, work: Callable[[], object], pause_s: float) -> None:
        while True:
            try:
                result = work()
                if asyncio.iscoroutine(result):
                    await result
            except Exception:
                log.exception("the evaluation of alerts failed; the next one is in %g s", pause_s)
            await asyncio.sleep(pause_s)

    # -- measuring -----------------------------------------------------------------------------------

    async def evaluate(self) -> None:
        """One round: states change, changes are stored and become messages."""
        now = self._clock()
        measured = await self._source.measure(now)
        changes = self.book.drop_other_rules(self.file.rules, now)
        for rule in self.file.rules:
            try:
                changes += self.book.observe(
                    rule, findings_for(measured, rule), now, measured.blind_places(rule.check)
                )
            except Exception:  # the alerts of other rules must not be lost
                log.exception("the rule %s could not be evaluated", rule.name)
        for place, reason in measured.unknown.items():
            if place not in self.unknown:
                log.warning("the check %s cannot measure: %s", place_text(place), reason)
        self.unknown = measured.unknown
        self.looks += 1
        self.looked_ms = now
        for alert in changes:
            log.warning("alert %s: %s (%s)", alert.state, alert.summary, alert.rule)
        if self._is_leader():
            self._unstored.extend((alert, now) for alert in changes)
            await self._store()
            self._follows_since_ms = None
        else:
            self._follow(now)
        self._notices.add(changes, now)
        await self._drop_old_silences(now)

    def _follow(self, now: int) -> None:
        """Drop what is not stored once another process leads: it stores what it sees, and ours would come out
        of order later. For a while nobody may lead."""
        if self._follows_since_ms is None:
            self._follows_since_ms = now
        if now - self._follows_since_ms > FOLLOWS_MS_MIN:
            self._unstored.clear()
            self._not_stored_told.clear()
            self._over.clear()

    async def _store(self) -> None:
        memory = self._memory
        if memory is None:
            self._unstored.clear()
            return
        try:
            while self._unstored:
                alert, at_ms = self._unstored[0]
                async with asyncio.timeout(STORE_S_MAX):
                    await memory.record_changes([alert], at_ms, HOST, self._known)
                self._unstored.popleft()
            async with asyncio.timeout(STORE_S_MAX):
                for target in sorted(self._not_stored_told):
                    await self._record_told(memory, target, self._clock())
                    self._not_stored_told.discard(target)
                self._over -= self._known | {alert.fingerprint for alert in self.book.alerts()}
                if self._over:
                    await memory.forget_alerts(sorted(self._over))
                    self._over.clear()
        except UNSTORABLE as error:
            count = len(self._unstored) + len(self._not_stored_told)
            log.warning("%d changes of alerts are not stored yet: %s", count, error or "no answer")

    # -- telling -------------------------------------------------------------------------------------

    def is_silent(self, alert: Alert) -> bool:
        return bool(self.silenced_by(alert))

    def silenced_by(self, alert: Alert) -> list[str]:
        now = self._clock()
        return covered_by(alert.all_labels, now, self.silences.values(), self.file.windows)

    def tell(self) -> None:
        """Begin the deliveries that are due. Only the leader tells; the others keep what is due."""
        if not self._is_leader():
            return
        due = self._notices.due(self._clock(), self.is_silent)
        if not due:
            return
        present = {each.fingerprint: each for each in self.book.alerts() if each.state is State.FIRING}
        for notice in due:  # with the present values: the alerts may have begun long ago
            firing = tuple(present.get(each.fingerprint, each) for each in notice.firing)
            task = asyncio.create_task(self._deliver(replace(notice, firing=firing)))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _deliver(self, notice: Notice) -> None:
        target = self.file.targets[notice.target]
        news = {alert.fingerprint for alert in notice.firing} - self._told.get(notice.target, set())
        try:
            if news:
                await self._note_underway(notice.target, news)
            async with asyncio.timeout(DELIVERY_S_MAX):
                threads = self._threads[notice.target]
                await asyncio.get_running_loop().run_in_executor(threads, target.deliver, notice)
        except (DeliveryFailed, TimeoutError) as error:
            self.failures += 1
            self._notices.failed(notice, self._clock())
            reason = str(error) or f"no end within {DELIVERY_S_MAX:g} s"
            log.error("target %s did not accept %d alerts: %s", notice.target, len(notice.alerts), reason)
            await self._note_underway(notice.target, set(), over=news)
            return
        except Exception:
            self.failures += 1
            self._notices.failed(notice, self._clock())
            log.exception("target %s failed", notice.target)
            await self._note_underway(notice.target, set(), over=news)
            return
        self.deliveries += 1
        now = self._clock()
        self._notices.sent(notice, now)
        before = self._told.get(notice.target, set())
        told = before | {alert.fingerprint for alert in notice.firing}
        told -= {alert.fingerprint for alert in notice.resolved}
        # A mere refresh is not stored: the heir's messages to other targets follow the time that is.
        is_refresh = told == before and notice.target in self._notices.refreshed_s
        self._told[notice.target], self._told_ms = told, now
        self._underway.get(notice.target, set()).difference_update(each.fingerprint for each in notice.alerts)
        self._over |= {alert.fingerprint for alert in notice.resolved}
        if self._memory is None or not is_refresh:
            self._not_stored_told.add(notice.target)
        if self._memory is not None and not is_refresh:
            with contextlib.suppress(*UNSTORABLE):
                async with asyncio.timeout(STORE_S_MAX):
                    await self._record_told(self._memory, notice.target, now)
                self._not_stored_told.discard(notice.target)

    async def _note_underway(self, target: str, news: set[str], over: Collection[str] = ()) -> None:
        """Store that a target is about to hear of alerts: if this process dies meanwhile, the next leader
        tells of their end. `over`: it did not hear of these."""
        known = self._underway.setdefault(target, set())
        known |= news
        known.difference_update(over)
        # While the cluster is away, alerts do not wait for it.
        if self._memory is not None and (news or over) and not self._unstored:
            with contextlib.suppress(*UNSTORABLE):
                async with asyncio.timeout(STORE_S_MAX):
                    await self._record_told(self._memory, target, self._told_ms)

    async def _record_told(self, memory: Memory, target: str, at_ms: int) -> None:
        told, underway = self._told.get(target, set()), self._underway.get(target, set())
        await memory.record_told(target, sorted(told), sorted(underway), at_ms)

    @property
    def _known(self) -> set[str]:
        """The fingerprints that some target takes for firing, or may take for it."""
        return set().union(*self._told.values(), *self._underway.values())

    # -- silences ------------------------------------------------------------------------------------

    async def add_silence(self, silence: Silence) -> Silence:
        """Begin or change a silence. It counts when it is stored."""
        if silence.id not in self.silences and len(self.silences) >= SILENCES_MAX:
            raise TooManySilences(f"there are {SILENCES_MAX} silences: end some of them first")
        if not silence.id:
            silence = Silence(
                str(uuid.uuid4()),
                silence.matchers,
                silence.starts_ms,
                silence.ends_ms,
                silence.created_by,
                silence.comment,
            )
        if self._memory is not None:
            await self._memory.record_silence(silence)
        self.silences[silence.id] = silence
        return silence

    async def end_silence(self, silence_id: str) -> bool:
        if silence_id not in self.silences:
            return False
        if self._memory is not None:
            await self._memory.forget_silences([silence_id])
        self.silences.pop(silence_id, None)
        return True

    async def _drop_old_silences(self, now: int) -> None:
        over = [each.id for each in self.silences.values() if each.ends_ms <= now]
        for each in over:
            del self.silences[each]
        if over and self._memory is not None and self._is_leader():
            with contextlib.suppress(*UNSTORABLE):
                await self._memory.forget_silences(over)


def ended(alert: Alert, at_ms: int) -> Alert:
    return Alert.from_json({**alert.to_json(), "state": "resolved", "ended_ms": at_ms})
