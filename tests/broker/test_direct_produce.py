"""Produce requests by the direct way and by the ordinary one: the same responses, the same logs."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from barnabas.broker.produce.produce_parts import PARTITIONS_AT_ONCE_MAX
from barnabas.protocol import NULL_UUID, ErrorCode, apis
from barnabas.protocol.headers import RequestHeader
from barnabas.protocol.messages.produce import ProduceRequest, ProduceResponse
from barnabas.protocol.produce_layout import BATCHES_MAX
from barnabas.records.record import Record, build_batch

from .produce_worlds import ALL_VERSIONS, FOLLOWED, NOW_MS, STAMPED, TOPICS, World

PRODUCE = 0
Data = ProduceRequest.TopicProduceData
Given = tuple[str, list[tuple[int, bytes]]]


class Pair:
    """The same done to a broker with the direct way and to one without."""

    def __init__(self) -> None:
        self.direct = World(is_direct=True)
        self.ordinary = World(is_direct=False)
        self.correlation_id = 0
        self.sent = 0

    def both(self, do: Callable[[World], None]) -> bytes:
        """Out: the bytes sent to the client."""
        for world in (self.direct, self.ordinary):
            do(world)
            world.settle()
        sent = self.direct.take_sent()
        assert sent == self.ordinary.take_sent()
        assert self.direct.counts() == self.ordinary.counts()
        return sent[0]

    def send(self, *frames: bytes) -> bytes:
        self.sent += len(frames)
        return self.both(lambda world: world.send(b"".join(frames)))

    def frame(
        self,
        version: int,
        *topics: Given,
        acks: int = 1,
        client_id: str = "client",
        transactional_id: str | None = None,
    ) -> bytes:
        self.correlation_id += 1
        request = ProduceRequest(
            acks=acks,
            timeout_ms=1500,
            transactional_id=transactional_id,
            topic_data=[
                Data(
                    name=name if version < 13 else "",
                    topic_id=self.topic_id(name) if version >= 13 else NULL_UUID,
                    partition_data=[
                        Data.PartitionProduceData(index=index, records=records) for index, records in batches
                    ],
                )
                for name, batches in topics
            ],
        )
        header = RequestHeader(
            request_api_key=PRODUCE,
            request_api_version=version,
            correlation_id=self.correlation_id,
            client_id=client_id,
        )
        body = header.encode(apis.request_header_version(PRODUCE, version)) + request.encode(version)
        return len(body).to_bytes(4, "big") + body

    def topic_id(self, name: str) -> bytes:
        found = self.direct.partition(name, 0)
        return found.topic_id if found is not None else b"?" * 16

    def compare_logs(self) -> None:
        self.both(lambda world: world.tick.close())
        assert self.direct.content() == self.ordinary.content()

    @property
    def directly(self) -> int:
        """How many requests did not become messages."""
        return self.ordinary.router.decoded - self.direct.router.decoded


def batch(
    *values: bytes, producer_id: int = -1, epoch: int = -1, sequence: int = -1, is_transactional: bool = False
) -> bytes:
    records = [Record(offset=index, timestamp=NOW_MS, value=value) for index, value in enumerate(values)]
    built = build_batch(
        records,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=is_transactional,
    )
    return bytes(built)


def responses(sent: bytes, version: int) -> list[ProduceResponse]:
    found = []
    while sent:
        size = int.from_bytes(sent[:4], "big")
        start = 4 + (5 if apis.response_header_version(PRODUCE, version) else 4)
        found.append(ProduceResponse.decode(sent[start : 4 + size], version))
        sent = sent[4 + size :]
    return found


def errors(sent: bytes, version: int) -> list[int]:
    return [
        answer.error_code
        for response in responses(sent, version)
        for topic in response.responses
        for answer in topic.partition_responses
    ]


@pytest.fixture
def pair() -> Pair:
    return Pair()


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_requests_of_every_version_take_the_direct_way(pair: Pair, version: int) -> None:
    one = ("events", [(0, batch(b"x"))])
    five = ("events", [(index, batch(b"x", b"y")) for index in (2, 0, 1)])
    for _ in range(3):
        assert errors(pair.send(pair.frame(version, one), pair.frame(version, five)), version) == [0] * 4
    pair.send(pair.frame(version, one, five))
    pair.send(pair.frame(version, one, acks=0), pair.frame(version, one))
    pair.compare_logs()
    assert pair.directly == pair.sent


@pytest.mark.parametrize("version", [7, 12])
def test_transactions_take_the_direct_way(pair: Pair, version: int) -> None:
    def of(sequence: int) -> bytes:
        return batch(b"x", producer_id=7, epoch=0, sequence=sequence, is_transactional=True)

    for index in range(3):
        pair.send(pair.frame(version, ("events", [(index, of(0))]), transactional_id="tx"))
    pair.send(pair.frame(version, ("events", [(0, of(1)), (1, of(1))]), transactional_id="tx"))
    assert pair.directly == pair.sent
    # Without the name of a transaction, a request is refused as a whole: nothing of it is appended.
    other = batch(b"x")
    sent = pair.send(pair.frame(version, ("events", [(0, other), (1, of(2))])))
    assert errors(sent, version) == [ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED] * 2
    pair.compare_logs()


def test_batches_of_several_producers_are_no_transaction(pair: Pair) -> None:
    def of(producer_id: int, sequence: int) -> bytes:
        return batch(b"x", producer_id=producer_id, epoch=0, sequence=sequence, is_transactional=True)

    for index, producer_id in ((0, 7), (1, 9)):
        pair.send(pair.frame(12, ("events", [(index, of(producer_id, 0))]), transactional_id="tx"))
    sent = pair.send(pair.frame(12, ("events", [(0, of(7, 1)), (1, of(9, 1))]), transactional_id="tx"))
    assert errors(sent, 12) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 2
    pair.compare_logs()


def test_a_batch_with_log_append_time_is_refused_for_its_sequence_on_both_paths(pair: Pair) -> None:
    """The time of the broker is in it before its sequence number is found to be wrong."""
    for sequence, expected in ((0, 0), (1, 0), (5, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)):
        given = batch(b"x", producer_id=7, epoch=0, sequence=sequence)
        assert errors(pair.send(pair.frame(12, (STAMPED, [(0, given)]))), 12) == [expected]
    pair.compare_logs()


def test_batches_before_a_refused_one_are_appended_once(pair: Pair) -> None:
    def of(sequence: int) -> bytes:
        return batch(b"x", producer_id=7, epoch=0, sequence=sequence)

    pair.send(pair.frame(12, ("events", [(0, of(0)), (1, of(0)), (2, of(0))])))
    sent = pair.send(pair.frame(12, ("events", [(0, of(1)), (1, of(5)), (2, of(1))])))
    assert errors(sent, 12) == [0, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 0]
    # What is left of it must not be taken for a part of the next request.
    sent = pair.send(pair.frame(12, ("events", [(0, of(2)), (1, of(1)), (2, of(2))])))
    assert errors(sent, 12) == [0, 0, 0]
    pair.compare_logs()


@pytest.mark.parametrize("version", [7, 12, 13])
def test_a_topic_that_is_deleted_and_made_again_gets_its_own_records(pair: Pair, version: int) -> None:
    pair.send(*[pair.frame(version, ("events", [(0, batch(b"old"))])) for _ in range(3)])
    pair.both(lambda world: world.delete("events"))
    expected = ErrorCode.UNKNOWN_TOPIC_ID if version >= 13 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert errors(pair.send(pair.frame(version, ("events", [(0, batch(b"lost"))]))), version) == [expected]
    pair.both(lambda world: world.create("events"))
    sent = pair.send(pair.frame(version, ("events", [(0, batch(b"new"))])))
    assert responses(sent, version)[0].responses[0].partition_responses[0].base_offset == 0
    pair.compare_logs()


@pytest.mark.parametrize("version", [3, 7, 12])
def test_a_failed_write_is_a_storage_error_on_both_produce_paths(pair: Pair, version: int) -> None:
    one = ("events", [(0, batch(b"x"))])
    two = ("events", [(0, batch(b"x")), (1, batch(b"y"))])
    pair.send(pair.frame(version, one), pair.frame(version, two))
    pair.both(lambda world: world.fail_writes("/events.1-0"))
    sent = pair.send(pair.frame(version, one), pair.frame(version, two), pair.frame(version, one, acks=-1))
    storage = ErrorCode.KAFKA_STORAGE_ERROR
    assert errors(sent, version) == [storage, storage, 0, storage]


@pytest.mark.parametrize("version", [7, 12])
def test_acks_all_waits_for_the_follower(pair: Pair, version: int) -> None:
    one = pair.frame(version, ("events", [(FOLLOWED, batch(b"x"))]), acks=-1)
    several = pair.frame(version, ("events", [(0, batch(b"x")), (FOLLOWED, batch(b"y"))]), acks=-1)
    behind = pair.frame(version, ("events", [(0, batch(b"z"))]))
    assert pair.send(one, several, behind) == b""
    followed = [world.partition("events", FOLLOWED) for world in (pair.direct, pair.ordinary)]
    sent = pair.both(lambda world: world.follow(followed[world is pair.ordinary]))  # type: ignore[arg-type]
    assert errors(sent, version) == [0, 0, 0, 0]
    assert pair.send(one, several) == b""
    pair.both(lambda world: followed[world is pair.ordinary].become_follower(9))  # type: ignore[union-attr]
    pair.compare_logs()


@pytest.mark.parametrize("version", [7, 12])
def test_acks_all_gives_up_after_its_timeout(pair: Pair, version: int) -> None:
    one = pair.frame(version, ("events", [(FOLLOWED, batch(b"x"))]), acks=-1)
    several = pair.frame(version, ("events", [(0, batch(b"x")), (FOLLOWED, batch(b"y"))]), acks=-1)
    assert pair.send(one, several, one) == b""
    sent = b"".join(pair.both(lambda world: world.wait(0.5)) for _ in range(8))
    late = ErrorCode.REQUEST_TIMED_OUT
    assert errors(sent, version) == [late, 0, late, late]


def test_a_guard_sees_every_request(pair: Pair) -> None:
    frames = [pair.frame(version, ("events", [(0, batch(b"x"))])) for version in (7, 12)]
    pair.send(*frames)
    pair.both(lambda world: world.guard(is_on=True))
    pair.send(*frames)
    assert pair.direct.guarded == 2
    pair.both(lambda world: world.guard(is_on=False))
    pair.send(*frames)
    assert pair.direct.guarded == 2


def test_internal_topics_are_refused_and_the_admin_client_is_not(pair: Pair) -> None:
    given = ("__internal", [(0, batch(b"x"))])
    refused = ErrorCode.INVALID_TOPIC_EXCEPTION
    for _ in range(2):
        assert errors(pair.send(pair.frame(7, given)), 7) == [refused]
        assert errors(pair.send(pair.frame(7, given, client_id="__admin_client")), 7) == [0]


def test_requests_that_are_appended_in_parts_are_left_to_the_handler() -> None:
    assert BATCHES_MAX <= PARTITIONS_AT_ONCE_MAX


# Random histories


class History:
    """Requests and misfortunes of a producer, by a seed."""

    def __init__(self, seed: int) -> None:
        self.pair = Pair()
        self.rng = random.Random(seed)
        self.sequences: dict[tuple[str, int, int], int] = {}
        self.is_failing = False

    def step(self) -> None:
        rng, pair = self.rng, self.pair
        kind = rng.random()
        if kind < 0.8:
            self.sequences.clear()
            pair.send(*[self.frame() for _ in range(rng.choice((1, 1, 2, 5)))])
        elif kind < 0.88:
            pair.both(lambda world: self.for_each(world, FOLLOWED, World.follow))
        elif kind < 0.90:
            pair.both(lambda world: world.wait(0.6))
        elif kind < 0.92:
            topic = rng.choice(("events", "stamped"))
            pair.both(lambda world: world.delete(topic))
            if rng.random() < 0.7:
                pair.send(self.frame())
            pair.both(lambda world: world.create(topic))
        elif kind < 0.94:
            index = rng.randrange(4)
            self.change_leader(index, is_leader=rng.random() < 0.5)
            pair.send(self.frame())
            self.change_leader(index, is_leader=True)
        elif kind < 0.96:
            is_on = rng.random() < 0.3
            pair.both(lambda world: world.guard(is_on=is_on))
        elif kind < 0.97:
            isr = rng.choice(((1,), (1, 2)))
            pair.both(lambda world: self.settle(world, isr))
        elif kind < 0.98:
            self.end_transactions()
        elif kind < 0.982 and not self.is_failing:
            self.is_failing = True
            prefix = f"/events.1-{rng.randrange(4)}"
            pair.both(lambda world: world.fail_writes(prefix))
        else:
            pair.compare_logs()

    def for_each(self, world: World, index: int, do: Callable[[World, object], None]) -> None:
        found = world.partition("events", index)
        if found is not None and found.is_leader:
            do(world, found)  # type: ignore[arg-type]

    def change_leader(self, index: int, *, is_leader: bool) -> None:
        def change(world: World) -> None:
            found = world.partition("events", index)
            if found is None:
                return
            if found.is_dirty:
                world.tick.close()
            replicas = (1, 2) if index == FOLLOWED else (1,)
            if is_leader:
                found.lead(found.leader_epoch + 1, replicas, replicas)
            else:
                found.become_follower(found.leader_epoch + 1)

        self.pair.both(change)

    def settle(self, world: World, isr: tuple[int, ...]) -> None:
        found = world.partition("events", FOLLOWED)
        if found is not None and found.is_leader:
            found.settle_isr(isr, found.leader_epoch, found.state.partition_epoch + 1)

    def end_transactions(self) -> None:
        def end(world: World) -> None:
            for index in range(3):
                found = world.partition("events", index)
                if found is not None and found.is_leader and not self.is_failing:
                    world.end_transaction(found, 9, 0)

        self.pair.both(end)

    def frame(self) -> bytes:
        rng = self.rng
        version = rng.choice((3, 5, 7, 7, 8, 9, 10, 12, 12, 13))
        is_transactional = rng.random() < 0.15
        topics = [self.topic(is_transactional) for _ in range(rng.choice((1, 1, 1, 1, 2, 3)))]
        frame = self.pair.frame(
            version,
            *topics,
            acks=rng.choices((1, -1, 0, 5), (60, 35, 4, 1))[0],
            client_id=rng.choice(("client", "client", "other", "__admin_client")),
            transactional_id="tx" if is_transactional != (rng.random() < 0.05) else None,
        )
        return self.damaged(frame) if rng.random() < 0.06 else frame

    def topic(self, is_transactional: bool) -> Given:
        rng = self.rng
        name = rng.choices(("events", "stamped", "nowhere", "__internal"), (88, 8, 2, 2))[0]
        known = TOPICS.get(name, 1) + (rng.random() < 0.03)
        indexes = rng.choices(range(known), k=rng.choice((1, 1, 1, 2, 4)))
        return name, [(index, self.batch(name, index, is_transactional)) for index in indexes]

    def batch(self, topic: str, index: int, is_transactional: bool) -> bytes:
        rng = self.rng
        values = [rng.randbytes(rng.choice((1, 10, 60, 200, 3000))) for _ in range(rng.choice((1, 1, 3)))]
        if not is_transactional and rng.random() < 0.5:
            built = bytearray(batch(*values))
        else:
            producer_id = 9 if is_transactional else 8
            sequence = self.next_sequence(topic, index, producer_id, len(values))
            if rng.random() < 0.05:  # a duplicate, or a gap
                sequence = max(0, sequence + rng.choice((-1, -2, 1)))
            built = bytearray(
                batch(
                    *values,
                    producer_id=producer_id,
                    epoch=0,
                    sequence=sequence,
                    is_transactional=is_transactional and rng.random() < 0.95,
                )
            )
        if rng.random() < 0.02:
            built[rng.randrange(len(built))] ^= 1
        return bytes(built)

    def next_sequence(self, topic: str, index: int, producer_id: int, count: int) -> int:
        """The next sequence of a producer that gets every response."""
        key = topic, index, producer_id
        if key not in self.sequences:
            partition = self.pair.direct.partition(topic, index)
            known = partition.log.producers.get(producer_id) if partition is not None else None
            self.sequences[key] = known.last_sequence + 1 if known is not None else 0
        self.sequences[key] += count
        return self.sequences[key] - count

    def damaged(self, frame: bytes) -> bytes:
        """A frame that begins like a good one."""
        rng = self.rng
        changed = bytearray(frame)
        if rng.random() < 0.5:
            changed[rng.randrange(12, min(len(changed), 60))] = rng.choice((0, 1, 2, 3, 127, 128, 255))
        elif rng.random() < 0.5:
            del changed[-rng.randrange(1, min(100, len(changed) - 20)) :]
        else:
            changed += bytes(rng.randrange(1, 4))
        changed[:4] = (len(changed) - 4).to_bytes(4, "big")
        return bytes(changed)


@pytest.mark.parametrize(
    "seed", [*range(8), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(8, 20))]
)
def test_both_produce_paths_respond_and_write_the_same(seed: int) -> None:
    history = History(seed)
    for _ in range(250):
        history.step()
    history.pair.compare_logs()
    assert history.pair.directly > 60
