"""CreateAcls: add access control entries."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since
from barnabas.protocol.types import Int8, Int16, Int32, String


class CreateAclsRequest(Message, key=30, versions="1-3", flexible="2+"):
    class AclCreation(Struct):
        resource_type: Int8 = 0
        resource_name: String = ""
        resource_pattern_type: Int8 = since("1+", 3)
        principal: String = ""
        host: String = ""
        operation: Int8 = 0
        permission_type: Int8 = 0

    creations: list[AclCreation] = []


class CreateAclsResponse(Message, key=30, versions="1-3", flexible="2+"):
    class AclCreationResult(Struct):
        error_code: Int16 = 0
        error_message: String | None = ""

    throttle_time_ms: Int32 = 0
    results: list[AclCreationResult] = []
