"""`python -m bench.streams_ours NAME BOOTSTRAP APPLICATION FOLDER GUARANTEE`: our side of the comparison.

It starts a session on `local[2]`, says RUNNING, and runs until its input is closed. Does not know: Java.
"""

from __future__ import annotations

import sys
import threading

from barnabas.client.blocking import run
from barnabas.engine.session import close, session
from barnabas.engine.spark_settings import SparkSettings
from barnabas.spark.basics.cluster import WorkerCluster
from barnabas.streams.run.settings import streams_settings
from barnabas.streams.spark.conductor import Conductor
from barnabas.streams.spark.queries_of_plan import queries_of
from bench.streams_topologies import plan_of


def main(name: str, bootstrap: str, application_id: str, folder: str, guarantee: str) -> None:
    given = {"processing.guarantee": guarantee, "state.dir": folder}
    settings = streams_settings(application_id, bootstrap, given)
    spark = session(SparkSettings("local[2]"), sets=(), name=application_id)
    stopping = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), stopping.set()), daemon=True).start()
    cluster = WorkerCluster(settings.tasks.client)
    conductor = Conductor(spark, settings.tasks.client)
    for query in queries_of(plan_of(name, application_id), settings.tasks, cluster):
        conductor.add(query)
    run(cluster.close())
    print("RUNNING", flush=True)
    conductor.run(lambda: stopping.is_set() or any(query.error for query in conductor.queries))
    for query in conductor.queries:
        print(query.name, query.batches, query.records, query.outputs, query.error or "", file=sys.stderr)
    close(spark)


if __name__ == "__main__":
    main(*sys.argv[1:6])
