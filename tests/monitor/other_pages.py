"""The names of metrics on pages other than a broker's: of the lag service, Connect, Streams, the registry."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from barnabas.client.cluster import Cluster
from barnabas.client.core.address import Address
from barnabas.client.core.topology import TopicPartition
from barnabas.client.core.traffic import Traffic
from barnabas.connect.api.client_metrics import Client, ClientMetrics
from barnabas.connect.api.metric_names import DIALECTS
from barnabas.connect.api.metrics import WorkerMetrics
from barnabas.connect.herder.distributed.herder import DistributedHerder
from barnabas.engine.catalogue.catalogue import Catalogue
from barnabas.engine.catalogue.metrics import metrics_text
from barnabas.engine.catalogue.reporter import Reporter
from barnabas.engine.catalogue.statuses import QueryState
from barnabas.engine.places.place import FolderPlace
from barnabas.metadata.steps import at_once
from barnabas.monitor.lag_metrics import burrow, kafka_exporter, lag_exporter, opentelemetry
from barnabas.monitor.lag_metrics.page import Page
from barnabas.registry.service import metrics as registry_metrics
from barnabas.registry.state.state import State
from barnabas.rest.application.service import MEASURED
from barnabas.services.metrics import ServiceMetrics
from barnabas.streams.spark.batch_measures import Accesses, Ages, BatchMeasures, StoreMeasures
from barnabas.streams.spark.task_metrics import TaskMetrics
from barnabas.streams.spark.task_port import TaskId, TaskResult
from connect.fakes import QuietPlugins
from monitor.lag.test_lag_metrics import NOW_MS, cluster


def names_of(page: str) -> set[str]:
    return set(re.findall(r"^# TYPE (\w+) ", page, re.M)) | set(re.findall(r"^([a-z]\w*)[{ ]", page, re.M))


def of_the_lag_service() -> set[str]:
    page = Page()
    for dialect in (burrow, kafka_exporter, opentelemetry):
        at_once(dialect.write(page, [cluster()], NOW_MS))
    at_once(lag_exporter.write(page, [cluster()], {"local": 1.5}, NOW_MS))
    return names_of("".join(page.chunks()))


def of_a_worker_of_connect() -> set[str]:
    """In both dialects."""
    return asyncio.run(names_of_a_worker())


async def names_of_a_worker() -> set[str]:
    worker = {
        "group.id": "workers",
        **{f"{each}.storage.topic": each for each in ("config", "offset", "status")},
    }
    runner: Any = SimpleNamespace(tasks=list, attempts=0, starts_failed=0)
    cluster = Cluster([Address("127.0.0.1", 1)], client_id="connect")
    nobody: Any = None
    herder = DistributedHerder(worker, "http://a", QuietPlugins(), runner, cluster, nobody, nobody)
    metrics = WorkerMetrics("connect", herder, runner, cluster)
    clients = ClientMetrics(lambda: [Client(kind, "task", Traffic()) for kind in ("producer", "consumer")])
    found = names_of(metrics.text().decode()) | names_of(metrics.text({"dialect": "strimzi"}).decode())
    for dialect in DIALECTS.values():
        found |= {sample.name for each in dialect.families(clients.beans()) for sample in each.samples}
    return found


def of_services() -> set[str]:
    """The registry and the REST proxy, as far as their pages are Confluent's."""
    node: Any = SimpleNamespace(state=State(), next_offset=0, seat=SimpleNamespace(is_primary=True))
    registry = registry_metrics(node)
    proxy = ServiceMetrics("rest", "kafka_rest", MEASURED)
    return names_of(registry.text().decode()) | names_of(proxy.text().decode())


def of_the_engine(folder: Path) -> set[str]:
    """The page of Streams on Spark."""
    place = TopicPartition("words", 0)
    tasks = TaskMetrics()
    phases = dict.fromkeys(("poll", "process", "flush", "send", "commit", "restore"), 0.1)
    once = {"get": Accesses(3, 3000, 1500), "put": Accesses(3, 3000, 1500)}
    measures = BatchMeasures(
        phases, Ages(50.0, 5, 5.0, 20.0), 9, {"KSTREAM-SOURCE": 5}, {"counts": StoreMeasures(once, 2)}
    )
    tasks.add(TaskResult(TaskId(0, 0), records=5, outputs=7, seconds=0.5, measures=measures))
    tasks.measure_lag({place: 9}, {place: 4})
    reporter = Reporter(FolderPlace(folder), "words", "streams", write_s=0.01)
    reporter.set_state("words-0", QueryState.RUNNING)
    reporter.progress("words-0", metrics=tasks.snapshot())
    reporter.close()
    return names_of(metrics_text(Catalogue(FolderPlace(folder))))
