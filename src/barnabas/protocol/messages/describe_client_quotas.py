"""DescribeClientQuotas: quotas that match a filter."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.types import Bool, Float64, Int8, Int16, Int32, String


class DescribeClientQuotasRequest(Message, key=48, versions="0-1", flexible="1+"):
    class ComponentData(Struct):
        entity_type: String = ""
        match_type: Int8 = 0
        match: String | None = ""

    components: list[ComponentData] = []
    strict: Bool = False


class DescribeClientQuotasResponse(Message, key=48, versions="0-1", flexible="1+"):
    class EntryData(Struct):
        class EntityData(Struct):
            entity_type: String = ""
            entity_name: String | None = ""

        class ValueData(Struct):
            key: String = ""
            value: Float64 = 0.0

        entity: list[EntityData] = []
        values: list[ValueData] = []

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""
    entries: list[EntryData] | None = []
