"""The log store of a lake at S3: commits of several drivers, each version won by one.

In: the URL of a lake, Spark's settings. Out: settings with the log store `ConditionalPutLogStore` (folder
`java`), unless they name another. Delta's own log store for S3 is for one driver: with two, as a pipeline has
or a task beside its successor, one commit may replace the other. `check_store` refuses a store that ignores
conditions. Does not know: Spark.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from barnabas.engine.delta.log import Store, opened_store
from barnabas.engine.errors import NeedsDecision
from barnabas.engine.secrets import Text, reveal

JAR = Path(__file__).parent / "java" / "log-store.jar"
CLASS = "org.barnabas.lake.ConditionalPutLogStore"
SETTING = "spark.delta.logStore.{scheme}.impl"
JARS = "spark.jars"
SCHEMES = ("s3a", "s3")
CONDITIONAL = "spark.hadoop.fs.s3a.create.conditional.enabled"


def is_s3(url: str) -> bool:
    return url.partition("://")[0] in SCHEMES


def with_log_store_settings(root: str, settings: Mapping[str, Text]) -> Mapping[str, Text]:
    """Settings with a log store for the lake at `root`, which several drivers may write."""
    scheme = root.partition("://")[0]
    name = SETTING.format(scheme=scheme)
    if scheme not in SCHEMES or name in settings:
        return settings
    if reveal(settings.get(CONDITIONAL, "true")).lower() == "false":
        raise NeedsDecision(
            f"the lake {root} cannot be shared by two drivers, as a pipeline has: {CONDITIONAL} is false."
            f" Remove it, or name a log store with {name}"
        )
    jars = ",".join(part for part in (reveal(settings.get(JARS, "")), str(JAR)) if part)
    return {**settings, name: CLASS, JARS: jars}


def check_store(folder: str, settings: Store | None) -> None:
    """NeedsDecision if the store of a folder for probes takes an object twice that must not be there."""
    if not is_s3(folder):
        return
    exists: type[Exception] = import_module("obstore.exceptions").AlreadyExistsError
    client, store, prefix = opened_store(f"{folder}/{uuid.uuid4()}", settings)
    client.put(store, prefix, b"1", mode="create", use_multipart=False)
    try:
        client.put(store, prefix, b"2", mode="create", use_multipart=False)
    except exists:
        return
    finally:
        client.delete(store, [prefix])
    raise NeedsDecision(
        f"the store of {folder} ignores conditional puts (If-None-Match): commits of two drivers would"
        f" replace each other. Use a store that has them, or name a log store with"
        f" {SETTING.format(scheme=folder.partition('://')[0])} (with DynamoDB, for example)"
    )
