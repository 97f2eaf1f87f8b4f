"""The registry's log on a broker: created, checked, read, changed, and fenced."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.configs import ConfigResource, ResourceType
from barnabas.client.admin.offsets import OffsetSpec
from barnabas.client.admin.topics import NewTopic
from barnabas.client.cluster import Cluster
from barnabas.client.consumer import Consumer
from barnabas.client.core.address import Address, parse_bootstrap
from barnabas.client.core.errors import ClientError, ConnectError
from barnabas.client.core.topology import TopicPartition
from barnabas.client.core.transaction import Fenced
from barnabas.client.producer import Producer
from barnabas.registry.log.fenced_writer import TooLarge
from barnabas.registry.log.reader import LogReader, TopicReplaced
from barnabas.registry.log.schema_log import LogSettings, SchemaLog, StoreFailed, StoreTimedOut
from barnabas.registry.log.topic import TopicSettings, WrongTopic

from .numbers import Change, Numbers

PATIENCE_MS = 20_000.0


def anybody() -> None:
    """For `may_write`."""


def settings(topic: str, timeout_ms: float = PATIENCE_MS) -> LogSettings:
    return LogSettings(TopicSettings(topic), timeout_ms)


def on(broker: str, use: Callable[[Cluster], Awaitable[None]]) -> None:
    async def main() -> None:
        async with Cluster(parse_bootstrap(broker)) as cluster:
            await use(cluster)

    asyncio.run(main())


async def started(cluster: Cluster, topic: str) -> tuple[SchemaLog, Numbers]:
    numbers = Numbers()
    found = SchemaLog(cluster, settings(topic), numbers)
    await found.start()
    return found, numbers


def test_the_topic_is_created_compacted_with_one_partition(broker: str, topic: str) -> None:
    async def use(cluster: Cluster) -> None:
        log, _ = await started(cluster, topic)
        resource = ConfigResource(ResourceType.TOPIC, topic)
        entries = (await Admin(cluster).describe_configs([resource]))[resource]
        assert {each.name: each.value for each in entries}["cleanup.policy"] == "compact"
        assert (await cluster.topics([topic]))[topic].partition_count == 1
        assert log.why_not_ready() is None
        await log.stop()

    on(broker, use)


@pytest.mark.parametrize(
    ("partitions", "policy", "words"),
    [
        (2, "compact", "2 partitions"),
        (1, "delete", "cleanup.policy=delete"),
        (1, "compact,delete", "deletes"),
    ],
)
def test_a_topic_that_could_lose_schemas_is_refused(
    broker: str, topic: str, partitions: int, policy: str, words: str
) -> None:
    async def use(cluster: Cluster) -> None:
        await Admin(cluster).create_topic(NewTopic(topic, partitions, 1, configs={"cleanup.policy": policy}))
        with pytest.raises(WrongTopic, match=words):
            await started(cluster, topic)

    on(broker, use)


def test_changes_are_applied_when_they_are_answered_and_read_by_others(broker: str, topic: str) -> None:
    async def use(cluster: Cluster) -> None:
        log, numbers = await started(cluster, topic)
        answers = await asyncio.gather(*(log.change(numbers.adds(b"k"), anybody) for _ in range(20)))
        assert sorted(answers) == list(range(1, 21))
        assert numbers.seen == [b"%d" % each for each in range(1, 21)]
        other, theirs = await started(cluster, topic)
        assert theirs.seen == numbers.seen
        await log.change(numbers.adds(b"k"), anybody)
        await other.catch_up()
        assert theirs.seen == numbers.seen
        assert numbers.keys[0] == b'{"keytype":"NOOP","magic":0}'
        await log.stop()
        await other.stop()

    on(broker, use)


def test_records_of_others_are_applied_before_those_that_this_node_writes_behind_them(
    broker: str, topic: str
) -> None:
    async def use(cluster: Cluster) -> None:
        log, numbers = await started(cluster, topic)
        await log.change(numbers.adds(b"k"), anybody)
        for number in range(10):
            async with Producer(cluster) as producer:
                await producer.send(topic, b"foreign %d" % number, b"f", partition=0)
            await log.change(numbers.adds(b"k"), anybody)
        foreign = [value for value in numbers.seen if value.startswith(b"foreign")]
        assert foreign == [b"foreign %d" % number for number in range(10)]
        assert len(numbers.seen) == len(set(numbers.keys)) - 2 + len(foreign) == 21, "each once"
        other, theirs = await started(cluster, topic)
        assert theirs.seen == numbers.seen, "in the order of the log"
        await log.stop()
        await other.stop()

    on(broker, use)


def test_a_decision_that_fails_stores_nothing(broker: str, topic: str) -> None:
    async def use(cluster: Cluster) -> None:
        log, numbers = await started(cluster, topic)

        async def refuse() -> Change:
            raise ValueError("no")

        with pytest.raises(ValueError):
            await log.change(refuse, anybody)

        def nobody() -> None:
            raise PermissionError

        with pytest.raises(PermissionError):
            await log.change(numbers.adds(b"k"), nobody)
        assert await log.change(numbers.adds(b"k"), anybody) == 1
        await log.stop()

    on(broker, use)


def test_records_that_are_too_large_are_refused_and_the_next_ones_are_not(broker: str, topic: str) -> None:
    async def use(cluster: Cluster) -> None:
        await Admin(cluster).create_topic(
            NewTopic(topic, 1, 1, configs={"cleanup.policy": "compact", "max.message.bytes": "1000"})
        )
        log, numbers = await started(cluster, topic)

        async def large() -> Change:
            return Change([(b"k", b"x" * 2000)], 0)

        with pytest.raises(TooLarge):
            await log.change(large, anybody)
        assert await log.change(numbers.adds(b"k"), anybody) == 1
        await log.stop()

    on(broker, use)


def test_a_writer_is_fenced_by_the_next_one(broker: str, topic: str) -> None:
    async def use(cluster: Cluster) -> None:
        old, theirs = await started(cluster, topic)
        assert await old.change(theirs.adds(b"old"), anybody) == 1
        new, ours = await started(cluster, topic)
        assert await new.change(ours.adds(b"new"), anybody) == 2
        with pytest.raises(Fenced):
            await old.change(theirs.adds(b"old"), anybody)
        await old.catch_up()
        assert theirs.seen == ours.seen == [b"1", b"2"]
        # It may come back, and then fences the other one.
        assert await old.change(theirs.adds(b"old"), anybody) == 3
        with pytest.raises(Fenced):
            await new.change(ours.adds(b"new"), anybody)
        await old.stop()
        await new.stop()

    on(broker, use)


def test_a_batch_that_was_decided_before_the_takeover_is_not_written_behind_it(
    broker: str, topic: str
) -> None:
    async def use(cluster: Cluster) -> None:
        old, theirs = await started(cluster, topic)
        await old.change(theirs.adds(b"old"), anybody)
        new, ours = await started(cluster, topic)
        decided, resumed = asyncio.Event(), asyncio.Event()

        async def paused() -> Change:
            change = await theirs.adds(b"old")()
            decided.set()
            await resumed.wait()
            return change

        late = asyncio.create_task(old.change(paused, anybody))
        await decided.wait()
        assert await new.change(ours.adds(b"new"), anybody) == 2
        resumed.set()
        with pytest.raises(Fenced):
            await late
        assert await new.change(ours.adds(b"new"), anybody) == 3
        assert ours.seen == [b"1", b"2", b"3"]
        await old.stop()
        await new.stop()

    on(broker, use)


def test_all_consumers_read_the_records_and_there_are_no_markers(broker: str, topic: str) -> None:
    async def use(cluster: Cluster) -> None:
        for name in (b"a", b"b"):
            log, numbers = await started(cluster, topic)
            await log.change(numbers.adds(name), anybody)
            await log.stop()
        consumer = Consumer(cluster)
        place = TopicPartition(topic, 0)
        await consumer.assign_at([place], OffsetSpec.EARLIEST)
        records = []
        async with asyncio.timeout(20):
            while len(records) < 4:
                records += await consumer.poll(500)
        await consumer.close()
        assert [record.offset for record in records] == [0, 1, 2, 3]

    on(broker, use)


def test_a_topic_that_was_created_anew_is_noticed(broker: str, topic: str) -> None:
    async def use(cluster: Cluster) -> None:
        log, numbers = await started(cluster, topic)
        await log.change(numbers.adds(b"k"), anybody)
        await Admin(cluster).delete_topics([topic])
        async with asyncio.timeout(30):
            while log.why_not_ready() is None:
                try:
                    await Admin(cluster).create_topic(NewTopic(topic, 1, 1))
                except Exception:
                    await asyncio.sleep(0.1)
                await asyncio.sleep(0.05)
        assert isinstance(log.reader.failure, TopicReplaced)
        with pytest.raises(StoreFailed, match="restart the service"):
            await log.catch_up()
        await log.stop()

    on(broker, use)


def test_a_topic_that_is_not_read_in_time_names_the_setting(
    broker: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def slow(self: LogReader) -> None:
        await asyncio.sleep(60)

    monkeypatch.setattr(LogReader, "start", slow)

    async def use(cluster: Cluster) -> None:
        log = SchemaLog(cluster, LogSettings(TopicSettings(topic), init_timeout_ms=1_000), Numbers())
        with pytest.raises(ClientError, match="=1000, and not to its end"):
            await log.start()
        await log.stop()

    on(broker, use)


def test_a_log_without_brokers_fails_in_time_and_goes_on_when_they_are_back(broker: str, topic: str) -> None:
    async def main() -> None:
        async with Cluster(parse_bootstrap(broker)) as cluster:
            numbers = Numbers()
            log = SchemaLog(cluster, settings(topic, 500), numbers)
            await log.start()
            connect = cluster.network.connect

            async def refused(address: Address, *_: object) -> None:
                raise ConnectError(address, "connection refused")

            await cluster.close()
            cluster.network.connect = refused  # type: ignore[method-assign, assignment]
            results = await asyncio.gather(
                *(log.change(numbers.adds(b"k"), anybody) for _ in range(5)), return_exceptions=True
            )
            assert all(isinstance(each, StoreFailed | StoreTimedOut) for each in results), results
            cluster.network.connect = connect  # type: ignore[method-assign]
            async with asyncio.timeout(20):
                while True:
                    try:
                        assert await log.change(numbers.adds(b"k"), anybody) == 1
                        break
                    except (StoreFailed, StoreTimedOut):
                        continue
            await log.stop()

    asyncio.run(main())
