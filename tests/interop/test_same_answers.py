"""The same requests to both brokers: our answers are those of Apache Kafka 4.3.1.

Apache Kafka's answers are recorded, so that the comparison also runs where Java is missing; where it is
there, the recordings are checked against it first. `--record` writes them anew.
"""

from __future__ import annotations

import pytest

from barnabas.testing.apache import ApacheKafka

from .comparing import converse, differences, record, recorded
from .scenarios import everything

NAMES = sorted(everything())


@pytest.mark.java
@pytest.mark.parametrize("name", NAMES)
def test_apache_kafka_still_answers_as_recorded(
    request: pytest.FixtureRequest, apache_kafka: ApacheKafka, name: str
) -> None:
    answers = converse(apache_kafka.port, name)
    if request.config.getoption("--record"):
        record(name, answers)
    assert not (found := differences(name, recorded(name), answers)), found


@pytest.mark.parametrize("name", NAMES)
def test_we_answer_as_apache_kafka_does(our_port: int, name: str) -> None:
    assert not (found := differences(name, recorded(name), converse(our_port, name))), found
