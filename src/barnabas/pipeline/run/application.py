"""What both Spark applications share: the file, the session, the serving process, and how they end.

In: the name of the application, the path of the pipeline's file. Out: an exit status. An application whose
JVM or server is gone exits, so that the supervisor restarts it.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from barnabas.engine.errors import brief
from barnabas.engine.secrets import Text
from barnabas.engine.session import close, is_alive
from barnabas.engine.supervisor import STOP_S_MAX, on_stop_signal, on_supervisor_gone
from barnabas.pipeline.file.reading import read_pipeline
from barnabas.pipeline.ingest.fenced_tables import fence_tables
from barnabas.pipeline.observe.recorder import RunRecorder
from barnabas.pipeline.run.session import open_session
from barnabas.pipeline.run.worker import Worker
from barnabas.pipeline.serving.access import serving_client, serving_url
from barnabas.pipeline.serving.http.client import ServingClient
from barnabas.pipeline.spec.model import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARK_GONE, ORPHANED = 70, 71  # exit statuses
SERVING_S_MAX = 60.0
LOOK_S = 0.1
CORES_ON_CLUSTER = "2"  # default for each application, so that both fit on the cluster


class Application:
    """A running application. `stopping` is set when it must end."""

    def __init__(self, name: str, pipeline: Pipeline, spark: SparkSession, serving: ServingClient) -> None:
        self.name = name
        self.pipeline = pipeline
        self.spark = spark
        self.serving = serving
        self.recorder = RunRecorder(pipeline)
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
    """Settings of this application alone, such as `batch.spark.driver.memory`, and defaults."""
    prefix = f"{name}."
    found = {
        key.removeprefix(prefix): value
        for key, value in pipeline.spark.settings.items()
        if key.startswith(prefix)
    }
    given = {**pipeline.spark.settings, **found}
    if pipeline.spark.master.startswith("spark://"):
        found.setdefault("spark.cores.max", given.get("spark.cores.max", CORES_ON_CLUSTER))
    return found


def wait_for_serving(pipeline: Pipeline) -> str:
    deadline = time.monotonic() + SERVING_S_MAX
    while (url := serving_url(pipeline)) is None:
        if time.monotonic() > deadline:
            raise TimeoutError(f"the serving process did not start within {SERVING_S_MAX:g} s")
        time.sleep(LOOK_S)
    return url


def run_application(name: str, arguments: list[str], body: Callable[[Application], None]) -> int:
    [path] = arguments
    pipeline = read_pipeline(path)
    running: list[Application] = []
    on_supervisor_gone(lambda: end_orphaned(running))
    url = wait_for_serving(pipeline)
    spark = open_session(pipeline, name, **own_settings(pipeline, name))
    with serving_client(pipeline, url) as serving:
        application = Application(name, pipeline, spark, serving)
        on_stop_signal(application.stop)
        running.append(application)
        application.log(f"running, pid {os.getpid()}")
        if fence_tables(spark, pipeline):
            application.log("took the lake over: its tables refuse commits of the former holder")
        body(application)
        application.log("ended")
    sys.stdout.flush()
    if is_alive(spark):
        close(spark)
    return 0


def end_orphaned(running: list[Application]) -> None:
    """End the process when its supervisor is gone, also if the application does not stop in time."""
    for application in running:
        application.stop()
        time.sleep(STOP_S_MAX)
    os._exit(ORPHANED)
