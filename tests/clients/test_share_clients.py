"""Share consumers of Java, librdkafka and franz-go on a broker: acknowledgements, several members."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from .conftest import NewTopicName, Served
from .share_clients import Clients, Failed, Got, Member, remove_built

PATIENCE_S = 60.0
POLL_MS = 500
LONG_JAVA = pytest.param("java", marks=(pytest.mark.java, pytest.mark.long))
FRANZ_GO = pytest.param("franz-go", marks=(pytest.mark.long, pytest.mark.timeout(600)))  # it is compiled
KINDS = ["librdkafka", LONG_JAVA, FRANZ_GO]
KINDS_WITH_JAVA = ["librdkafka", pytest.param("java", marks=pytest.mark.java), FRANZ_GO]


@pytest.fixture(scope="module", autouse=True)
def programs() -> Iterator[None]:
    yield
    remove_built()


@pytest.fixture
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def topic(broker: Served, new_topic: NewTopicName) -> str:
    """A topic with three partitions; the share group of its name begins with the first record."""
    name = new_topic(3)
    entry = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    group = ConfigResource(ResourceType.GROUP, name, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.incremental_alter_configs([group])[group].result(PATIENCE_S)
    return name


@pytest.fixture
def clients(kind: str, broker: Served, topic: str) -> Iterator[Clients]:
    with Clients(kind, broker.bootstrap, topic, topic) as found:
        yield found


def produce(broker: Served, topic: str, count: int, first: int = 0) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(first, first + count):
        producer.produce(topic, str(number).encode(), partition=number % 3)
    assert producer.flush(PATIENCE_S) == 0


def read(count: int, *members: Member, kind: str | None = None) -> dict[Member, list[Got]]:
    """Poll members in turn until they have so many records; `kind` acknowledges each of them."""
    found: dict[Member, list[Got]] = {member: [] for member in members}
    deadline = time.monotonic() + PATIENCE_S
    while sum(map(len, found.values())) < count:
        for member, records in found.items():
            polled = member.poll(POLL_MS)
            records += polled
            for got in polled if kind is not None else ():
                assert kind is not None
                member.acknowledge(got, kind)
        assert time.monotonic() < deadline, f"{sum(map(len, found.values()))} of {count} records came"
    return found


def numbers(records: list[Got]) -> list[int]:
    return sorted(int(got.value) for got in records)


@pytest.mark.parametrize("kind", KINDS, indirect=True)
def test_implicit_acknowledgements(broker: Served, topic: str, clients: Clients) -> None:
    produce(broker, topic, 90)
    ann = clients.open("ann")
    assert numbers(read(90, ann)[ann]) == list(range(90))
    assert ann.poll(100) == []
    assert ann.commit() == []
    ann.close()
    bob = clients.open("bob")
    produce(broker, topic, 3, first=90)
    [records] = read(3, bob).values()
    assert numbers(records) == [90, 91, 92]
    assert {got.delivery_count for got in records} == {1}


@pytest.mark.parametrize("kind", KINDS_WITH_JAVA, indirect=True)
def test_records_are_released_and_rejected(broker: Served, topic: str, clients: Clients) -> None:
    produce(broker, topic, 30)
    ann = clients.open("ann", explicit=True)
    first: list[Got] = []
    deadline = time.monotonic() + PATIENCE_S
    while len({got.value for got in first}) < 30 or len(first) < 40:
        for got in ann.poll(POLL_MS):
            first.append(got)
            number = int(got.value)
            is_second = got.delivery_count > 1
            ann.acknowledge(
                got, "REJECT" if number >= 20 else "RELEASE" if number < 10 and not is_second else "ACCEPT"
            )
        assert time.monotonic() < deadline, sorted(first)
    assert ann.commit() == []
    assert ann.poll(POLL_MS) == []
    again = sorted(int(got.value) for got in first if got.delivery_count == 2)
    assert again == list(range(10))


@pytest.mark.parametrize("kind", KINDS, indirect=True)
def test_members_share_partitions(broker: Served, topic: str, clients: Clients) -> None:
    produce(broker, topic, 300)
    members = [clients.open(name, records_max=10) for name in ("ann", "bob", "cid")]
    found = read(300, *members)
    assert numbers([got for records in found.values() for got in records]) == list(range(300))
    for member in members:
        member.commit()
        member.close()


@pytest.mark.parametrize("kind", KINDS, indirect=True)
def test_records_of_a_member_that_closed_come_again(broker: Served, topic: str, clients: Clients) -> None:
    produce(broker, topic, 9)
    ann = clients.open("ann", explicit=True)
    records = read(1, ann)[ann]
    for got in records[1:]:
        ann.acknowledge(got, "ACCEPT")
    ann.acknowledge(records[0], "RELEASE")
    ann.close()
    bob = clients.open("bob")
    rest = read(9 - len(records) + 1, bob)[bob]
    assert numbers(rest + records[1:]) == list(range(9))


@pytest.mark.java
@pytest.mark.long
def test_java_must_acknowledge_everything(broker: Served, topic: str) -> None:
    produce(broker, topic, 3)
    with Clients("java", broker.bootstrap, topic, topic) as clients:
        ann = clients.open("ann", explicit=True)
        read(1, ann)
        with pytest.raises(Failed, match="IllegalStateException All records must be acknowledged"):
            ann.poll(POLL_MS)


@pytest.mark.java
def test_java_renews(broker: Served, topic: str) -> None:
    produce(broker, topic, 1)
    with Clients("java", broker.bootstrap, topic, topic) as clients:
        ann = clients.open("ann", explicit=True)
        [got] = read(1, ann)[ann]
        for _ in range(2):
            ann.acknowledge(got, "RENEW")
            assert ann.commit() == []
            renewed = read(1, ann)[ann]
            assert [(each.offset, each.delivery_count) for each in renewed] == [(got.offset, 1)]
        ann.acknowledge(got, "ACCEPT")
        assert ann.commit() == []


@pytest.mark.java
@pytest.mark.long
def test_records_of_a_killed_member_come_again(broker: Served, topic: str) -> None:
    produce(broker, topic, 30)
    with (
        Clients("java", broker.bootstrap, topic, topic) as lost,
        Clients("java", broker.bootstrap, topic, topic) as others,
    ):
        ann = lost.open("ann", explicit=True)
        held = read(1, ann)[ann]
        lost.kill()
        bob = others.open("bob")
        records = read(30, bob)[bob]
        assert numbers(records) == list(range(30))
        counts = {got.value: got.delivery_count for got in records}
        assert {counts[got.value] for got in held} == {2}
