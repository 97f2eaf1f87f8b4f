"""The reporters of a node: loaded from `metric.reporters`, fed every `barnabas.outlets.interval.ms`.

In: the settings and their changes, the registry, spans. Out: calls of reporters, each in its courier's
thread. The loop only walks the samples, in pieces; where no reporter is named, it does nothing at all.
Does not know: formats, requests.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from barnabas.broker.reporters.client_series import ClientSeries
from barnabas.broker.reporters.collecting import Selection, collect
from barnabas.broker.reporters.courier import Courier
from barnabas.broker.reporters.loading import load_reporters
from barnabas.broker.reporters.reporter import Snapshot

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.tracing.spans import Span
    from barnabas.settings import BrokerSettings

log = logging.getLogger("barnabas.reporters")
REPORTERS = "metric.reporters"
CLOSE_S_MAX = 2.0


@dataclass(slots=True)
class Running:
    name: str
    reporter: Any
    courier: Courier

    def close(self) -> None:
        self.courier.close(getattr(self.reporter, "close", None), CLOSE_S_MAX)


class Reporting:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._running: list[Running] = []
        self._others: list[Any] = []  # objects without `report`: receivers of clients' metrics
        self._clients: ClientSeries | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._collecting: asyncio.Task[None] | None = None
        self._is_started = False
        self._started_s = time.time()
        self.pop_spans: Callable[[], Sequence[Span]] | None = None
        self._load(broker.settings)
        broker.dynamic.on_change((REPORTERS,), self._changed)

    # -- which reporters ---------------------------------------------------------------------------

    @property
    def receivers(self) -> list[Any]:
        """Reporters that get clients' metrics (KIP-714)."""
        every = [*self._others, *(each.reporter for each in self._running)]
        found = [each for each in every if callable(getattr(each, "export_metrics", None))]
        return [*found, self._clients] if self._clients is not None else found

    @property
    def exports_spans(self) -> bool:
        return any(callable(getattr(each.reporter, "export_spans", None)) for each in self._running)

    def _load(self, settings: BrokerSettings) -> None:
        names = settings[REPORTERS]
        given = {**settings.static, **settings.values}
        for name, reporter in load_reporters(names, given):
            if callable(getattr(reporter, "report", None)):
                self._running.append(Running(name, reporter, Courier(name)))
            else:
                self._others.append(reporter)
        if self._running and settings["barnabas.outlets.client.metrics"] and settings.is_broker:
            self._clients = ClientSeries()
        self._selection = selection_of(settings)
        self._interval_s: float = settings["barnabas.outlets.interval.ms"] / 1000
        if self._running and self._is_started:
            self._schedule()

    def _changed(self, before: BrokerSettings, after: BrokerSettings) -> None:
        gone, self._running, self._others = self._running, [], []
        clients, self._clients = self._clients, None
        self._broker.threads.run(close_all, gone, clients)
        self._load(after)

    # -- reports -----------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to report: all metrics are registered."""
        self._is_started = True
        if self._running:
            self._schedule()

    async def stop(self) -> None:
        """Report a last time, and wait a few seconds for receivers."""
        self._is_started = False
        if self._timer is not None:
            self._timer.cancel()
        if self._collecting is not None:
            self._collecting.cancel()
        if not self._running:
            return
        await self._report()
        await self._broker.threads.run(close_all, self._running, self._clients)

    def _schedule(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._broker.loop.call_later(self._interval_s, self._due)

    def _due(self) -> None:
        if self._is_started and self._running:
            self._schedule()
            if self._collecting is None or self._collecting.done():
                self._collecting = self._broker.loop.create_task(self._report_safely())

    async def _report_safely(self) -> None:
        try:
            await self._report()
        except Exception:
            self._broker.unexpected.note("collecting metrics for reporters")

    async def _report(self) -> None:
        broker = self._broker
        found = await broker.pieces.run(collect(broker.metrics.registry, self._selection))
        snapshot = Snapshot(time.time(), self._started_s, found.samples, found.rates, self.labels)
        spans = self.pop_spans() if self.pop_spans is not None else ()
        for each in self._running:
            export = getattr(each.reporter, "export_spans", None)
            if spans and export is not None:
                each.courier.send(exporting(export, spans, self.labels))
            each.courier.send(reporting(each.reporter.report, snapshot, self._clients))

    @property
    def labels(self) -> Mapping[str, str]:
        settings = self._broker.settings
        own = dict(each.partition("=")[::2] for each in settings["barnabas.outlets.labels"])
        return {"cluster": self._broker.cluster_id, "node": str(settings.node_id), **own}


def selection_of(settings: BrokerSettings) -> Selection:
    """A pattern that is wrong is logged, and everything is reported."""
    with_partitions: bool = settings["barnabas.outlets.partitions"]
    try:
        return Selection(
            settings["barnabas.outlets.include"],
            settings["barnabas.outlets.exclude"],
            with_partitions=with_partitions,
        )
    except ValueError as error:
        log.error("barnabas.outlets.include and barnabas.outlets.exclude have no effect: %s", error)
        return Selection("", "", with_partitions=with_partitions)


def reporting(
    report: Callable[[Snapshot], None], snapshot: Snapshot, clients: ClientSeries | None
) -> Callable[[], None]:
    def run() -> None:
        if clients is not None:
            report(replace(snapshot, samples=[*snapshot.samples, *clients.samples()]))
        else:
            report(snapshot)

    return run


def exporting(
    export: Callable[[Sequence[Span], Mapping[str, str]], None],
    spans: Sequence[Span],
    labels: Mapping[str, str],
) -> Callable[[], None]:
    return lambda: export(spans, labels)


def close_all(running: Sequence[Running], clients: ClientSeries | None) -> None:
    for each in running:
        each.close()
    if clients is not None:
        clients.close()
