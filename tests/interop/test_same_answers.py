"""The same requests to both brokers: our answers are those of Apache Kafka 4.3.1.

Apache Kafka's answers are recorded, so that the comparison also runs where Java is missing; where it is
there, the recordings are checked against it first. `--record` writes them anew.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import pytest

from barnabas.protocol import ApiKey

from .comparing import Conversations, Ports, converse, differences, record, recorded
from .requests import produce, versions
from .scenarios import everything
from .talk import Talk

NAMES = sorted(everything())


@pytest.mark.java
@pytest.mark.recorded("producing.every_version_takes_records")
@pytest.mark.parametrize("name", NAMES)
def test_apache_kafka_still_answers_as_recorded(
    request: pytest.FixtureRequest,
    apache_port: Callable[[str], int],
    our_answers: Conversations,
    name: str,
) -> None:
    port = apache_port(name)
    our_answers.begin(name)  # looked at below
    answers = converse(port, name)
    if request.config.getoption("--record"):
        record(name, answers)
    assert not (found := differences(name, recorded(name), answers)), found


@pytest.mark.parametrize("name", NAMES)
def test_we_answer_as_apache_kafka_does(our_answers: Conversations, name: str) -> None:
    answers = our_answers.transcript(name)
    assert not (found := differences(name, recorded(name), answers)), found


def test_a_batch_that_is_null_gets_an_answer(our_ports: Ports) -> None:
    """Apache Kafka says nothing at all to this one."""
    with closing(Talk(our_ports.broker, "null-batch")) as talk:
        name = talk.topic()
        for version in versions(ApiKey.PRODUCE):
            answer = talk.silently(ApiKey.PRODUCE, version, **produce(talk, name, None))
            assert answer["responses"][0]["partition_responses"][0]["error_code"] == "INVALID_RECORD"
