"""One Spark session for all tests, and a broker."""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.testing import spark_connector
from barnabas.testing.broker import Broker


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    pytest.importorskip("pyspark", reason="needs the extra `spark`")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pyspark's own
        from pyspark.sql import SparkSession

        # Spark's own connector beside ours, where it can be fetched: both must show the same rows.
        jars = [] if spark_connector.available() else spark_connector.jars()
        builder = SparkSession.builder.master("local[2]").appName("tests")
        for name, value in {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.streaming.stopTimeout": "60s",
            "spark.driver.memory": "1g",
            "spark.jars": ",".join(map(str, jars)),
        }.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        yield session
        session.stop()


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    with Broker(in_process=False) as found:
        yield found
