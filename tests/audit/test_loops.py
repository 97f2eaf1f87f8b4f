"""The loops of the audit outlive every error, and a service without late reports is not ready."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from audit.counted import T0, WIDTH, counts
from audit.test_service import count, produce
from barnabas.audit.cluster import remote_counter
from barnabas.audit.cluster.remote_counter import RemoteCounter
from barnabas.audit.core.ledger import Ledger
from barnabas.audit.core.messages import CountMessage
from barnabas.audit.core.report import Report
from barnabas.audit.core.tiers import PRODUCER
from barnabas.audit.counters.audit_topic_reader import AuditTopicReader
from barnabas.audit.report.auditor import REPORT_S_MAX, REPORTS_MISSED_MAX, Auditor
from barnabas.client.cluster import Cluster
from barnabas.client.core.address import parse_bootstrap

INTERVAL_S = 30.0


class Nobody:
    """A cluster that is never asked."""


async def runs_until(loop: Callable[[float], Awaitable[None]], is_done: asyncio.Event) -> None:
    task = asyncio.ensure_future(loop(0.0))
    waiting = asyncio.ensure_future(is_done.wait())
    done, _ = await asyncio.wait((task, waiting), timeout=30, return_when=asyncio.FIRST_COMPLETED)
    assert waiting in done, task
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


def test_a_bug_in_one_report_does_not_end_the_auditor() -> None:
    now_ms = [1_000_000]
    auditor = Auditor(Nobody(), now_ms=lambda: now_ms[0])  # type: ignore[arg-type]
    attempts: list[object] = []

    async def work() -> None:
        is_made = asyncio.Event()

        async def refresh() -> Report:
            attempts.append(auditor.why_not_ready(INTERVAL_S))
            if len(attempts) < 3:
                raise RuntimeError("a bug") if len(attempts) == 1 else TimeoutError("no answer")
            auditor.last = Report(now_ms[0], (), ())
            is_made.set()
            return auditor.last

        auditor.refresh = refresh  # type: ignore[method-assign]
        await runs_until(auditor.run, is_made)

    asyncio.run(work())
    assert attempts[:3] == [
        "the first report is being made",
        "there is no report: unexpected: a bug",
        "there is no report: no answer",
    ]
    assert auditor.why_not_ready(INTERVAL_S) is None
    now_ms[0] += int((REPORTS_MISSED_MAX * INTERVAL_S + REPORT_S_MAX) * 1000)
    assert auditor.why_not_ready(INTERVAL_S) is None
    now_ms[0] += 1_000
    assert "the last report is 151 s old" in str(auditor.why_not_ready(INTERVAL_S))


def test_a_bug_in_one_round_does_not_end_the_counter_of_a_cluster() -> None:
    nobody: Any = Nobody()

    async def work() -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(remote_counter, "AuditTopicReader", lambda *given: None)
            patch.setattr(remote_counter, "Publisher", lambda *given: None)
            counter = RemoteCounter(nobody, nobody, tier="mirror/x")
        rounds: list[int] = []
        is_counted = asyncio.Event()

        async def count_all() -> int:
            rounds.append(1)
            if len(rounds) < 3:
                raise ValueError("a bug")
            is_counted.set()
            return 0

        counter.count_all = count_all  # type: ignore[method-assign]
        await runs_until(counter.run, is_counted)

    asyncio.run(work())


def test_a_message_that_cannot_be_applied_hides_no_other(broker: str, topic: str) -> None:
    count(broker, PRODUCER, topic, 3)
    count(broker, PRODUCER, topic, 4, bucket=T0 + WIDTH)
    ledger, failed = Ledger(keep_ms=2**60), []

    def apply(message: CountMessage, arrived_ms: int) -> None:
        if not failed and message.topic == topic:
            failed.append(message)
            raise RuntimeError("a bug")
        ledger.apply(message, arrived_ms)

    async def read() -> int:
        async with Cluster(parse_bootstrap(broker)) as cluster:
            reader = AuditTopicReader(cluster)
            await reader.catch_up(apply)
            await reader.close()
            return reader.unreadable

    assert asyncio.run(read()) >= 1
    lost = {entry.bucket_ms for message in failed for entry in message.entries}
    assert {bucket for name, bucket in ledger.columns if name == topic} == {T0, T0 + WIDTH} - lost
    assert len(lost) == 1


def test_a_partition_that_cannot_be_counted_stops_no_other(
    broker: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    produce(broker, f"{topic}-a", [T0] * 3)
    produce(broker, f"{topic}-b", [T0] * 5)
    original, broken = remote_counter.count_fetched, [True]

    def count_fetched(data: Any, counted: Any) -> None:
        if broken:
            broken.clear()
            raise ValueError("a damaged batch")
        original(data, counted)

    monkeypatch.setattr(remote_counter, "count_fetched", count_fetched)
    names = (f"{topic}-a", f"{topic}-b")

    async def work() -> tuple[int, int]:
        async with Cluster(parse_bootstrap(broker)) as cluster:
            counter = RemoteCounter(cluster, cluster, tier="mirror/x", topics=names)
            first = await counter.count_all()
            second = await counter.count_all()
            await counter.close()
            return first, second

    first, second = asyncio.run(work())
    assert {first, second} == {3, 5}
    assert [counts(broker, name, "mirror/x") for name in names] == [{T0: 3}, {T0: 5}]
