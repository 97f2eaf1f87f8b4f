"""Finding coordinators of groups: many at once, one by one with an old broker, again when they moved."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.group_offsets import CommittedOffset
from barnabas.client.admin.groups import GroupDescription, classic_assignment
from barnabas.client.cluster import Cluster
from barnabas.client.core.address import Address
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import ApiKey, ErrorCode, KafkaError, Message
from barnabas.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from barnabas.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

from .fake_broker import Answer, FakeBroker

Deleted = DeleteGroupsResponse.DeletableGroupResult


def metadata(address: Callable[[], Address]) -> Answer:
    def answer(request: MetadataRequest, version: int) -> MetadataResponse:
        host, port = address()
        node = MetadataResponse.MetadataResponseBroker(node_id=1, host=host, port=port)
        return MetadataResponse(brokers=[node])

    return answer


def coordinator(address: Callable[[], Address], codes: list[int] | None = None) -> Answer:
    """Answers with itself; `codes` come first, one an answer."""
    left = list(codes or ())

    def answer(request: FindCoordinatorRequest, version: int) -> FindCoordinatorResponse:
        code = left.pop(0) if left else 0
        host, port = address()
        if version < 4:
            return FindCoordinatorResponse(node_id=1, host=host, port=port, error_code=code)
        nested = FindCoordinatorResponse.Coordinator
        return FindCoordinatorResponse(
            coordinators=[
                nested(key=key, node_id=1, host=host, port=port, error_code=code)
                for key in request.coordinator_keys
            ]
        )

    return answer


def on_fake(
    use: Callable[[Admin, FakeBroker], Any],
    answers: Mapping[type[Message], Answer],
    *,
    coordinator_codes: list[int] | None = None,
    versions: Mapping[int, tuple[int, int]] | None = None,
) -> Any:
    async def main() -> Any:
        def address() -> Address:
            return fake.address

        every = {
            MetadataRequest: metadata(address),
            FindCoordinatorRequest: coordinator(address, coordinator_codes),
            **answers,
        }
        fake = FakeBroker(every, versions or {})
        async with fake, Cluster([fake.address], api_timeout_ms=5_000) as cluster:
            return await use(Admin(cluster), fake)

    return asyncio.run(main())


def deleting(codes: Mapping[str, list[int]]) -> Answer:
    left = {group: list(each) for group, each in codes.items()}

    def answer(request: DeleteGroupsRequest, version: int) -> DeleteGroupsResponse:
        return DeleteGroupsResponse(
            results=[Deleted(group_id=name, error_code=left[name].pop(0)) for name in request.groups_names]
        )

    return answer


def test_many_groups_are_found_and_asked_about_at_once() -> None:
    async def use(admin: Admin, fake: FakeBroker) -> None:
        names = [f"group-{number}" for number in range(50)]
        assert await admin.delete_groups(names) == dict.fromkeys(names)
        assert (fake.count(FindCoordinatorRequest), fake.count(DeleteGroupsRequest)) == (1, 1)

    on_fake(use, {DeleteGroupsRequest: deleting({f"group-{number}": [0] for number in range(50)})})


def test_an_old_broker_is_asked_for_one_coordinator_at_a_time() -> None:
    async def use(admin: Admin, fake: FakeBroker) -> None:
        assert await admin.delete_groups(["a", "b"]) == {"a": None, "b": None}
        assert fake.count(FindCoordinatorRequest) == 2

    on_fake(
        use, {DeleteGroupsRequest: deleting({"a": [0], "b": [0]})}, versions={ApiKey.FIND_COORDINATOR: (0, 3)}
    )


@pytest.mark.parametrize("version", [(0, 3), (4, 6)])
def test_a_coordinator_that_is_not_there_yet_is_waited_for(version: tuple[int, int]) -> None:
    async def use(admin: Admin, fake: FakeBroker) -> None:
        assert await admin.delete_groups(["a"]) == {"a": None}
        assert fake.count(FindCoordinatorRequest) == 2

    on_fake(
        use,
        {DeleteGroupsRequest: deleting({"a": [0]})},
        coordinator_codes=[ErrorCode.COORDINATOR_NOT_AVAILABLE],
        versions={ApiKey.FIND_COORDINATOR: version},
    )


def test_only_the_groups_whose_coordinator_moved_are_asked_about_again() -> None:
    async def use(admin: Admin, fake: FakeBroker) -> None:
        found = await admin.delete_groups(["moved", "done", "busy"])
        assert list(found) == ["moved", "done", "busy"]
        assert (found["moved"], found["done"]) == (None, None)
        error = found["busy"]
        assert error is not None
        assert error.code == ErrorCode.NON_EMPTY_GROUP
        again = [each for each, _ in fake.seen if isinstance(each, DeleteGroupsRequest)][1]
        assert again.groups_names == ["moved"]

    codes = {"moved": [ErrorCode.NOT_COORDINATOR, 0], "done": [0], "busy": [ErrorCode.NON_EMPTY_GROUP]}
    on_fake(use, {DeleteGroupsRequest: deleting({group: list(each) for group, each in codes.items()})})


def test_a_refusal_for_good_is_the_groups_own() -> None:
    async def use(admin: Admin, fake: FakeBroker) -> None:
        error = (await admin.delete_groups(["a"]))["a"]
        assert error is not None
        assert error.code == ErrorCode.GROUP_AUTHORIZATION_FAILED
        assert fake.count(DeleteGroupsRequest) == 0

    answers = {DeleteGroupsRequest: deleting({})}
    on_fake(use, answers, coordinator_codes=[ErrorCode.GROUP_AUTHORIZATION_FAILED])


def test_a_group_that_an_old_broker_calls_dead_is_not_there() -> None:
    def describe(request: DescribeGroupsRequest, version: int) -> DescribeGroupsResponse:
        nested = DescribeGroupsResponse.DescribedGroup
        states = {"gone": "Dead", "there": "Empty"}
        return DescribeGroupsResponse(
            groups=[nested(group_id=name, group_state=states[name]) for name in request.groups]
        )

    async def use(admin: Admin, fake: FakeBroker) -> None:
        found = await admin.describe_groups(["there", "gone"])
        assert isinstance(found["there"], GroupDescription)
        gone = found["gone"]
        assert isinstance(gone, KafkaError)
        assert (gone.code, gone.message) == (ErrorCode.GROUP_ID_NOT_FOUND, "Group gone not found.")

    on_fake(use, {DescribeGroupsRequest: describe}, versions={ApiKey.DESCRIBE_GROUPS: (0, 5)})


@pytest.mark.parametrize("versions", [(1, 7), (8, 10)])
def test_committed_offsets_are_read_in_every_version(versions: tuple[int, int]) -> None:
    def fetch(request: OffsetFetchRequest, version: int) -> OffsetFetchResponse:
        if version < 8:
            old = OffsetFetchResponse.OffsetFetchResponseTopic
            part = old.OffsetFetchResponsePartition
            rows = [part(partition_index=0, committed_offset=7), part(partition_index=1, committed_offset=-1)]
            return OffsetFetchResponse(topics=[old(name="t", partitions=rows)])
        group = OffsetFetchResponse.OffsetFetchResponseGroup
        topic = group.OffsetFetchResponseTopics
        cell = topic.OffsetFetchResponsePartitions
        cells = [cell(partition_index=0, committed_offset=7), cell(partition_index=1, committed_offset=-1)]
        return OffsetFetchResponse(
            groups=[
                group(group_id=each.group_id, topics=[topic(name="t", partitions=cells)])
                for each in request.groups
            ]
        )

    async def use(admin: Admin, fake: FakeBroker) -> None:
        expected = {TopicPartition("t", 0): CommittedOffset(7)}
        found = await admin.committed_offsets_of(["a", "b"])
        assert found == {"a": expected, "b": expected}
        assert fake.count(OffsetFetchRequest) == (2 if versions[1] < 8 else 1)

    on_fake(use, {OffsetFetchRequest: fetch}, versions={ApiKey.OFFSET_FETCH: versions})


def test_offsets_that_are_in_use_are_told_partition_by_partition() -> None:
    def delete(request: OffsetDeleteRequest, version: int) -> OffsetDeleteResponse:
        nested = OffsetDeleteResponse.OffsetDeleteResponseTopic
        part = nested.OffsetDeleteResponsePartition
        rows = [
            part(partition_index=0),
            part(partition_index=1, error_code=ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC),
        ]
        return OffsetDeleteResponse(topics=[nested(name="t", partitions=rows)])

    async def use(admin: Admin, fake: FakeBroker) -> None:
        found = await admin.delete_offsets("g", [TopicPartition("t", 0), TopicPartition("t", 1)])
        assert found[TopicPartition("t", 0)] is None
        error = found[TopicPartition("t", 1)]
        assert error is not None
        assert error.code == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC

    on_fake(use, {OffsetDeleteRequest: delete})


def test_groups_are_listed_again_while_their_coordinator_loads() -> None:
    left = [int(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), 0]

    def listing(request: ListGroupsRequest, version: int) -> ListGroupsResponse:
        nested = ListGroupsResponse.ListedGroup
        return ListGroupsResponse(
            error_code=left.pop(0),
            groups=[nested(group_id="g", protocol_type="consumer", group_type="classic")],
        )

    async def use(admin: Admin, fake: FakeBroker) -> None:
        [found] = await admin.list_groups()
        assert (found.group_id, found.type) == ("g", "Classic")

    on_fake(use, {ListGroupsRequest: listing})


@pytest.mark.parametrize("data", [b"", b"\0", b"\xff\xff", b"\0\1\0\0\0\7"])
def test_an_assignment_that_cannot_be_read_is_none(data: bytes) -> None:
    assert classic_assignment(data) == ()


def test_an_assignment_of_a_later_version_is_read() -> None:
    nested = ConsumerProtocolAssignment.TopicPartition
    body = ConsumerProtocolAssignment(assigned_partitions=[nested(topic="t", partitions=[2])]).encode(3)
    assert classic_assignment(b"\0\x09" + body) == (TopicPartition("t", 2),)
