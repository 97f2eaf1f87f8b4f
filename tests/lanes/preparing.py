"""What tests fetch or build once for a machine, before workers ask for it all at the same time.

In: nothing. Out: jars in the cache folder, and the archive of Apache Kafka's classes. What cannot be fetched
is left to the tests, which skip with the reason. It takes a second when everything is there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from barnabas.spark import jars
from barnabas.testing import apache, maven, spark_connector


def prepare() -> None:
    with ThreadPoolExecutor() as pool:
        for step in (prepare_apache, prepare_streams, prepare_connector, *map(prepare_jars, jars.SETS)):
            pool.submit(step)


def prepare_apache() -> None:
    if apache.available() is None:
        apache.share_classes()


def prepare_streams() -> None:
    if apache.available() is None:
        with contextlib.suppress(maven.MavenError):
            apache.streams_jars()


def prepare_connector() -> None:
    spark_connector.available()


def prepare_jars(name: str) -> Callable[[], None]:
    def prepare_set() -> None:
        with contextlib.suppress(jars.JarError):
            jars.jars(name, say=lambda line: None)

    return prepare_set
