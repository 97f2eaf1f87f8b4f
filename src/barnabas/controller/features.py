"""UpdateFeatures: raise or lower finalized feature levels, all of a request or none.

In: the request, the image, the quorum's `kraft.version`. Out: one FeatureLevelRecord for each feature.
Does not know: what the levels mean. `kraft.version` is kept by the quorum in records of its own, and only
validated here.
"""

from __future__ import annotations

from barnabas.controller.context import Context
from barnabas.controller.decision import Decision
from barnabas.metadata.configs import CLUSTER_DEFAULT
from barnabas.metadata.features import FeaturesImage
from barnabas.metadata.versions import (
    ELIGIBLE_LEADER_REPLICAS,
    ELR_VERSION,
    KRAFT_VERSION,
    METADATA_VERSION,
    RELEASES,
    release_name,
    supported_features,
)
from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.protocol.log_records.metadata import ConfigRecord, FeatureLevelRecord
from barnabas.protocol.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
RESULTS_UNTIL = 1
FAILED = "The update failed for all features since the following feature had an error: "
# The lowest metadata.version that a level of a feature needs.
NEEDS_METADATA = {
    (KRAFT_VERSION, 1): RELEASES["3.9-IV0"],
    (ELR_VERSION, 1): ELIGIBLE_LEADER_REPLICAS,
}
# Levels without new record types: a downgrade may cross them.
WITHOUT_NEW_RECORDS = frozenset(
    RELEASES[name]
    for name in (
        "3.5-IV0", "3.5-IV1", "3.6-IV0", "3.7-IV1", "3.7-IV3", "3.7-IV4", "3.8-IV0", "3.9-IV0", "4.0-IV0",
        "4.0-IV2", "4.0-IV3", "4.1-IV0", "4.1-IV1", "4.2-IV0", "4.2-IV1",
    )
)  # fmt: skip

Update = UpdateFeaturesRequest.FeatureUpdateKey


def update_features(context: Context, request: UpdateFeaturesRequest) -> Decision[UpdateFeaturesResponse]:
    records: list[Message] = []
    try:
        for update in request.feature_updates:
            records += _update(context, update, request)
    except KafkaError as error:
        return Decision(UpdateFeaturesResponse(error_code=error.code, error_message=FAILED + error.message))
    results = [
        UpdateFeaturesResponse.UpdatableFeatureResult(feature=update.feature, error_message="NONE")
        for update in request.feature_updates
    ]
    reply = UpdateFeaturesResponse(error_message=None, results=results)
    return Decision(reply, [] if request.validate_only else records)


def _update(context: Context, update: Update, request: UpdateFeaturesRequest) -> list[Message]:
    name, level = update.feature, update.max_version_level
    kind = upgrade_type(update)
    if kind not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        raise refused(name, level, "The controller does not support the given upgrade type.")
    if level < 0:
        raise refused(name, level, "A feature version cannot be less than 0.")
    _check_supported(context, name, level)
    features = context.image.features
    current = context.kraft_version if name == KRAFT_VERSION else current_level(features, name)
    if level < current and kind == UPGRADE:
        raise refused(
            name,
            level,
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or "
            "unsafe downgrade.",
        )
    if level > current and kind != UPGRADE:
        raise refused(name, level, "Can't downgrade to a newer version.")
    if name == METADATA_VERSION:
        _check_metadata_downgrade(current, level, unsafe=kind == UNSAFE_DOWNGRADE)
    elif name == KRAFT_VERSION:
        return _kraft_version(context.kraft_version, level, request)
    else:
        _check_dependencies(features, name, level, request)
    records: list[Message] = [FeatureLevelRecord(name=name, feature_level=level)]
    if name == ELR_VERSION and level and not current:
        records += _elr_safety(context)
    return records


def upgrade_type(update: Update) -> int:
    """The upgrade type. Version 0 has only a flag that allows a downgrade."""
    if update.allow_downgrade and update.upgrade_type == UPGRADE:
        return SAFE_DOWNGRADE
    return update.upgrade_type


def current_level(features: FeaturesImage, name: str) -> int:
    return features.metadata_level if name == METADATA_VERSION else features.level(name)


def _check_supported(context: Context, name: str, level: int) -> None:
    node = f"Local controller {context.settings.node_id}"
    known = supported_features().get(name)
    if known is None:
        if level == 0:
            raise refused(name, level, f"Feature {name} not found.")
        raise refused(name, level, f"{node} does not support this feature.")
    _check_range(node, known, name, level)
    for broker in context.image.cluster.brokers.values():
        _check_range(f"Broker {broker.id}", broker.features.get(name, (0, 0)), name, level)


def _check_range(who: str, known: tuple[int, int], name: str, level: int) -> None:
    lowest, highest = known
    if lowest <= level <= highest:
        return
    if (lowest, highest) == (0, 0):
        raise refused(name, level, f"{who} does not support this feature.")
    raise refused(name, level, f"{who} only supports versions {lowest}-{highest}")


def _check_metadata_downgrade(current: int, level: int, *, unsafe: bool) -> None:
    if level >= current:
        return
    if all(step in WITHOUT_NEW_RECORDS for step in range(level + 1, current + 1)):
        return
    reason = (
        "Unsafe metadata downgrade is not supported in this version."
        if unsafe
        else "Refusing to perform the requested downgrade because it might delete metadata information."
    )
    raise KafkaError(
        ErrorCode.INVALID_UPDATE_VERSION,
        f"Unsupported {METADATA_VERSION} downgrade from {current} to {level}. {reason}",
    )


def _check_dependencies(
    features: FeaturesImage, name: str, level: int, request: UpdateFeaturesRequest
) -> None:
    needed = NEEDS_METADATA.get((name, level), 0)
    metadata = next(
        (each.max_version_level for each in request.feature_updates if each.feature == METADATA_VERSION),
        features.metadata_level,
    )
    if metadata < needed:
        raise refused(
            name,
            level,
            f"{name} could not be set to {level} because it depends on {METADATA_VERSION} level "
            f"{needed} ({release_name(needed)})",
        )


def _kraft_version(current: int, level: int, request: UpdateFeaturesRequest) -> list[Message]:
    if level != current and not request.validate_only:
        raise refused(KRAFT_VERSION, level, "The quorum's voters are static, and stay so while it runs.")
    return []


def _elr_safety(context: Context) -> list[Message]:
    """Delete the brokers' own `min.insync.replicas`: with eligible leader replicas it is a setting of the
    cluster."""
    name = "min.insync.replicas"
    records: list[Message] = []
    configs = context.image.configs
    if name not in configs.cluster_default:
        records.append(
            ConfigRecord(
                resource_type=CLUSTER_DEFAULT.type,
                resource_name=CLUSTER_DEFAULT.name,
                name=name,
                value=str(context.settings[name]),
            )
        )
    for resource, values in configs.by_resource.items():
        if resource.type == CLUSTER_DEFAULT.type and resource.name and name in values:
            records.append(
                ConfigRecord(resource_type=resource.type, resource_name=resource.name, name=name, value=None)
            )
    return records


def refused(name: str, level: int, reason: str) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_UPDATE_VERSION, f"Invalid update version {level} for feature {name}. {reason}"
    )
