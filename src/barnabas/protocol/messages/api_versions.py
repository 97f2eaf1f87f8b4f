"""ApiVersions: which APIs and versions a node speaks, and its features."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since, tag
from barnabas.protocol.types import Bool, Int16, Int32, Int64, String


class ApiVersionsRequest(Message, key=18, versions="0-4", flexible="3+"):
    client_software_name: String = since("3+", "", ignorable=True)
    client_software_version: String = since("3+", "", ignorable=True)


class ApiVersionsResponse(Message, key=18, versions="0-4", flexible="3+"):
    class ApiVersion(Struct):
        api_key: Int16 = 0
        min_version: Int16 = 0
        max_version: Int16 = 0

    class SupportedFeatureKey(Struct):
        name: String = since("3+", "")
        min_version: Int16 = since("3+", 0)
        max_version: Int16 = since("3+", 0)

    class FinalizedFeatureKey(Struct):
        name: String = since("3+", "")
        max_version_level: Int16 = since("3+", 0)
        min_version_level: Int16 = since("3+", 0)

    error_code: Int16 = 0
    api_keys: list[ApiVersion] = []
    throttle_time_ms: Int32 = since("1+", 0, ignorable=True)
    supported_features: list[SupportedFeatureKey] = tag(0, "3+", [], ignorable=True)
    finalized_features_epoch: Int64 = tag(1, "3+", -1, ignorable=True)
    finalized_features: list[FinalizedFeatureKey] = tag(2, "3+", [], ignorable=True)
    zk_migration_ready: Bool = tag(3, "3+", False, ignorable=True)
