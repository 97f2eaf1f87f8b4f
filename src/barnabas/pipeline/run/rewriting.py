"""Runs backfills, replays and releases, then updates what depends on the rewritten rows.

In: a pipeline, and one of the three commands. Out: what was done. The command recomputes the refined
tables; then the views over changed tables are refreshed, each once. If the pipeline runs, its serving
process gets the views; if not, the command holds the lake's lock. Does not know: how rows are rewritten
(`ingest.rewriting`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from barnabas.engine.lock import LakeIsBusy
from barnabas.pipeline.ingest.results import RewriteResult
from barnabas.pipeline.observe.recorder import RunRecorder
from barnabas.pipeline.run.worker import Worker
from barnabas.pipeline.serving.access import open_pipeline_store, serving_client, serving_url
from barnabas.pipeline.spec.lake_lock import lake_lock
from barnabas.pipeline.spec.model import Pipeline
from barnabas.pipeline.views.parts import Parts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Body = Callable[["SparkSession"], RewriteResult]


def rewrite(pipeline: Pipeline, what: str, body: Body, say: Callable[[str], object]) -> RewriteResult:
    """`body` rewrites rows and refined tables; then the views are refreshed."""
    from barnabas.engine.session import close
    from barnabas.pipeline.run.session import open_session

    with parts_of(pipeline, what) as parts:
        say("starting Spark")
        spark = open_session(pipeline, "rewriting")
        try:
            worker = Worker(spark, pipeline, parts, RunRecorder(pipeline))
            started = time.time()
            say("rewriting")
            done = body(spark)
            for name in done.views:
                say(f"view {name}")
                worker.refresh_view(name)
            worker.recorder.rewritten(done, started)
            return done
        finally:
            close(spark)


@contextmanager
def parts_of(pipeline: Pipeline, what: str) -> Iterator[Parts]:
    """The receiver of parts of views: the serving process, or the store if the pipeline does not run."""
    lock = lake_lock(pipeline, what)
    try:
        lock.acquire()
    except LakeIsBusy:
        url = serving_url(pipeline)
        if url is None:
            raise
        with serving_client(pipeline, url) as client:
            yield client
        return
    with lock:
        store = open_pipeline_store(pipeline)
        try:
            yield store
        finally:
            store.close()
