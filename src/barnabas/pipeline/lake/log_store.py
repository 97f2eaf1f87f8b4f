"""The log store of a lake at S3: commits of several drivers, each version won by one.

In: a lake, Spark's settings. Out: settings with the log store `ConditionalPutLogStore` (folder `java`),
unless the file names another. Delta's own log store for S3 is for one driver: with two, as a pipeline has,
one commit may replace the other. `check_store` refuses a store that ignores conditions. Does not know: Spark.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from barnabas.engine.delta.log import opened_store
from barnabas.engine.errors import NeedsDecision
from barnabas.engine.secrets import Text, reveal
from barnabas.pipeline.lake.tables import Lake

JAR = Path(__file__).parent / "java" / "log-store.jar"
CLASS = "org.barnabas.lake.ConditionalPutLogStore"
SETTING = "spark.delta.logStore.{scheme}.impl"
JARS = "spark.jars"
SCHEMES = ("s3a", "s3")
CONDITIONAL = "spark.hadoop.fs.s3a.create.conditional.enabled"


def with_log_store_settings(lake: Lake, settings: Mapping[str, Text]) -> Mapping[str, Text]:
    scheme = lake.root.partition("://")[0]
    name = SETTING.format(scheme=scheme)
    if scheme not in SCHEMES or name in settings:
        return settings
    if reveal(settings.get(CONDITIONAL, "true")).lower() == "false":
        raise NeedsDecision(
            f"the lake {lake.root} cannot be shared by the two drivers of a pipeline: {CONDITIONAL} is false."
            f" Remove it, or name a log store with {name}"
        )
    jars = ",".join(part for part in (reveal(settings.get(JARS, "")), str(JAR)) if part)
    return {**settings, name: CLASS, JARS: jars}


def check_store(lake: Lake) -> None:
    """NeedsDecision if the store of a lake takes an object twice that must not be there."""
    if lake.is_local or lake.root.partition("://")[0] not in SCHEMES:
        return
    exists: type[Exception] = import_module("obstore.exceptions").AlreadyExistsError
    client, store, prefix = opened_store(lake.own_path("probe", f"{uuid.uuid4()}"), lake.store)
    client.put(store, prefix, b"1", mode="create", use_multipart=False)
    try:
        client.put(store, prefix, b"2", mode="create", use_multipart=False)
    except exists:
        return
    finally:
        client.delete(store, [prefix])
    raise NeedsDecision(
        f"the store of {lake.root} ignores conditional puts (If-None-Match): commits of two drivers would"
        f" replace each other. Use a store that has them, or name a log store with"
        f" {SETTING.format(scheme=lake.root.partition('://')[0])} (with DynamoDB, for example)"
    )
