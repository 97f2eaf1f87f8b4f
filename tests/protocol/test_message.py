"""What the classes of messages offer: construction, equality, text, cheap imports."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from typing import Any

import pytest

from barnabas.protocol.messages.fetch import FetchRequest, FetchResponse
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.protocol.messages.produce import ProduceRequest
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest


def test_fields_have_defaults_and_are_set_by_keyword() -> None:
    response = HeartbeatResponse(error_code=27)
    assert (response.error_code, response.throttle_time_ms) == (27, 0)


def test_a_field_that_does_not_exist_is_refused_by_the_constructor_and_on_the_instance() -> None:
    with pytest.raises(TypeError, match="eror_code"):
        HeartbeatResponse(eror_code=27)  # type: ignore[call-arg]
    untyped: Any = HeartbeatResponse()
    with pytest.raises(AttributeError):
        untyped.eror_code = 27


def test_messages_do_not_share_lists() -> None:
    ProduceRequest().topic_data.append(ProduceRequest.TopicProduceData())
    assert ProduceRequest().topic_data == []


def test_none_for_a_nullable_array_is_not_its_default() -> None:
    assert MetadataRequest(topics=None).topics is None
    assert MetadataRequest().topics == []


def test_messages_are_equal_when_their_fields_are() -> None:
    assert HeartbeatRequest(group_id="g") == HeartbeatRequest(group_id="g")
    assert HeartbeatRequest(group_id="g") != HeartbeatRequest(group_id="h")
    assert HeartbeatRequest() != HeartbeatResponse()


def test_the_repr_of_a_message_shows_the_fields_that_are_set() -> None:
    assert (
        repr(HeartbeatRequest(group_id="g", generation_id=3))
        == "HeartbeatRequest(group_id='g', generation_id=3)"
    )


def test_a_shared_default_struct_cannot_be_changed_by_accident() -> None:
    request = FetchRequest()
    with pytest.raises(AttributeError, match="assign a new one"):
        request.replica_state.replica_id = 1
    request.replica_state = FetchRequest.ReplicaState(replica_id=1)
    assert FetchRequest().replica_state.replica_id == -1


def test_messages_can_be_copied_and_pickled() -> None:
    request = FetchRequest(topics=[FetchRequest.FetchTopic(topic="t")])
    for twin in (copy.deepcopy(request), pickle.loads(pickle.dumps(request))):
        assert twin == request
        assert twin.topics[0] is not request.topics[0]
        twin.replica_state.replica_id = 1
    assert request.replica_state.replica_id == -1


def test_a_decoded_struct_can_be_changed() -> None:
    sent = FetchRequest(replica_state=FetchRequest.ReplicaState(replica_id=1))
    received = FetchRequest.decode(sent.encode(17), 17)
    received.replica_state.replica_id = 2
    assert received.replica_state.replica_id == 2


def test_records_stay_a_slice_of_the_buffer() -> None:
    Topic = FetchResponse.FetchableTopicResponse
    response = FetchResponse(responses=[Topic(partitions=[Topic.PartitionData(records=b"batch")])])
    buffer = bytearray(response.encode(13))
    [partition] = FetchResponse.decode(memoryview(buffer), 13).responses[0].partitions
    buffer[buffer.index(b"batch")] = ord("B")
    assert partition.records == b"Batch"


def test_bytes_are_copied_out_of_the_buffer() -> None:
    buffer = bytearray(SaslAuthenticateRequest(auth_bytes=b"secret").encode(2))
    decoded = SaslAuthenticateRequest.decode(memoryview(buffer), 2)
    buffer[:] = bytes(len(buffer))
    assert decoded.auth_bytes == b"secret"
    assert type(decoded.auth_bytes) is bytes


def test_importing_the_protocol_imports_no_message() -> None:
    code = "import sys, barnabas.protocol; print(*sorted(sys.modules), sep='\\n')"
    imported = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert "barnabas.protocol.message" in imported
    assert not [name for name in imported if ".messages" in name or ".log_records" in name]
