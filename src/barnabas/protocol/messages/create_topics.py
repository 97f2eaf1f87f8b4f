"""CreateTopics: create topics, or only check that they could be created."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since, tag
from barnabas.protocol.types import NULL_UUID, Bool, Int8, Int16, Int32, String, Uuid


class CreateTopicsRequest(Message, key=19, versions="2-7", flexible="5+"):
    class CreatableTopic(Struct):
        class CreatableReplicaAssignment(Struct):
            partition_index: Int32 = 0
            broker_ids: list[Int32] = []

        class CreatableTopicConfig(Struct):
            name: String = ""
            value: String | None = ""

        name: String = ""
        num_partitions: Int32 = 0
        replication_factor: Int16 = 0
        assignments: list[CreatableReplicaAssignment] = []
        configs: list[CreatableTopicConfig] = []

    topics: list[CreatableTopic] = []
    timeout_ms: Int32 = 60000
    validate_only: Bool = since("1+", False)


class CreateTopicsResponse(Message, key=19, versions="2-7", flexible="5+"):
    class CreatableTopicResult(Struct):
        class CreatableTopicConfigs(Struct):
            name: String = since("5+", "")
            value: String | None = since("5+", "")
            read_only: Bool = since("5+", False)
            config_source: Int8 = since("5+", -1, ignorable=True)
            is_sensitive: Bool = since("5+", False)

        name: String = ""
        topic_id: Uuid = since("7+", NULL_UUID, ignorable=True)
        error_code: Int16 = 0
        error_message: String | None = since("1+", "", ignorable=True)
        topic_config_error_code: Int16 = tag(0, "5+", 0, ignorable=True)
        num_partitions: Int32 = since("5+", -1, ignorable=True)
        replication_factor: Int16 = since("5+", -1, ignorable=True)
        configs: list[CreatableTopicConfigs] | None = since("5+", [], ignorable=True)

    throttle_time_ms: Int32 = since("2+", 0, ignorable=True)
    topics: list[CreatableTopicResult] = []
