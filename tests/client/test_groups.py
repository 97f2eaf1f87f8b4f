"""Groups and their offsets on a real broker, asked by the admin."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.groups import GroupDescription
from barnabas.client.admin.topics import NewTopic
from barnabas.client.cluster import Cluster
from barnabas.client.core.address import parse_bootstrap
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import ErrorCode, KafkaError

Use = Callable[[Admin], Coroutine[Any, Any, None]]


@pytest.fixture
def on_groups(broker: str) -> Callable[[Use], None]:
    """Runs something with the admin of a broker."""

    async def main(use: Use) -> None:
        async with Cluster(parse_bootstrap(broker)) as cluster:
            await use(Admin(cluster))

    return lambda use: asyncio.run(main(use))


async def topic_with(admin: Admin, name: str) -> TopicPartition:
    """A topic of one partition."""
    await admin.create_topic(NewTopic(name, partitions=1))
    await admin.cluster.partitions_of(name, auto_create=True)
    return TopicPartition(name, 0)


def test_offsets_make_a_group_that_is_listed_described_and_deleted(
    on_groups: Callable[[Use], None], topic: str
) -> None:
    async def use(admin: Admin) -> None:
        where = await topic_with(admin, topic)
        group = f"group-of-{topic}"
        assert await admin.alter_offsets(group, {where: 42}) == {where: None}
        assert (await admin.committed_offsets(group))[where].offset == 42
        listed = {each.group_id: each for each in await admin.list_groups()}
        assert (listed[group].type, listed[group].state) == ("Classic", "Empty")
        assert group not in {each.group_id for each in await admin.list_groups(states=["Stable"])}
        assert group in {each.group_id for each in await admin.list_groups(types=["classic"])}
        described = (await admin.describe_groups([group]))[group]
        assert isinstance(described, GroupDescription)
        assert (described.state, described.members, described.coordinator.id) == ("Empty", (), 1)
        assert await admin.delete_groups([group]) == {group: None}
        assert group not in {each.group_id for each in await admin.list_groups()}
        assert await admin.committed_offsets(group) == {}

    on_groups(use)


def test_a_group_that_nobody_knows(on_groups: Callable[[Use], None], topic: str) -> None:
    async def use(admin: Admin) -> None:
        described = (await admin.describe_groups([topic]))[topic]
        assert isinstance(described, KafkaError)
        assert (described.code, described.message) == (
            ErrorCode.GROUP_ID_NOT_FOUND,
            f"Group {topic} not found.",
        )
        assert await admin.committed_offsets(topic) == {}
        deleted = (await admin.delete_groups([topic]))[topic]
        assert deleted is not None
        assert deleted.code == ErrorCode.GROUP_ID_NOT_FOUND
        with pytest.raises(KafkaError) as raised:
            await admin.delete_offsets(topic, [TopicPartition(topic, 0)])
        assert raised.value.code == ErrorCode.GROUP_ID_NOT_FOUND

    on_groups(use)


def test_offsets_are_deleted_one_by_one(on_groups: Callable[[Use], None], topic: str) -> None:
    async def use(admin: Admin) -> None:
        one = await topic_with(admin, f"{topic}-1")
        other = await topic_with(admin, f"{topic}-2")
        await admin.alter_offsets(topic, {one: 1, other: 2})
        assert await admin.delete_offsets(topic, [one]) == {one: None}
        assert set(await admin.committed_offsets(topic)) == {other}

    on_groups(use)


def test_an_offset_of_a_topic_that_is_not_there_is_refused(
    on_groups: Callable[[Use], None], topic: str
) -> None:
    async def use(admin: Admin) -> None:
        where = TopicPartition(f"no-{topic}", 0)
        error = (await admin.alter_offsets(topic, {where: 1}))[where]
        assert error is not None
        assert error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    on_groups(use)
