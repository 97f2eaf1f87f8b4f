"""UpdateFeatures: raise or lower feature levels of the cluster."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since
from barnabas.protocol.types import Bool, Int8, Int16, Int32, String


class UpdateFeaturesRequest(Message, key=57, versions="0-2", flexible="0+"):
    class FeatureUpdateKey(Struct):
        feature: String = ""
        max_version_level: Int16 = 0
        allow_downgrade: Bool = since("0", False)
        upgrade_type: Int8 = since("1+", 1)

    timeout_ms: Int32 = 60000
    feature_updates: list[FeatureUpdateKey] = []
    validate_only: Bool = since("1+", False)


class UpdateFeaturesResponse(Message, key=57, versions="0-2", flexible="0+"):
    class UpdatableFeatureResult(Struct):
        feature: String = ""
        error_code: Int16 = 0
        error_message: String | None = ""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""
    results: list[UpdatableFeatureResult] = since("0-1", [], ignorable=True)
