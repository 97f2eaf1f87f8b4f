"""WriteTxnMarkers: a transaction coordinator has markers written to partitions."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since
from barnabas.protocol.types import Bool, Int8, Int16, Int32, Int64, String


class WriteTxnMarkersRequest(Message, key=27, versions="1-2", flexible="1+"):
    class WritableTxnMarker(Struct):
        class WritableTxnMarkerTopic(Struct):
            name: String = ""
            partition_indexes: list[Int32] = []

        producer_id: Int64 = 0
        producer_epoch: Int16 = 0
        transaction_result: Bool = False
        topics: list[WritableTxnMarkerTopic] = []
        coordinator_epoch: Int32 = 0
        transaction_version: Int8 = since("2+", 0, ignorable=True)

    markers: list[WritableTxnMarker] = []


class WriteTxnMarkersResponse(Message, key=27, versions="1-2", flexible="1+"):
    class WritableTxnMarkerResult(Struct):
        class WritableTxnMarkerTopicResult(Struct):
            class WritableTxnMarkerPartitionResult(Struct):
                partition_index: Int32 = 0
                error_code: Int16 = 0

            name: String = ""
            partitions: list[WritableTxnMarkerPartitionResult] = []

        producer_id: Int64 = 0
        topics: list[WritableTxnMarkerTopicResult] = []

    markers: list[WritableTxnMarkerResult] = []
