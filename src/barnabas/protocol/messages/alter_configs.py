"""AlterConfigs: replace all settings of a topic or broker at once."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.types import Bool, Int8, Int16, Int32, String


class AlterConfigsRequest(Message, key=33, versions="0-2", flexible="2+"):
    class AlterConfigsResource(Struct):
        class AlterableConfig(Struct):
            name: String = ""
            value: String | None = ""

        resource_type: Int8 = 0
        resource_name: String = ""
        configs: list[AlterableConfig] = []

    resources: list[AlterConfigsResource] = []
    validate_only: Bool = False


class AlterConfigsResponse(Message, key=33, versions="0-2", flexible="2+"):
    class AlterConfigsResourceResponse(Struct):
        error_code: Int16 = 0
        error_message: String | None = ""
        resource_type: Int8 = 0
        resource_name: String = ""

    throttle_time_ms: Int32 = 0
    responses: list[AlterConfigsResourceResponse] = []
