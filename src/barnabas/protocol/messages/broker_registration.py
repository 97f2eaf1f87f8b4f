"""BrokerRegistration: a broker that starts makes itself known to the controller."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since
from barnabas.protocol.types import NULL_UUID, Bool, Int16, Int32, Int64, String, UInt16, Uuid


class BrokerRegistrationRequest(Message, key=62, versions="0-4", flexible="0+"):
    class Listener(Struct):
        name: String = ""
        host: String = ""
        port: UInt16 = 0
        security_protocol: Int16 = 0

    class Feature(Struct):
        name: String = ""
        min_supported_version: Int16 = 0
        max_supported_version: Int16 = 0

    broker_id: Int32 = 0
    cluster_id: String = ""
    incarnation_id: Uuid = NULL_UUID
    listeners: list[Listener] = []
    features: list[Feature] = []
    rack: String | None = ""
    is_migrating_zk_broker: Bool = since("1+", False)
    log_dirs: list[Uuid] = since("2+", [], ignorable=True)
    previous_broker_epoch: Int64 = since("3+", -1, ignorable=True)


class BrokerRegistrationResponse(Message, key=62, versions="0-4", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    broker_epoch: Int64 = -1
