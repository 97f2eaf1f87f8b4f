"""DescribeAcls: the access control entries that match a filter."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since
from barnabas.protocol.types import Int8, Int16, Int32, String


class DescribeAclsRequest(Message, key=29, versions="1-3", flexible="2+"):
    resource_type_filter: Int8 = 0
    resource_name_filter: String | None = ""
    pattern_type_filter: Int8 = since("1+", 3)
    principal_filter: String | None = ""
    host_filter: String | None = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


class DescribeAclsResponse(Message, key=29, versions="1-3", flexible="2+"):
    class DescribeAclsResource(Struct):
        class AclDescription(Struct):
            principal: String = ""
            host: String = ""
            operation: Int8 = 0
            permission_type: Int8 = 0

        resource_type: Int8 = 0
        resource_name: String = ""
        pattern_type: Int8 = since("1+", 3)
        acls: list[AclDescription] = []

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""
    resources: list[DescribeAclsResource] = []
