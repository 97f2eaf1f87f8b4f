"""Metrics of a worker under Kafka's names, and what its tasks tell."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.connect.api.metrics import worker_metrics
from barnabas.connect.herder.herder import Herder
from barnabas.services.errors import ApiError
from barnabas.testing.broker import Broker
from barnabas.testing.plugin import barnabas_broker, barnabas_topic
from connect.fakes import QuietPlugins
from connect.tasks.parts import MODULE, States, runner, seen, until
from connect.tasks.test_loops import write

__all__ = ["barnabas_broker", "barnabas_topic"]


def value_of(text: str, sample: str) -> float:
    return float(text.split(f"\n{sample} ", 1)[1].split("\n", 1)[0])


def test_a_sink_that_fails_is_measured_with_the_place_of_its_record(
    barnabas_broker: Broker, barnabas_topic: str, tmp_path: Path
) -> None:
    tasks = runner(barnabas_broker.bootstrap, tmp_path)
    metrics = worker_metrics("connect", Herder({}, "me:1", QuietPlugins(), tasks), tasks)
    write(barnabas_broker.bootstrap, barnabas_topic, "one", "two")
    states = States()
    config = {"connector.class": f"{MODULE}:Recording", "topics": barnabas_topic}
    tasks.start("measured", 0, config, "STARTED", states)
    until(lambda: tasks.progress()[0].commits > 0)
    seen("measured")["put fails"] = True
    write(barnabas_broker.bootstrap, barnabas_topic, "three")
    until(lambda: states.last == "FAILED")
    text = metrics.text().decode()
    place = '{connector="measured",task="0"}'
    assert f"kafka_connect_sink_task_metrics_sink_record_send_total{place} 2.0" in text
    assert f"kafka_connect_sink_task_metrics_partition_count{place} 1.0" in text
    assert (
        'kafka_connect_connector_task_metrics_status{connector="measured",status="failed",task="0"} 1.0'
        in text
    )
    assert "kafka_connect_connect_worker_metrics_task_count 1.0" in text
    assert 'connector_failed_task_count{connector="measured"} 1.0' in text
    assert f"kafka_connect_task_error_metrics_last_error_timestamp{place} 0.0" not in text
    strimzi = metrics.text({"dialect": "strimzi"}).decode()
    for sample in (
        'kafka_connect_connector_task_status{connector="measured",status="failed",task="0"} 1.0',
        f"kafka_connect_sink_task_sink_record_send_total{place} 2.0",
        f"kafka_connect_task_error_total_record_failures{place} 1.0",
        "kafka_connect_worker_task_count 1.0",
        'kafka_connect_worker_connector_failed_task_count{connector="measured"} 1.0',
    ):
        assert sample in strimzi
    reader = 'clientid="connector-consumer-measured-0"'
    assert value_of(strimzi, f"kafka_consumer_incoming_byte_total{{{reader}}}") > 0
    reader = 'client_id="connector-consumer-measured-0"'
    assert value_of(text, f"kafka_consumer_consumer_metrics_request_total{{{reader}}}") > 0
    assert "process_cpu_seconds_total " in text
    with pytest.raises(ApiError, match="known: confluent, strimzi"):
        metrics.text({"dialect": "jmx"})
    told = tasks.progress()[0].as_dict()
    assert (told["last_error"]["topic"], told["last_error"]["offset"]) == (barnabas_topic, 2)
    assert f"put failed on {barnabas_topic}-0 offset 2: no space" in states.trace
    tasks.stop_all()
