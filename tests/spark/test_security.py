"""The source and the sink log in with the options of Spark's connector, and show no secret."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.topics import NewTopic
from barnabas.client.blocking import run
from barnabas.spark.basics.settings import OptionError
from barnabas.spark.options import source_options
from barnabas.testing import Broker
from security.sasl_broker import SASL_SETTINGS, USERS, client_properties, cluster_of

WORD = USERS["alice"]


@pytest.fixture(scope="module")
def secured() -> Iterator[str]:
    with Broker(overrides=SASL_SETTINGS) as broker:
        yield broker.bootstrap


def options(bootstrap: str, password: str = WORD) -> dict[str, str]:
    properties = client_properties("PLAIN", "alice", password)
    return {"kafka.bootstrap.servers": bootstrap} | {f"kafka.{each}": properties[each] for each in properties}


def test_rows_travel_over_sasl_and_the_password_stays_hidden(spark: Any, secured: str) -> None:
    given = options(secured)
    with cluster_of(secured, client_properties("PLAIN", "alice", WORD)) as cluster:
        run(Admin(cluster).create_topic(NewTopic("rows", 1, 1)))
    rows = spark.createDataFrame([("k", "v")], ["key", "value"])
    rows.write.format("barnabas").mode("append").options(**given).option("topic", "rows").save()
    found = spark.read.format("barnabas").options(**given).option("subscribe", "rows").load()
    assert [bytes(row.value) for row in found.collect()] == [b"v"]
    plans = found._jdf.queryExecution().toString()
    assert WORD not in plans and "PlainLoginModule" not in plans


def test_a_wrong_password_is_named_without_being_shown(spark: Any, secured: str) -> None:
    with pytest.raises(Exception, match="Invalid username or password") as caught:
        spark.read.format("barnabas").options(**options(secured, "not-the-word")).option(
            "subscribe", "rows"
        ).load().collect()
    assert "not-the-word" not in str(caught.value)


def test_security_settings_are_in_no_repr_and_references_stay_references() -> None:
    given = {**options("localhost:9092", "${env:ALICES_WORD}"), "subscribe": "t"}
    found = source_options(given, streaming=False)
    assert dict(found.client.security)["sasl.jaas.config"].count("${env:ALICES_WORD}") == 1
    assert "sasl" not in repr(found) and "ALICES_WORD" not in repr(found)
    with pytest.raises(OptionError, match="ALICES_WORD is not set"):
        found.client.client_security()


def test_a_reference_is_resolved_where_the_connection_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {**options("localhost:9092", "${env:ALICES_WORD}"), "subscribe": "t"}
    monkeypatch.setenv("ALICES_WORD", WORD)
    assert source_options(given, streaming=False).client.client_security().mechanism == "PLAIN"


def test_wrong_security_options_are_errors_of_the_option() -> None:
    given = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "t", "kafka.security.protocol": "SSL"}
    given["kafka.ssl.truststore.location"] = "/there/is/no/such/store.jks"
    with pytest.raises(OptionError, match=r"ssl\.truststore\.location"):
        source_options(given, streaming=False).client.client_security()
