"""Logins step by step: every order of messages gets what Apache Kafka gives.

`data/login_answers.json` has Apache Kafka's answers; BARNABAS_REWRITE=1 asks it anew (long lane).
"""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.broker.test_garbage import alive
from tests.security.login_scripts import CLOSED, SCRIPTS, SESSION_MS, play
from tests.security.sasl_broker import SASL_SETTINGS, SCRAM, USERS, add_scram_user

from barnabas.broker.wire.login import Login
from barnabas.security.sasl.server_login import ServerLogin
from barnabas.testing.broker import Broker
from barnabas.testing.waiting import wait_until

RECORDED = Path(__file__).parent / "data" / "login_answers.json"
SETTINGS = {
    **SASL_SETTINGS,
    "listener.name.plaintext.plain.connections.max.reauth.ms": str(SESSION_MS),
    "listener.name.plaintext.scram-sha-256.sasl.jaas.config": f"{SCRAM} required;",
    "listener.name.plaintext.scram-sha-512.sasl.jaas.config": f"{SCRAM} required;",
    "connection.failed.authentication.delay.ms": "20",
}
CREDENTIAL = f"SCRAM-SHA-512=[name=alice,password={USERS['alice']}]"

# Apache Kafka closes these without a word. We tell the client why: the end of the conversation.
DELIBERATE: dict[str, list[Any]] = {
    "again, a mechanism that is not enabled": [
        {"error": 33, "mechanisms": ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]}
    ],
    "again, another mechanism": [
        {
            "error": 58,
            "message": "SASL mechanism 'SCRAM-SHA-512' requested by client is not supported for "
            "re-authentication of mechanism 'PLAIN'",
            "bytes": "",
            "has_limit": False,
        }
    ],
}


def play_all(port: int) -> dict[str, list[Any]]:
    with ThreadPoolExecutor(16) as threads:
        return dict(zip(SCRIPTS, threads.map(lambda name: play(port, name), SCRIPTS), strict=True))


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(overrides=SETTINGS) as broker:
        add_scram_user(broker, "alice", USERS["alice"], "SCRAM-SHA-512")
        yield broker


@pytest.fixture(scope="module")
def ours(broker: Broker) -> dict[str, list[Any]]:
    return play_all(broker.port)


@pytest.fixture(scope="module")
def recorded() -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = json.loads(RECORDED.read_text())
    return found


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_order_of_messages_gets_the_answers_of_apache_kafka(
    name: str, ours: dict[str, list[Any]], recorded: dict[str, list[Any]]
) -> None:
    expected = recorded[name]
    if name in DELIBERATE:
        assert expected[-1] == CLOSED
        expected = [*expected[:-1], *DELIBERATE[name], CLOSED]
    assert ours[name] == expected


def test_logins_leave_nothing_for_the_garbage_collector(broker: Broker) -> None:
    gc.collect()
    gc.disable()
    try:
        before = alive(broker, Login, ServerLogin)
        for name in (
            "plain",
            "scram",
            "plain, wrong",
            "scram, wrong",
            "metadata first",
            "again",
            "again, wrong",
        ):
            play(broker.port, name)
        wait_until(lambda: alive(broker, Login, ServerLogin) <= before)
    finally:
        gc.enable()


@pytest.mark.long
def test_the_recorded_answers_are_those_of_apache_kafka() -> None:
    from barnabas.testing.apache import ApacheKafka, available

    if available():
        pytest.skip(str(available()))
    node = ApacheKafka(overrides=SETTINGS, format_arguments=("--add-scram", CREDENTIAL))
    try:
        node.start()
        found = play_all(node.port)
    finally:
        node.close()
    if os.environ.get("BARNABAS_REWRITE"):
        RECORDED.parent.mkdir(exist_ok=True)
        lines = [f"{json.dumps(name)}: {json.dumps(each)}" for name, each in found.items()]
        RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}" + "\n")
    assert found == json.loads(RECORDED.read_text())
    assert any(CLOSED in outcomes for outcomes in found.values())
