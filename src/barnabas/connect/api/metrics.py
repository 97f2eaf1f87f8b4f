"""Metrics of a worker under Kafka's names, for Prometheus.

In: a herder, its runner, its client. Out: families in one of the dialects of `metric_names`, read when
somebody asks. Progress of snapshots is `barnabas_connect_snapshot_*`. Does not know: HTTP.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from barnabas import __version__
from barnabas.client.core.cluster import ClusterCore
from barnabas.connect.api.client_metrics import Client, ClientMetrics
from barnabas.connect.api.metric_names import (
    APP,
    CONNECTOR,
    DEFAULT,
    DIALECTS,
    REBALANCE,
    TASK,
    WORKER,
    Bean,
    Value,
)
from barnabas.connect.api.task_metrics import ERRORS, SINK, SOURCE, Attributes, percentage
from barnabas.connect.api.task_metrics import TASK as OF_TASK
from barnabas.connect.herder.distributed.herder import DistributedHerder
from barnabas.connect.herder.herder import Herder
from barnabas.connect.herder.states import TaskId
from barnabas.connect.tasks.runner import RunningTask, TaskRunner
from barnabas.services.errors import ApiError
from barnabas.services.metrics import NO_QUERY, ServiceMetrics
from barnabas.services.routes import Need, ServiceRoute

CLASSES = {
    "connector-class": "connector.class",
    "task-class": "task.class",
    "key-converter-class": "key.converter",
    "value-converter-class": "value.converter",
    "header-converter-class": "header.converter",
}
STATES = ("running", "paused", "failed", "unassigned", "destroyed", "restarting")
LABELS = ("connector", "task")
SETTING = "barnabas.metrics.dialect"
STARTED_MS = int(time.time() * 1000)


class WorkerBeans:
    def __init__(self, herder: Herder, runner: TaskRunner, cluster: ClusterCore | None = None) -> None:
        self._herder = herder
        self._runner = runner
        self._cluster = cluster
        self._clients = ClientMetrics(self._all_clients)

    def beans(self) -> Iterator[Bean]:
        tasks = self._runner.tasks()
        yield from self._worker(tasks)
        if isinstance(self._herder, DistributedHerder):
            yield from self._rebalances(self._herder)
            yield from self._coordinator(self._herder)
        yield from self._connectors()
        yield from self._task_texts(tasks)
        for type, attributes, chosen in (
            (TASK, OF_TASK, tasks),
            ("source-task-metrics", SOURCE, [each for each in tasks if each.progress.kind == "source"]),
            ("sink-task-metrics", SINK, [each for each in tasks if each.progress.kind == "sink"]),
            ("task-error-metrics", ERRORS, tasks),
        ):
            yield from measured(type, attributes, chosen)
        yield from self._app()
        yield from self._clients.beans()

    @property
    def _client_id(self) -> str:
        return "connect" if self._cluster is None else self._cluster.settings.client_id

    def _all_clients(self) -> list[Client]:
        found = [
            Client(each.kind, each.client_id, each.client.traffic)
            for task in self._runner.tasks()
            for each in list(task.clients)
        ]
        if self._cluster is not None:
            logs_in = self._cluster.settings.security.new_exchange is not None
            own = Client("worker", self._client_id, self._cluster.traffic, logs_in)
            found += [own, replace(own, kind="admin")]  # the worker administers by the same connections
        return found

    def _app(self) -> Iterator[Bean]:
        texts = {"version": __version__, "start-time-ms": str(STARTED_MS)}
        for attribute, text in texts.items():
            value = float(text) if attribute == "start-time-ms" else 1.0
            labels = {"client-id": self._client_id, attribute: text}
            yield Bean(APP, attribute, [(labels, value)], is_text=True)

    def _worker(self, tasks: list[RunningTask]) -> Iterator[Bean]:
        herder, runner = self._herder, self._runner
        yield Bean(WORKER, "connector-count", [({}, len(herder.running))])
        yield Bean(WORKER, "task-count", [({}, len(tasks))])
        for kind, attempts, failures in (
            ("connector", herder.startups.attempts, herder.startups.failures),
            ("task", runner.attempts, runner.starts_failed),
        ):
            successes = attempts - failures
            for attribute, value in {
                "attempts-total": float(attempts),
                "success-total": float(successes),
                "failure-total": float(failures),
                "success-percentage": percentage(successes, failures),
                "failure-percentage": percentage(failures, successes),
            }.items():
                yield Bean(WORKER, f"{kind}-startup-{attribute}", [({}, value)])
        states: dict[str, list[str]] = {}
        for task in tasks:
            states.setdefault(task.connector, []).append(task.progress.state.lower())
        for state in ("total", *STATES):
            counts: list[Value] = [
                ({"connector": name}, len(found) if state == "total" else found.count(state))
                for name, found in states.items()
            ]
            yield Bean(WORKER, f"connector-{state}-task-count", counts)

    @staticmethod
    def _rebalances(herder: DistributedHerder) -> Iterator[Bean]:
        seen = herder.rebalances
        for attribute, value in {
            "completed-rebalances-total": float(seen.completed),
            "epoch": float(herder.generation),
            "rebalancing": float(seen.is_running),
            "rebalance-max-time-ms": seen.highest_ms,
            "rebalance-avg-time-ms": seen.mean_ms,
            "time-since-last-rebalance-ms": seen.since_last_ms,
        }.items():
            yield Bean(REBALANCE, attribute, [({}, value)])
        protocol = herder.worker.get("connect.protocol", "sessioned")
        for attribute, text in {"connect-protocol": protocol, "leader-name": herder.leader_url}.items():
            yield Bean(REBALANCE, attribute, [({attribute: text}, 1.0)], is_text=True)

    def _coordinator(self, herder: DistributedHerder) -> Iterator[Bean]:
        labels = {"client-id": self._client_id}
        connectors, tasks = assigned(herder)
        yield Bean("connect-coordinator-metrics", "assigned-connectors", [(labels, connectors)])
        yield Bean("connect-coordinator-metrics", "assigned-tasks", [(labels, tasks)])

    def _connectors(self) -> Iterator[Bean]:
        herder = self._herder
        names = {name: herder.version(name) or "" for name in list(herder.running)}
        texts: dict[str, Callable[[str], str]] = {
            "status": lambda name: str(
                found.state if (found := herder.statuses.get((name, None))) else "UNASSIGNED"
            ).lower(),
            "connector-type": herder.kind,
            "connector-class": lambda name: herder.state.connectors.get(name, {}).get("connector.class", ""),
            "connector-version": names.__getitem__,
        }
        for attribute, text in texts.items():
            values = [({"connector": name, attribute: text(name)}, 1.0) for name in names]
            yield Bean(CONNECTOR, attribute, values, is_text=True)

    @staticmethod
    def _task_texts(tasks: list[RunningTask]) -> Iterator[Bean]:
        status = [({**labels(task), "status": task.progress.state.lower()}, 1.0) for task in tasks]
        yield Bean(TASK, "status", status, is_text=True)
        for attribute, setting in CLASSES.items():
            named = [({**labels(task), attribute: task.class_of(setting)}, 1.0) for task in tasks]
            yield Bean(TASK, attribute, named, is_text=True)
        for kind in ("transform", "predicate"):
            found: list[Value] = []
            for task in tasks:
                aliases = [each.strip() for each in task.config.get(f"{kind}s", "").split(",")]
                for alias in filter(None, aliases):
                    name = task.config.get(f"{kind}s.{alias}.type", "")
                    found.append(({**labels(task), kind: alias, f"{kind}-class": name}, 1.0))
            yield Bean(TASK, f"{kind}-class", found, is_text=True)
            versions: list[Value] = [({**each, f"{kind}-version": __version__}, 1.0) for each, _ in found]
            yield Bean(TASK, f"{kind}-version", versions, is_text=True)


def assigned(herder: DistributedHerder) -> tuple[int, int]:
    """How many connectors and tasks the group's leader gave to this worker."""
    tasks = (
        TaskId(name, number) for name, configs in herder.state.tasks.items() for number in range(len(configs))
    )
    return sum(map(herder.owns_connector, herder.state.connectors)), sum(map(herder.owns_task, tasks))


