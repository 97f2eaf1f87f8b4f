"""IncrementalAlterConfigs: set, remove or extend single settings."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.types import Bool, Int8, Int16, Int32, String


class IncrementalAlterConfigsRequest(Message, key=44, versions="0-1", flexible="1+"):
    class AlterConfigsResource(Struct):
        class AlterableConfig(Struct):
            name: String = ""
            config_operation: Int8 = 0
            value: String | None = ""

        resource_type: Int8 = 0
        resource_name: String = ""
        configs: list[AlterableConfig] = []

    resources: list[AlterConfigsResource] = []
    validate_only: Bool = False


class IncrementalAlterConfigsResponse(Message, key=44, versions="0-1", flexible="1+"):
    class AlterConfigsResourceResponse(Struct):
        error_code: Int16 = 0
        error_message: String | None = ""
        resource_type: Int8 = 0
        resource_name: String = ""

    throttle_time_ms: Int32 = 0
    responses: list[AlterConfigsResourceResponse] = []
