"""One Spark session for the tests of this folder, and a broker."""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.testing.broker import Broker
from barnabas.testing.waiting import wait_until
from both_brokers import KEEPS_ALL, parametrize_broker
from spark_sessions import STARTS_FAST, all_jars


@pytest.fixture(scope="package")
def spark() -> Iterator[Any]:
    pytest.importorskip("pyspark", reason="needs the extra `spark`")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pyspark's own
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master("local[2]").appName("tests")
        for name, value in {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.streaming.stopTimeout": "60s",
            "spark.driver.memory": "2g",
            "spark.jars": ",".join(all_jars()),
            **STARTS_FAST,
        }.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        yield session
        session.stop()


class Served:
    """Apache Kafka behind what the tests ask of a broker."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self._admin = AdminClient({"bootstrap.servers": bootstrap})

    def create_topic(
        self, name: str, partitions: int = 1, configs: Mapping[str, object] | None = None
    ) -> None:
        settings = {key: str(value) for key, value in (configs or {}).items()}
        topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=settings)
        self._admin.create_topics([topic])[name].result(30)
        wait_until(lambda: name in self._admin.list_topics(timeout=10).topics)

    def delete_topic(self, name: str) -> None:
        self._admin.delete_topics([name])[name].result(30)
        wait_until(lambda: name not in self._admin.list_topics(timeout=10).topics)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    parametrize_broker(metafunc, "session")


@pytest.fixture(scope="session")
def broker(request: pytest.FixtureRequest) -> Iterator[Any]:
    if request.param == "apache":
        yield Served(request.getfixturevalue("apache_kafka").bootstrap)
        return
    with Broker(overrides=KEEPS_ALL, in_process=False) as found:
        yield found
