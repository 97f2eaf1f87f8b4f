"""The program of an application of streams: a session, a conductor, the queries of one plan.

Started by the supervisor with its settings as JSON in the first argument. It ends after the current batches
on SIGTERM. A query that fails starts again after a while, the others go on. Where another process has taken
over or Spark does not run jobs, it ends with status 1, so that the supervisor starts it again. Does not know:
leases, upgrades.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Mapping

from barnabas.client.blocking import run
from barnabas.engine.catalogue.reporter import Reporter
from barnabas.engine.catalogue.statuses import QueryState
from barnabas.engine.places.place import place_at
from barnabas.engine.session import close, session
from barnabas.engine.spark_settings import SparkSettings
from barnabas.engine.supervisor import on_stop_signal
from barnabas.spark.basics.cluster import WorkerCluster
from barnabas.streams.run.retries import Retries
from barnabas.streams.run.settings import StreamsSettings, streams_settings
from barnabas.streams.run.topologies import load_plan
from barnabas.streams.spark.conductor import Conductor, Query
from barnabas.streams.spark.queries_of_plan import create_missing, queries_of
from barnabas.streams.spark.renewing import PlanQueries

KIND = "stream"
PROGRAM = "streams"
REFRESH_S = 10


def main(arguments: Mapping[str, object]) -> int:
    given = arguments["settings"]
    assert isinstance(given, dict)
    application_id = str(arguments["application_id"])
    settings = streams_settings(application_id, str(arguments["servers"]), given)
    stopping = threading.Event()
    on_stop_signal(stopping.set)
    reporter = Reporter(place_at(settings.tasks.state_dir), application_id, PROGRAM)
    spark = session(SparkSettings(settings.master, settings=settings.spark), sets=(), name=application_id)
    cluster = WorkerCluster(settings.tasks.client)
    try:
        conductor = Conductor(spark, settings.tasks.client, purge_s=settings.purge_s)
        running = plan_queries(str(arguments["topology"]), settings, cluster, conductor)
        for query in running.start():
            reporter.set_state(query.name, QueryState.RUNNING, kind=KIND)
        seen: dict[str, int] = {}
        retries = Retries(conductor, reporter)

        def after_round() -> None:
            report(reporter, conductor.queries, seen)
            running.look_if_due()
            retries.look()

        def is_useless() -> bool:
            return any(query.needs_new_process for query in conductor.queries)

        conductor.run(lambda: stopping.is_set() or is_useless(), after_round)
        retries.note_failures()
        return 1 if is_useless() else 0
    finally:
        run(cluster.close())
        close(spark)
        reporter.close()


def plan_queries(
    topology: str, settings: StreamsSettings, cluster: WorkerCluster, conductor: Conductor
) -> PlanQueries:
    """The queries of the topology, which follow its topics."""
    plan = load_plan(topology, settings.tasks.application_id, settings.optimization)
    create_missing(settings.error_topics, cluster, settings.creation.replicas)

    def make() -> list[Query]:
        return queries_of(
            plan,
            settings.tasks,
            cluster,
            handlers=settings.handlers,
            offset_reset=settings.offset_reset,
            creation=settings.creation,
        )

    return PlanQueries(plan, make, cluster, conductor, every_s=settings.metadata_age_s)


def report(reporter: Reporter, running: list[Query], seen: dict[str, int]) -> None:
    """Tell the catalogue of batches that ended since the last report, and now and then of metrics alone."""
    now_s = int(time.monotonic())
    for query in running:
        if query.batches != seen.get(query.name, 0):
            before = seen.get(f"{query.name}/records", 0)
            outputs = seen.get(f"{query.name}/outputs", 0)
            reporter.progress(
                query.name,
                batch=query.batches,
                rows_in=query.records - before,
                rows_out=query.outputs - outputs,
                lag=query.metrics.lag,
                metrics=query.metrics.snapshot(),
            )
            seen[query.name] = query.batches
            seen[f"{query.name}/records"] = query.records
            seen[f"{query.name}/outputs"] = query.outputs
            seen[f"{query.name}/at"] = now_s
        elif now_s - seen.get(f"{query.name}/at", now_s) >= REFRESH_S:
            reporter.measured(query.name, lag=query.metrics.lag, metrics=query.metrics.snapshot())
            seen[f"{query.name}/at"] = now_s


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
