"""ControllerRegistration: a controller that starts makes itself known to the active one."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.types import NULL_UUID, Bool, Int16, Int32, String, UInt16, Uuid


class ControllerRegistrationRequest(Message, key=70, versions="0", flexible="0+"):
    class Listener(Struct):
        name: String = ""
        host: String = ""
        port: UInt16 = 0
        security_protocol: Int16 = 0

    class Feature(Struct):
        name: String = ""
        min_supported_version: Int16 = 0
        max_supported_version: Int16 = 0

    controller_id: Int32 = 0
    incarnation_id: Uuid = NULL_UUID
    zk_migration_ready: Bool = False
    listeners: list[Listener] = []
    features: list[Feature] = []


class ControllerRegistrationResponse(Message, key=70, versions="0", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""
