"""The Spark session of a pipeline: with the jars that its sources need.

In: a pipeline, which application. Out: a session. Does not know: what is run on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.engine.secrets import Text, reveal
from barnabas.engine.session import session
from barnabas.pipeline.spec.model import Pipeline, TableSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JDBC_SETS = {"jdbc:postgresql:": "postgresql", "jdbc:sqlite:": "sqlite", "jdbc:mysql:": "mysql"}


def jar_sets(pipeline: Pipeline) -> list[str]:
    """Delta, and the drivers of the databases that are named."""
    found = ["delta"]
    for source in pipeline.sources:
        if isinstance(source, TableSource):
            address = reveal(source.url)  # it may be a reference as a whole
            found += [name for prefix, name in JDBC_SETS.items() if address.startswith(prefix)]
    return list(dict.fromkeys(found))


def open_session(pipeline: Pipeline, application: str = "", **settings: Text) -> SparkSession:
    """The session of an application of this pipeline, `batch` or `streaming`; `settings` come last."""
    name = "-".join(part for part in ("barnabas", pipeline.name, application) if part)
    return session(pipeline.spark, jar_sets(pipeline), name, settings)
