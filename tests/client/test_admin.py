"""What an administrator asks: of the leader that a partition has now, of old brokers, of who refuses."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.configs import ConfigResource, ResourceType
from barnabas.client.admin.elections import ElectionType
from barnabas.client.admin.features import UpgradeType
from barnabas.client.admin.quotas import Match
from barnabas.client.admin.scram import NewCredential, ScramMechanism
from barnabas.client.admin.transactions import AbortedTransaction
from barnabas.client.admin.voters import VoterAddress
from barnabas.client.cluster import Cluster
from barnabas.client.core.address import Address
from barnabas.client.core.errors import UnsupportedApi
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import ApiKey, ErrorCode, KafkaError, Message
from barnabas.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from barnabas.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse
from barnabas.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)
from barnabas.protocol.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from barnabas.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from barnabas.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from barnabas.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.protocol.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.protocol.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from barnabas.protocol.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse

from .fake_broker import Answer, FakeBroker

HERE = TopicPartition("t", 0)


def metadata(address: Callable[[], Address]) -> Answer:
    """One broker that leads partition 0 of `t`."""

    def answer(request: MetadataRequest, version: int) -> MetadataResponse:
        host, port = address()
        topic = MetadataResponse.MetadataResponseTopic
        partition = topic.MetadataResponsePartition(partition_index=0, leader_id=1, replica_nodes=[1])
        return MetadataResponse(
            brokers=[MetadataResponse.MetadataResponseBroker(node_id=1, host=host, port=port)],
            topics=[
                topic(name=each.name, partitions=[partition])
                if each.name == "t"
                else topic(name=each.name, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                for each in request.topics or ()
            ],
        )

    return answer


def coordinator(address: Callable[[], Address]) -> Answer:
    def answer(request: FindCoordinatorRequest, version: int) -> FindCoordinatorResponse:
        host, port = address()
        nested = FindCoordinatorResponse.Coordinator
        found = [nested(key=key, node_id=1, host=host, port=port) for key in request.coordinator_keys]
        return FindCoordinatorResponse(coordinators=found)

    return answer


def on_fake(
    use: Callable[[Admin, FakeBroker], Any],
    answers: Mapping[type[Message], Answer],
    versions: Mapping[int, tuple[int, int]] | None = None,
) -> Any:
    async def main() -> Any:
        def address() -> Address:
            return fake.address

        every = {
            MetadataRequest: metadata(address),
            FindCoordinatorRequest: coordinator(address),
            **answers,
        }
        fake = FakeBroker(every, versions or {})
        async with fake, Cluster([fake.address], api_timeout_ms=5_000) as cluster:
            return await use(Admin(cluster), fake)

    return asyncio.run(main())


def deleted(*codes: int) -> Answer:
    """Answers of DeleteRecords, an error code each, then success."""
    left = list(codes)

    def answer(request: DeleteRecordsRequest, version: int) -> DeleteRecordsResponse:
        code = left.pop(0) if left else 0
        nested = DeleteRecordsResponse.DeleteRecordsTopicResult
        result = nested.DeleteRecordsPartitionResult(partition_index=0, low_watermark=7, error_code=code)
        return DeleteRecordsResponse(topics=[nested(name="t", partitions=[result])])

    return answer


def test_a_leader_that_moved_is_asked_again() -> None:
    async def use(admin: Admin, fake: FakeBroker) -> tuple[Any, int]:
        return await admin.delete_records({HERE: 7}), fake.count(MetadataRequest)

    moved = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    found, asked = on_fake(use, {DeleteRecordsRequest: deleted(moved, moved)})
    assert (found, asked) == ({HERE: 7}, 3)


def test_an_error_for_good_is_the_partitions_own() -> None:
    async def use(admin: Admin, fake: FakeBroker) -> Any:
        return await admin.delete_records({HERE: 99, TopicPartition("nowhere", 0): 1})

    found = on_fake(use, {DeleteRecordsRequest: deleted(int(ErrorCode.OFFSET_OUT_OF_RANGE))})
    assert {str(where): error.code for where, error in found.items()} == {
        "t-0": ErrorCode.OFFSET_OUT_OF_RANGE,
        "nowhere-0": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_a_refused_election_is_told_for_each_partition() -> None:
    def answer(request: ElectLeadersRequest, version: int) -> ElectLeadersResponse:
        assert (request.election_type, request.topic_partitions) == (ElectionType.UNCLEAN, None)
        nested = ElectLeadersResponse.ReplicaElectionResult
        code = int(ErrorCode.ELECTION_NOT_NEEDED)
        results = [
            nested.PartitionResult(partition_id=0),
            nested.PartitionResult(partition_id=1, error_code=code, error_message="no need"),
        ]
        return ElectLeadersResponse(replica_election_results=[nested(topic="t", partition_result=results)])

    async def use(admin: Admin, fake: FakeBroker) -> Any:
        return await admin.elect_leaders(ElectionType.UNCLEAN, None)

    found = on_fake(use, {ElectLeadersRequest: answer})
    assert found[HERE] is None
    refused = found[TopicPartition("t", 1)]
    assert (refused.code, refused.message) == (ErrorCode.ELECTION_NOT_NEEDED, "no need")


def test_features_of_an_old_broker_are_refused_one_by_one() -> None:
    def answer(request: UpdateFeaturesRequest, version: int) -> UpdateFeaturesResponse:
        nested = UpdateFeaturesResponse.UpdatableFeatureResult
        code = int(ErrorCode.INVALID_UPDATE_VERSION)
        return UpdateFeaturesResponse(
            results=[nested(feature="f", error_code=code, error_message="too high")]
        )

    async def use(admin: Admin, fake: FakeBroker) -> Any:
        with pytest.raises(KafkaError, match="too high"):
            await admin.update_features({"f": 9}, UpgradeType.UPGRADE)

    on_fake(use, {UpdateFeaturesRequest: answer}, {int(ApiKey.UPDATE_FEATURES): (0, 1)})


def test_an_old_broker_lists_client_metrics_only() -> None:
    def answer(request: ListConfigResourcesRequest, version: int) -> ListConfigResourcesResponse:
        nested = ListConfigResourcesResponse.ConfigResource
        return ListConfigResourcesResponse(config_resources=[nested(resource_name="m")])

    async def use(admin: Admin, fake: FakeBroker) -> Any:
        with pytest.raises(UnsupportedApi, match="it lists client metrics only"):
            await admin.list_config_resources(ResourceType.GROUP)
        return await admin.list_config_resources(ResourceType.CLIENT_METRICS)

    found = on_fake(use, {ListConfigResourcesRequest: answer}, {int(ApiKey.LIST_CONFIG_RESOURCES): (0, 0)})
    assert found == [ConfigResource(ResourceType.CLIENT_METRICS, "m")]


def test_quotas_are_asked_for_by_parts_and_removed_by_none() -> None:
    def describe(request: DescribeClientQuotasRequest, version: int) -> DescribeClientQuotasResponse:
        asked = [(each.entity_type, each.match_type, each.match) for each in request.components]
        assert (asked, request.strict) == (
            [("user", Match.EXACT, "ann"), ("client-id", Match.DEFAULT, None)],
            True,
        )
        nested = DescribeClientQuotasResponse.EntryData
        entity = [nested.EntityData(entity_type="user", entity_name="ann")]
        values = [nested.ValueData(key="producer_byte_rate", value=5.0)]
        return DescribeClientQuotasResponse(entries=[nested(entity=entity, values=values)])

    def alter(request: AlterClientQuotasRequest, version: int) -> AlterClientQuotasResponse:
        [entry] = request.entries
        assert [(op.key, op.value, op.remove) for op in entry.ops] == [("a", 2.0, False), ("b", 0.0, True)]
        nested = AlterClientQuotasResponse.EntryData
        code = int(ErrorCode.INVALID_REQUEST)
        return AlterClientQuotasResponse(entries=[nested(error_code=code, error_message="not that one")])

    async def use(admin: Admin, fake: FakeBroker) -> Any:
        with pytest.raises(KafkaError, match="not that one"):
            await admin.alter_quotas({"user": "ann"}, {"a": 2.0, "b": None})
        return await admin.describe_quotas({"user": (Match.EXACT, "ann"), "client-id": (Match.DEFAULT, None)})

    [entry] = on_fake(use, {DescribeClientQuotasRequest: describe, AlterClientQuotasRequest: alter})
    assert (entry.entity, entry.values) == ({"user": "ann"}, {"producer_byte_rate": 5.0})


def test_a_password_never_leaves_as_it_is() -> None:
    seen: list[AlterUserScramCredentialsRequest] = []

    def alter(request: AlterUserScramCredentialsRequest, version: int) -> AlterUserScramCredentialsResponse:
        seen.append(request)
        nested = AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult
        return AlterUserScramCredentialsResponse(results=[nested(user="ann")])

    async def use(admin: Admin, fake: FakeBroker) -> Any:
        new = {ScramMechanism.SCRAM_SHA_512: NewCredential(4096, "hush")}
        await admin.alter_scram("ann", new, [ScramMechanism.SCRAM_SHA_256])

    on_fake(use, {AlterUserScramCredentialsRequest: alter})
    [added] = seen[0].upsertions
    assert (added.name, added.mechanism, added.iterations, len(added.salted_password)) == ("ann", 2, 4096, 64)
    assert b"hush" not in seen[0].encode(0)
    assert [each.mechanism for each in seen[0].deletions] == [1]


def test_users_without_credentials_are_left_out() -> None:
    def describe(
        request: DescribeUserScramCredentialsRequest, version: int
    ) -> DescribeUserScramCredentialsResponse:
        assert [each.name for each in request.users or ()] == ["ann", "bob"]
        nested = DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult
        return DescribeUserScramCredentialsResponse(
            results=[
                nested(user="ann", credential_infos=[nested.CredentialInfo(mechanism=1, iterations=4096)]),
                nested(user="bob", error_code=int(ErrorCode.RESOURCE_NOT_FOUND)),
            ]
        )

    async def use(admin: Admin, fake: FakeBroker) -> Any:
        return await admin.describe_scram(["ann", "bob"])

    found = on_fake(use, {DescribeUserScramCredentialsRequest: describe})
    assert found == {"ann": {ScramMechanism.SCRAM_SHA_256: 4096}}


def test_a_voter_is_added_with_its_addresses() -> None:
    seen: list[AddRaftVoterRequest] = []

    def answer(request: AddRaftVoterRequest, version: int) -> AddRaftVoterResponse:
        seen.append(request)
        return AddRaftVoterResponse(
            error_code=int(ErrorCode.DUPLICATE_VOTER), error_message="it votes already"
        )

    async def use(admin: Admin, fake: FakeBroker) -> Any:
        with pytest.raises(KafkaError, match="it votes already"):
            await admin.add_voter(7, b"d" * 16, [VoterAddress("CONTROLLER", "c7", 9093)])

    on_fake(use, {AddRaftVoterRequest: answer})
    [listener] = seen[0].listeners
    assert (seen[0].voter_id, listener.name, listener.host, listener.port) == (7, "CONTROLLER", "c7", 9093)


def test_an_abort_marker_goes_to_the_leader_of_the_partition() -> None:
    seen: list[WriteTxnMarkersRequest] = []

    def answer(request: WriteTxnMarkersRequest, version: int) -> WriteTxnMarkersResponse:
        seen.append(request)
        nested = WriteTxnMarkersResponse.WritableTxnMarkerResult
        topic = nested.WritableTxnMarkerTopicResult
        result = topic.WritableTxnMarkerPartitionResult(partition_index=0)
        return WriteTxnMarkersResponse(markers=[nested(topics=[topic(name="t", partitions=[result])])])

    async def use(admin: Admin, fake: FakeBroker) -> Any:
        await admin.abort_transaction(AbortedTransaction(HERE, 5, 3, 0))

    on_fake(use, {WriteTxnMarkersRequest: answer})
    [marker] = seen[0].markers
    assert (marker.producer_id, marker.producer_epoch, marker.transaction_result) == (5, 3, False)


def test_a_transactional_id_is_fenced_at_its_coordinator() -> None:
    seen: list[InitProducerIdRequest] = []

    def answer(request: InitProducerIdRequest, version: int) -> InitProducerIdResponse:
        seen.append(request)
        busy = int(ErrorCode.CONCURRENT_TRANSACTIONS) if len(seen) == 1 else 0
        return InitProducerIdResponse(error_code=busy, producer_id=5, producer_epoch=4)

    async def use(admin: Admin, fake: FakeBroker) -> int:
        await admin.fence_producer("orders")
        found = [request for request, _ in fake.seen if isinstance(request, FindCoordinatorRequest)]
        return found[0].key_type

    assert on_fake(use, {InitProducerIdRequest: answer}) == 1
    assert [each.transactional_id for each in seen] == ["orders", "orders"]