def labels(task: RunningTask) -> dict[str, str]:
    return {"connector": task.connector, "task": str(task.task)}


def measured(type: str, attributes: Attributes, tasks: Iterable[RunningTask]) -> Iterator[Bean]:
    chosen = list(tasks)
    for attribute, value in attributes.items():
        yield Bean(type, attribute, [(labels(task), float(value(task.progress))) for task in chosen])


def snapshots(tasks: Iterable[RunningTask]) -> Iterator[Metric]:
    """Rows or bytes of snapshots that tasks report."""
    done = GaugeMetricFamily("barnabas_connect_snapshot_done", "What a snapshot has read.", labels=LABELS)
    total = GaugeMetricFamily("barnabas_connect_snapshot_total", "What it will read.", labels=LABELS)
    for task in tasks:
        place = (task.connector, str(task.task))
        if task.progress.done is not None:
            done.add_metric(place, task.progress.done)
        if task.progress.total is not None:
            total.add_metric(place, task.progress.total)
    yield done
    yield total


def progress_route(runner: TaskRunner) -> ServiceRoute:
    """`GET /barnabas/tasks`: what the tasks of this worker tell, for the command line."""

    async def respond(request: Request) -> Response:
        return JSONResponse([each.as_dict() for each in runner.progress()])

    return ServiceRoute("/barnabas/tasks", respond, needs=Need.READ)


class WorkerCollector(Collector):
    """A worker's families in one dialect."""

    def __init__(self, beans: WorkerBeans, runner: TaskRunner, dialect: str) -> None:
        self._beans = beans
        self._runner = runner
        self._dialect = DIALECTS[dialect]

    def collect(self) -> Iterator[Metric]:
        yield from self._dialect.families(self._beans.beans())
        yield from snapshots(self._runner.tasks())

    def describe(self) -> Iterable[Metric]:
        return ()


class WorkerMetrics(ServiceMetrics):
    """The page of a worker: the query `dialect` asks for another one than the worker's setting says."""

    def __init__(
        self, service: str, herder: Herder, runner: TaskRunner, cluster: ClusterCore | None = None
    ) -> None:
        super().__init__(service)
        beans = WorkerBeans(herder, runner, cluster)
        self._dialect = herder.worker.get(SETTING) or DEFAULT
        self._pages = {name: CollectorRegistry() for name in DIALECTS}
        for name, registry in self._pages.items():
            registry.register(WorkerCollector(beans, runner, name))

    def text(self, query: Mapping[str, str] = NO_QUERY) -> bytes:
        dialect = query.get("dialect", self._dialect)
        if dialect not in self._pages:
            raise ApiError(400, 400, f"no dialect {dialect!r}; known: {', '.join(self._pages)}")
        return super().text(query) + generate_latest(self._pages[dialect])


def worker_metrics(
    service: str, herder: Herder, runner: TaskRunner, cluster: ClusterCore | None = None
) -> ServiceMetrics:
    return WorkerMetrics(service, herder, runner, cluster)
