"""ListConfigResources: names of everything that has settings."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since
from barnabas.protocol.types import Int8, Int16, Int32, String


class ListConfigResourcesRequest(Message, key=74, versions="0-1", flexible="0+"):
    resource_types: list[Int8] = since("1+", [])


class ListConfigResourcesResponse(Message, key=74, versions="0-1", flexible="0+"):
    class ConfigResource(Struct):
        resource_name: String = ""
        resource_type: Int8 = since("1+", 16, ignorable=True)

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    config_resources: list[ConfigResource] = []
