"""The Spark session of a pipeline: with the jars that its sources and its lake need.

In: a pipeline, which application. Out: a session. Does not know: what is run on it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from barnabas.engine.delta.log_store import check_store, with_log_store_settings
from barnabas.engine.secrets import Text, reveal
from barnabas.engine.session import session
from barnabas.engine.spark_settings import SparkSettings
from barnabas.pipeline.spec.model import FilesSource, Pipeline, TableSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JDBC_SETS = {"jdbc:postgresql:": "postgresql", "jdbc:sqlite:": "sqlite", "jdbc:mysql:": "mysql"}


def jar_sets(pipeline: Pipeline) -> list[str]:
    """Delta, Hadoop's S3 for what lies there, and the drivers of the databases that are named."""
    found = ["delta"]
    paths = [pipeline.lake, *(each.path for each in pipeline.sources if isinstance(each, FilesSource))]
    if any(path.startswith("s3a://") for path in paths):
        found.append("s3")
    for source in pipeline.sources:
        if isinstance(source, TableSource):
            address = reveal(source.url)  # it may be a reference as a whole
            found += [name for prefix, name in JDBC_SETS.items() if address.startswith(prefix)]
    return list(dict.fromkeys(found))


def with_log_store(pipeline: Pipeline) -> SparkSettings:
    """Spark's settings, with a log store for several drivers where the lake is at S3."""
    spark = pipeline.spark
    if spark.connect_server:  # the server has its own jars and settings
        return spark
    return replace(spark, settings=with_log_store_settings(pipeline.lake_location.root, spark.settings))


def open_session(pipeline: Pipeline, application: str = "", **settings: Text) -> SparkSession:
    """The session of an application of this pipeline, `batch` or `streaming`; `settings` come last."""
    name = "-".join(part for part in ("barnabas", pipeline.name, application) if part)
    wanted = with_log_store(pipeline)
    if not pipeline.spark.connect_server:
        lake = pipeline.lake_location
        check_store(lake.own_path("probe"), lake.store)
    return session(wanted, jar_sets(pipeline), name, settings)
