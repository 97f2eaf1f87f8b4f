"""Shared by both Spark programs of a pipeline: the file, the session, the serving process, and how they end.

In: the name of the program, the path of the pipeline's file. Out: an exit status. A program whose JVM or
server is gone exits, so that the supervisor restarts it; one that hangs gives no sign of life, and is killed.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from barnabas.engine.catalogue.reporter import Reporter
from barnabas.engine.errors import brief
from barnabas.engine.heartbeat import beat_while
from barnabas.engine.secrets import Text, reveal
from barnabas.engine.session import close, is_alive, report_streams
from barnabas.engine.standalone import MASTER_PAGE, cores_of_cluster, share_of
from barnabas.engine.supervisor import on_stop_signal, on_supervisor_gone, stop_seconds
from barnabas.pipeline.file.reading import read_pipeline
from barnabas.pipeline.ingest.fenced_tables import fence_tables
from barnabas.pipeline.observe.recorder import RunRecorder
from barnabas.pipeline.run.session import open_session
from barnabas.pipeline.run.worker import Worker
from barnabas.pipeline.serving.access import serving_client, serving_url
from barnabas.pipeline.serving.http.client import ServingClient
from barnabas.pipeline.spec.lake_lock import state_place
from barnabas.pipeline.spec.model import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARK_GONE, ORPHANED = 70, 71  # exit statuses
SERVING_S_MAX = 60.0
LOOK_S = 0.1
SPARK_PROGRAMS = 2  # they share the cores of a standalone cluster
CORES_LEAST = 2  # of each, if the cluster does not say how many it has
SHARES = ("spark.cores.max", "spark.dynamicAllocation.enabled")  # users who set one of them share by hand


class SparkProgram:
    """A running program, `streaming` or `batch`. `stopping` is set when it must end."""

    def __init__(
        self, name: str, pipeline: Pipeline, spark: SparkSession, serving: ServingClient, reporter: Reporter
    ) -> None:
        self.name = name
        self.pipeline = pipeline
        self.spark = spark
        self.serving = serving
        self.recorder = RunRecorder(pipeline, reporter)
        self.stopping = threading.Event()
        self.worker = Worker(spark, pipeline, serving, self.recorder, self.stopping.is_set)

    def stop(self) -> None:
        self.stopping.set()

    def log(self, text: str) -> None:
        at = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")
        with contextlib.suppress(OSError):  # the disk may be full
            print(f"{at} {self.name}: {' '.join(str(text).split())[:1000]}", flush=True)

    def check_alive(self, error: BaseException) -> None:
        """End the process if its Spark session is gone."""
        if not is_alive(self.spark):
            self.log(f"the Spark session is gone: {brief(error)}")
            os._exit(SPARK_GONE)


def own_settings(pipeline: Pipeline, name: str) -> dict[str, Text]:
    """Settings of this program alone, such as `batch.spark.driver.memory`, and its share of the cores of a
    standalone cluster."""
    prefix = f"{name}."
    found = {
        key.removeprefix(prefix): value
        for key, value in pipeline.spark.settings.items()
        if key.startswith(prefix)
    }
    given = {**pipeline.spark.settings, **found}
    if pipeline.spark.master.startswith("spark://") and not any(each in given for each in SHARES):
        cores = cores_of_cluster(pipeline.spark.master, reveal(given.get(MASTER_PAGE, "")))
        found["spark.cores.max"] = str(share_of(cores, SPARK_PROGRAMS, CORES_LEAST))
    return found


def wait_for_serving(pipeline: Pipeline) -> str:
    deadline = time.monotonic() + SERVING_S_MAX
    while (url := serving_url(pipeline)) is None:
        if time.monotonic() > deadline:
            raise TimeoutError(f"the serving process did not start within {SERVING_S_MAX:g} s")
        time.sleep(LOOK_S)
    return url


def run_program(name: str, arguments: list[str], body: Callable[[SparkProgram], None]) -> int:
    [path] = arguments
    pipeline = read_pipeline(path)
    running: list[SparkProgram] = []
    on_supervisor_gone(lambda: end_orphaned(running))
    url = wait_for_serving(pipeline)
    spark = open_session(pipeline, name, **own_settings(pipeline, name))
    with serving_client(pipeline, url) as serving, reporting(pipeline, name) as reporter:
        program = SparkProgram(name, pipeline, spark, serving, reporter)
        on_stop_signal(program.stop)
        running.append(program)
        stop_beating = beat_while(lambda: is_alive(spark))
        report_streams(spark, reporter)
        program.log(f"running, pid {os.getpid()}")
        if fence_tables(spark, pipeline):
            program.log("took the lake over: its tables refuse commits of the former holder")
        body(program)
        stop_beating()
        program.log("ended")
    sys.stdout.flush()
    if is_alive(spark):
        close(spark)
    return 0


@contextlib.contextmanager
def reporting(pipeline: Pipeline, name: str) -> Iterator[Reporter]:
    """Reports the queries of a program to the catalogue."""
    reporter = Reporter(state_place(pipeline), pipeline.name, name)
    try:
        yield reporter
    finally:
        reporter.close()


def end_orphaned(running: list[SparkProgram]) -> None:
    """End the process when its supervisor is gone, also if the program does not stop in time."""
    for program in running:
        program.stop()
        time.sleep(stop_seconds())
    os._exit(ORPHANED)
