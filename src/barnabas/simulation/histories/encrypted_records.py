"""The history of records on an encrypted disk: the same clients, faults and checks."""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.simulation.histories.records import RecordsHistory
from barnabas.simulation.histories.stage import Stage
from barnabas.simulation.world.world import World
from barnabas.storage.encryption.providers import KeyProvider, MasterKeys

SETTINGS = {
    "barnabas.encryption.enabled": "true",
    "barnabas.encryption.key.provider": f"{__name__}:master_keys",
}


def master_keys(settings: Mapping[str, str]) -> KeyProvider:
    """The key provider of these nodes."""
    return MasterKeys({"simulated": bytes(range(32))}, "the simulation")


class EncryptedRecordsHistory(RecordsHistory):
    name = "encrypted-records"

    def make_stage(self, world: World, properties: dict[str, str]) -> Stage:
        return super().make_stage(world, {**properties, **SETTINGS})
