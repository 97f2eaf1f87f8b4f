"""One Spark session and one broker for the tests of this folder."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.testing.plugin import barnabas_broker, barnabas_topic
from spark_sessions import JAR_SETS, STARTS_FAST, connector_jars

__all__ = ["barnabas_broker", "barnabas_topic"]


@pytest.fixture(scope="package")
def spark() -> Iterator[Any]:
    pytest.importorskip("pyspark", reason="needs the extra `spark`")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java")
    from barnabas.engine.session import session
    from barnabas.engine.spark_settings import SparkSettings
    from barnabas.spark.jars import JarError

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {"spark.jars": ",".join(connector_jars()), "spark.driver.memory": "2g", **STARTS_FAST}
    try:
        found = session(SparkSettings("local[2]", settings=settings), JAR_SETS, "connect-tests")
    except JarError as error:
        pytest.skip(str(error))
    found.sparkContext.setLogLevel("OFF")
    yield found
    found.stop()
