"""Several listeners, and how many connections each takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest

from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.testing import Broker
from barnabas.testing.ports import free_ports
from barnabas.testing.waiting import wait_until

from .administration import BROKER, alter_configs, set_configs
from .conversation import Conversation

VERSION = 12
ASK = MetadataRequest(topics=[])
ME = "1"


class TwoListeners(Broker):
    """One for clients, advertised under another name, and one for brokers."""

    def __init__(self, **overrides: object) -> None:
        self.inner, self.extra = free_ports(2)
        super().__init__()
        own = {
            "listeners": f"OUTSIDE://127.0.0.1:{self.port},INSIDE://127.0.0.1:{self.inner},"
            f"CONTROLLER://127.0.0.1:{self._controller_port}",
            "advertised.listeners": f"OUTSIDE://localhost:{self.port},INSIDE://127.0.0.1:{self.inner}",
            "listener.security.protocol.map": "OUTSIDE:PLAINTEXT,INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT,"
            "EXTRA:PLAINTEXT",
            "inter.broker.listener.name": "INSIDE",
        }
        self._overrides = {**own, **{name: str(value) for name, value in overrides.items()}}


@pytest.fixture
def two() -> Iterator[TwoListeners]:
    with TwoListeners() as broker:
        yield broker


def answers(talk: Conversation) -> bool:
    talk.send((ASK, VERSION))
    with suppress(ConnectionError):
        talk.receive()
        return True
    return False


def stays_unanswered(talk: Conversation, other: Conversation) -> bool:
    """Whether a connection is not served while another one is."""
    talk.send((ASK, VERSION))
    for _ in range(20):
        other.ask(ASK, VERSION)
    return not talk.has_answer()


def test_metadata_has_the_address_of_the_listener_that_the_client_uses(two: TwoListeners) -> None:
    for port, host in ((two.port, "localhost"), (two.inner, "127.0.0.1")):
        with Conversation(two, port=port) as talk:
            [broker] = talk.ask(ASK, VERSION).brokers
            assert (broker.host, broker.port) == (host, port)


def test_a_new_connection_waits_while_its_listener_is_full(two: TwoListeners) -> None:
    alter_configs(two, "", BROKER, {"listener.name.outside.max.connections": "2"})
    with ExitStack() as stack:
        first, second = (stack.enter_context(Conversation(two)) for _ in range(2))
        assert answers(first) and answers(second)
        third = stack.enter_context(Conversation(two))
        assert stays_unanswered(third, second)
        first.__exit__(None, None, None)
        third.receive()


def test_a_full_broker_accepts_brokers_and_closes_the_connection_idle_longest(two: TwoListeners) -> None:
    with ExitStack() as stack:
        idle, busy = (stack.enter_context(Conversation(two)) for _ in range(2))
        assert answers(idle) and answers(busy)
        set_configs(two, max_connections="3")
        wait_until(lambda: answers(busy))
        peers = [stack.enter_context(Conversation(two, port=two.inner)) for _ in range(2)]
        assert all(answers(peer) for peer in peers)
        assert idle.is_closed()
        assert answers(busy)


def test_a_lowered_limit_lets_connections_go(broker: Broker) -> None:
    with Broker() as broker, ExitStack() as stack:
        talks = [stack.enter_context(Conversation(broker)) for _ in range(4)]
        for talk in talks:
            assert answers(talk)
        set_configs(broker, max_connections="2")
        assert talks[0].is_closed()
        assert answers(talks[-1])


def test_a_raised_limit_admits_waiting_connections() -> None:
    with Broker(overrides={"max.connections": 2}) as broker, ExitStack() as stack:
        first = stack.enter_context(Conversation(broker))
        assert answers(first)
        with Conversation(broker) as second:
            assert answers(second)
            third = stack.enter_context(Conversation(broker))
            assert stays_unanswered(third, first)
        third.receive()


def test_an_address_has_its_limit_and_its_exception(broker: Broker) -> None:
    set_configs(broker, max_connections_per_ip="500", max_connections_per_ip_overrides="127.0.0.31:1")
    try:
        with Conversation(broker, source="127.0.0.31") as first:
            assert answers(first)
            with Conversation(broker, source="127.0.0.31") as second:
                assert second.is_closed()
            with Conversation(broker, source="127.0.0.32") as other:
                assert answers(other)
    finally:
        set_configs(broker, max_connections_per_ip=None, max_connections_per_ip_overrides=None)


def test_connections_beyond_the_rate_wait_for_their_turn() -> None:
    with Broker() as broker, ExitStack() as stack:
        first = stack.enter_context(Conversation(broker))
        alter_configs(broker, "", BROKER, {"listener.name.plaintext.max.connection.creation.rate": "1"})
        talks = [stack.enter_context(Conversation(broker)) for _ in range(13)]
        assert stays_unanswered(talks[-1], first)
        talks[-1].receive()


def test_a_listener_opens_and_closes_while_the_broker_runs(two: TwoListeners) -> None:
    listeners = two.properties["listeners"]
    set_configs(two, ME, listeners=f"{listeners},EXTRA://127.0.0.1:{two.extra}")

    def is_open() -> bool:
        with suppress(OSError), Conversation(two, port=two.extra) as talk:
            return answers(talk)
        return False

    wait_until(is_open)
    with Conversation(two, port=two.extra) as talk:
        assert answers(talk)
        set_configs(two, ME, listeners=None)
        assert talk.is_closed()
    wait_until(lambda: not is_open())
    with Conversation(two) as talk:
        assert answers(talk)


def test_a_listener_that_was_added_is_there_after_a_restart(tmp_path_factory: pytest.TempPathFactory) -> None:
    with TwoListeners() as broker:
        set_configs(
            broker, ME, listeners=f"{broker.properties['listeners']},EXTRA://127.0.0.1:{broker.extra}"
        )
        broker.stop()
        broker.start()
        with Conversation(broker, port=broker.extra) as talk:
            assert answers(talk)
