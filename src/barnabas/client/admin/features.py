"""Feature levels of a cluster: what brokers support, what is finalized, and changing it.

In: a Cluster. Out: frozen values; a refused change is raised as KafkaError with the controller's message.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from barnabas.client.admin.part import AdminPart
from barnabas.client.core.errors import check
from barnabas.client.core.versions import ask
from barnabas.protocol.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse

UNKNOWN_EPOCH = -1


class UpgradeType(IntEnum):
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


@dataclass(frozen=True, slots=True)
class Features:
    supported: dict[str, tuple[int, int]]
    finalized: dict[str, int]
    epoch: int | None


class FeatureAdmin(AdminPart):
    async def describe_features(self) -> Features:
        """Features as one broker (or controller) tells them."""
        response = await ask(await self.cluster.any_connection())
        return Features(
            {each.name: (each.min_version, each.max_version) for each in response.supported_features},
            {each.name: each.max_version_level for each in response.finalized_features},
            None if response.finalized_features_epoch == UNKNOWN_EPOCH else response.finalized_features_epoch,
        )

    async def update_features(
        self, levels: Mapping[str, int], kind: UpgradeType, *, validate_only: bool = False
    ) -> None:
        """Set each feature to its level, all of them or none."""
        request = UpdateFeaturesRequest(
            timeout_ms=self.timeout_ms,
            feature_updates=[
                UpdateFeaturesRequest.FeatureUpdateKey(
                    feature=name, max_version_level=level, upgrade_type=kind
                )
                for name, level in levels.items()
            ],
            validate_only=validate_only,
        )
        for result in (await self.ask(request, UpdateFeaturesResponse)).results:
            check(result.error_code, result.error_message)
