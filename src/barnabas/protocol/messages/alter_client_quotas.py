"""AlterClientQuotas: set or remove quotas of users, clients and addresses."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.types import Bool, Float64, Int16, Int32, String


class AlterClientQuotasRequest(Message, key=49, versions="0-1", flexible="1+"):
    class EntryData(Struct):
        class EntityData(Struct):
            entity_type: String = ""
            entity_name: String | None = ""

        class OpData(Struct):
            key: String = ""
            value: Float64 = 0.0
            remove: Bool = False

        entity: list[EntityData] = []
        ops: list[OpData] = []

    entries: list[EntryData] = []
    validate_only: Bool = False


class AlterClientQuotasResponse(Message, key=49, versions="0-1", flexible="1+"):
    class EntryData(Struct):
        class EntityData(Struct):
            entity_type: String = ""
            entity_name: String | None = ""

        error_code: Int16 = 0
        error_message: String | None = ""
        entity: list[EntityData] = []

    throttle_time_ms: Int32 = 0
    entries: list[EntryData] = []
