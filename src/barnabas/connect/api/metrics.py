"""Metrics of a worker under Kafka's names, for Prometheus: `kafka.connect:type=T` attribute `a` is
`kafka_connect_T_a`.

In: a herder, its runner. Out: families, read when somebody asks. Texts (states, classes) are labels of a
sample that is 1. Progress of snapshots is `barnabas_connect_snapshot_*`. Does not know: HTTP.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from barnabas import __version__
from barnabas.connect.api.task_metrics import ERRORS, SINK, SOURCE, TASK, Attributes, percentage
from barnabas.connect.herder.distributed.herder import DistributedHerder
from barnabas.connect.herder.herder import Herder
from barnabas.connect.tasks.runner import RunningTask, TaskRunner
from barnabas.services.metrics import ServiceMetrics
from barnabas.services.routes import Need, ServiceRoute

WORKER, REBALANCE = "connect-worker-metrics", "connect-worker-rebalance-metrics"
CLASSES = {
    "connector-class": "connector.class",
    "task-class": "task.class",
    "key-converter-class": "key.converter",
    "value-converter-class": "value.converter",
    "header-converter-class": "header.converter",
}
STATES = ("running", "paused", "failed", "unassigned", "destroyed", "restarting")
Value = tuple[Mapping[str, str], float]


def family(type: str, attribute: str, values: Iterable[Value]) -> GaugeMetricFamily:
    name = f"kafka_connect_{type}_{attribute}".replace("-", "_")
    found = GaugeMetricFamily(name, f"kafka.connect:type={type}, attribute {attribute}.")
    for labels, value in values:
        found.add_metric((), value)
        sample = found.samples.pop()
        found.samples.append(sample._replace(labels=dict(labels)))
    return found


class WorkerCollector:
    def __init__(self, herder: Herder, runner: TaskRunner) -> None:
        self._herder = herder
        self._runner = runner

    def collect(self) -> Iterator[GaugeMetricFamily]:
        tasks = self._runner.tasks()
        yield from self._worker(tasks)
        if isinstance(self._herder, DistributedHerder):
            yield from self._rebalances(self._herder)
        yield from self._connectors()
        yield from self._task_texts(tasks)
        for type, attributes, chosen in (
            ("connector-task-metrics", TASK, tasks),
            ("source-task-metrics", SOURCE, [each for each in tasks if each.progress.kind == "source"]),
            ("sink-task-metrics", SINK, [each for each in tasks if each.progress.kind == "sink"]),
            ("task-error-metrics", ERRORS, tasks),
        ):
            yield from measured(type, attributes, chosen)
        yield from snapshots(tasks)

    def _worker(self, tasks: list[RunningTask]) -> Iterator[GaugeMetricFamily]:
        herder, runner = self._herder, self._runner
        yield family(WORKER, "connector-count", [({}, len(herder.running))])
        yield family(WORKER, "task-count", [({}, len(tasks))])
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
                yield family(WORKER, f"{kind}-startup-{attribute}", [({}, value)])
        states: dict[str, list[str]] = {}
        for task in tasks:
            states.setdefault(task.connector, []).append(task.progress.state.lower())
        for state in ("total", *STATES):
            counts: list[Value] = [
                ({"connector": name}, len(found) if state == "total" else found.count(state))
                for name, found in states.items()
            ]
            yield family(WORKER, f"connector-{state}-task-count", counts)

    @staticmethod
    def _rebalances(herder: DistributedHerder) -> Iterator[GaugeMetricFamily]:
        seen = herder.rebalances
        for attribute, value in {
            "completed-rebalances-total": float(seen.completed),
            "epoch": float(herder.generation),
            "rebalancing": float(seen.is_running),
            "rebalance-max-time-ms": seen.highest_ms,
            "rebalance-avg-time-ms": seen.mean_ms,
            "time-since-last-rebalance-ms": seen.since_last_ms,
        }.items():
            yield family(REBALANCE, attribute, [({}, value)])
        protocol = herder.worker.get("connect.protocol", "sessioned")
        yield family(REBALANCE, "connect-protocol", [({"connect_protocol": protocol}, 1.0)])
        yield family(REBALANCE, "leader-name", [({"leader_name": herder.leader_url}, 1.0)])

    def _connectors(self) -> Iterator[GaugeMetricFamily]:
        herder = self._herder
        names = {name: each.version for name, each in list(herder.running.items())}
        texts: dict[str, Callable[[str], str]] = {
            "status": lambda name: str(
                found.state if (found := herder.statuses.get((name, None))) else "UNASSIGNED"
            ).lower(),
            "connector-type": herder.kind,
            "connector-class": lambda name: herder.state.connectors.get(name, {}).get("connector.class", ""),
            "connector-version": names.__getitem__,
        }
        for attribute, text in texts.items():
            label = attribute.replace("-", "_")
            yield family(
                "connector-metrics",
                attribute,
                [({"connector": name, label: text(name)}, 1.0) for name in names],
            )

    @staticmethod
    def _task_texts(tasks: list[RunningTask]) -> Iterator[GaugeMetricFamily]:
        type = "connector-task-metrics"
        status = [({**labels(task), "status": task.progress.state.lower()}, 1.0) for task in tasks]
        yield family(type, "status", status)
        for attribute, setting in CLASSES.items():
            label = attribute.replace("-", "_")
            named = [({**labels(task), label: task.class_of(setting)}, 1.0) for task in tasks]
            yield family(type, attribute, named)
        for kind in ("transform", "predicate"):
            found: list[Value] = []
            for task in tasks:
                aliases = [each.strip() for each in task.config.get(f"{kind}s", "").split(",")]
                for alias in filter(None, aliases):
                    name = task.config.get(f"{kind}s.{alias}.type", "")
                    found.append(({**labels(task), kind: alias, f"{kind}_class": name}, 1.0))
            yield family(type, f"{kind}-class", found)
            versions: list[Value] = [({**each, f"{kind}_version": __version__}, 1.0) for each, _ in found]
            yield family(type, f"{kind}-version", versions)


def labels(task: RunningTask) -> dict[str, str]:
    return {"connector": task.connector, "task": str(task.task)}


def measured(type: str, attributes: Attributes, tasks: Iterable[RunningTask]) -> Iterator[GaugeMetricFamily]:
    chosen = list(tasks)
    for attribute, value in attributes.items():
        yield family(type, attribute, [(labels(task), float(value(task.progress))) for task in chosen])


def snapshots(tasks: Iterable[RunningTask]) -> Iterator[GaugeMetricFamily]:
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


LABELS = ("connector", "task")


def progress_route(runner: TaskRunner) -> ServiceRoute:
    """`GET /barnabas/tasks`: what the tasks of this worker tell, for the command line."""

    async def respond(request: Request) -> Response:
        return JSONResponse([each.as_dict() for each in runner.progress()])

    return ServiceRoute("/barnabas/tasks", respond, needs=Need.READ)


def worker_metrics(service: str, herder: Herder, runner: TaskRunner) -> ServiceMetrics:
    found = ServiceMetrics(service)
    found.registry.register(WorkerCollector(herder, runner))
    return found
