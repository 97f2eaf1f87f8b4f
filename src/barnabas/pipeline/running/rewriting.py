"""Backfills, replays and releases: a part of the lake is written anew, then what depends on it, in order.

In: a pipeline, and which of the three. Out: what was done. Refined tables are computed anew before the
views over them, each once, and nothing that does not depend on what changed. The lake is ours meanwhile.
Does not know: how rows are rewritten (`pipeline.backfill`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from barnabas.pipeline.changed import Rewritten
from barnabas.pipeline.model import Pipeline
from barnabas.pipeline.running.asking import the_store
from barnabas.pipeline.running.diary import Diary
from barnabas.pipeline.running.lock import LakeLock
from barnabas.pipeline.running.state import state_folder
from barnabas.pipeline.running.work import Work

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Body = Callable[[Any, "SparkSession"], Rewritten]


def rewritten(pipeline: Pipeline, what: str, body: Body, say: Callable[[str], object]) -> Rewritten:
    """`body` is called with the module of rewriting functions and a session."""
    from barnabas.pipeline import backfill
    from barnabas.pipeline.session import open_session

    with LakeLock(state_folder(pipeline), what):
        say("starting Spark")
        spark = open_session(pipeline, "rewriting")
        store = the_store(pipeline)
        try:
            work = Work(spark, pipeline, store, Diary(pipeline))
            started = time.time()
            say("rewriting")
            done = body(backfill, spark)
            refresh(work, done, say)
            work.diary.rewritten(done, started)
            return done
        finally:
            store.close()
            spark.stop()


def refresh(work: Work, done: Rewritten, say: Callable[[str], object]) -> None:
    """What depends on the tables that changed: refined tables first, then views, in order."""
    for name in done.refined:
        say(f"refined {name}")
        work.refine([name])
    for name in done.views:
        say(f"view {name}")
        work.refresh_view(name)
