"""DeleteAcls: remove the access control entries that match filters."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since
from barnabas.protocol.types import Int8, Int16, Int32, String


class DeleteAclsRequest(Message, key=31, versions="1-3", flexible="2+"):
    class DeleteAclsFilter(Struct):
        resource_type_filter: Int8 = 0
        resource_name_filter: String | None = ""
        pattern_type_filter: Int8 = since("1+", 3)
        principal_filter: String | None = ""
        host_filter: String | None = ""
        operation: Int8 = 0
        permission_type: Int8 = 0

    filters: list[DeleteAclsFilter] = []


class DeleteAclsResponse(Message, key=31, versions="1-3", flexible="2+"):
    class DeleteAclsFilterResult(Struct):
        class DeleteAclsMatchingAcl(Struct):
            error_code: Int16 = 0
            error_message: String | None = ""
            resource_type: Int8 = 0
            resource_name: String = ""
            pattern_type: Int8 = since("1+", 3)
            principal: String = ""
            host: String = ""
            operation: Int8 = 0
            permission_type: Int8 = 0

        error_code: Int16 = 0
        error_message: String | None = ""
        matching_acls: list[DeleteAclsMatchingAcl] = []

    throttle_time_ms: Int32 = 0
    filter_results: list[DeleteAclsFilterResult] = []
