"""One Spark session with Delta Lake for the folder, a broker, and a way to produce."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from barnabas.testing.broker import Broker
from both_brokers import KEEPS_ALL, parametrize_broker
from spark_sessions import JAR_SETS, STARTS_FAST, connector_jars

DRIVER_MEMORY = "2g"
_numbers = count()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    parametrize_broker(metafunc, "session")


@pytest.fixture(scope="package")
def spark() -> Iterator[Any]:
    """As the platform makes it, with all drivers. Spark's own connector is on the class path too: the folders
    that come later share the Java machine."""
    pytest.importorskip("pyspark", reason="needs the extra `pipeline`")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java")
    from barnabas.engine.session import session
    from barnabas.engine.spark_settings import SparkSettings
    from barnabas.spark.jars import JarError

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.jars": ",".join(connector_jars()),
        "spark.driver.memory": DRIVER_MEMORY,
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.adaptive.enabled": "false",  # tables are small: one job is cheaper than three
        **STARTS_FAST,
    }
    try:
        found = session(
            SparkSettings("local[2]", settings=settings),
            JAR_SETS,
            "pipeline-tests",
        )
    except JarError as error:
        pytest.skip(str(error))
    found.sparkContext.setLogLevel("OFF")
    yield found
    found.stop()


@pytest.fixture(scope="package")
def broker(request: pytest.FixtureRequest) -> Iterator[Any]:
    if request.param == "apache":
        yield request.getfixturevalue("apache_kafka")
        return
    with Broker(overrides=KEEPS_ALL, in_process=False) as found:
        yield found


@pytest.fixture
def topic(broker: Any) -> Callable[..., str]:
    """Makes topics with names of their own."""
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": broker.bootstrap})

    def create(name: str = "events", partitions: int = 2) -> str:
        unique = f"{name}-{os.getpid()}-{next(_numbers)}"
        admin.create_topics([NewTopic(unique, num_partitions=partitions, replication_factor=1)])[
            unique
        ].result(30)
        return unique

    return create


Produce = Callable[..., None]


@pytest.fixture
def produce(broker: Any) -> Produce:
    """`produce(topic, [{"order_id": 1}, b"broken", None], key="order_id")`."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5})

    def send(topic: str, values: Iterable[Any], key: str | None = None, partition: int = -1) -> None:
        for value in values:
            data = value if isinstance(value, bytes | type(None)) else json.dumps(value).encode()
            name = str(value[key]) if key and isinstance(value, dict) and key in value else None
            producer.produce(topic, data, name, partition=partition)
        assert producer.flush(30) == 0

    return send


@pytest.fixture
def lake(tmp_path: Path) -> str:
    return str(tmp_path / "lake")
