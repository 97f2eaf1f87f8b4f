"""Backfills, replays and releases: a part of the lake is written anew, then what depends on it, in order.

In: a pipeline, and which of the three. Out: what was done. Refined tables are computed anew first, then the
views over what changed, each once, and nothing else. A pipeline that runs goes on meanwhile, and its serving
process gets the views; where none runs, the lake is ours.
Does not know: how rows are rewritten (`pipeline.backfill`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from barnabas.pipeline.engine.lock import LakeIsBusy, LakeLock
from barnabas.pipeline.ingest.results import RewriteResult
from barnabas.pipeline.observe.recorder import Diary
from barnabas.pipeline.run.work import Work
from barnabas.pipeline.serving.access import open_pipeline_store, serving_url, token_of
from barnabas.pipeline.serving.http.client import ServingClient
from barnabas.pipeline.spec.model import Pipeline
from barnabas.pipeline.spec.state_folder import state_folder
from barnabas.pipeline.views.parts import Parts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Body = Callable[["SparkSession"], RewriteResult]


def rewrite(pipeline: Pipeline, what: str, body: Body, say: Callable[[str], object]) -> RewriteResult:
    """`body` rewrites rows and refined tables with a session; the views follow here."""
    from barnabas.pipeline.engine.session import close
    from barnabas.pipeline.run.session import open_session

    with parts_of(pipeline, what) as parts:
        say("starting Spark")
        spark = open_session(pipeline, "rewriting")
        try:
            work = Work(spark, pipeline, parts, Diary(pipeline))
            started = time.time()
            say("rewriting")
            done = body(spark)
            for name in done.views:
                say(f"view {name}")
                work.refresh_view(name)
            work.diary.rewritten(done, started)
            return done
        finally:
            close(spark)


@contextmanager
def parts_of(pipeline: Pipeline, what: str) -> Iterator[Parts]:
    """Where parts of views go: to the process that serves, or into the store of a lake that nobody runs."""
    lock = LakeLock(state_folder(pipeline), what)
    try:
        lock.acquire()
    except LakeIsBusy:
        url = serving_url(pipeline)
        if url is None:
            raise
        with ServingClient(url, token_of(pipeline)) as client:
            yield client
        return
    with lock:
        store = open_pipeline_store(pipeline)
        try:
            yield store
        finally:
            store.close()
