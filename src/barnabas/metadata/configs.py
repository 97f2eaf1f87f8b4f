"""Dynamic configurations of topics, brokers, groups and client metrics subscriptions, as the log keeps them.

In: ConfigRecord. Out: per resource a map of names to values; which resources a delta touched.
Does not know: defaults, types, validity, precedence (see `settings`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from barnabas.metadata.changes import MapChanges
from barnabas.protocol.log_records.metadata import ConfigRecord


class ResourceType(IntEnum):
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigResource(NamedTuple):
    """The owner of a configuration. The broker named "" is the default of all brokers."""

    type: int
    name: str


CLUSTER_DEFAULT = ConfigResource(ResourceType.BROKER, "")
_EMPTY: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class ConfigsImage:
    by_resource: Mapping[ConfigResource, Mapping[str, str]] = field(default_factory=dict)

    def of(self, resource: ConfigResource) -> Mapping[str, str]:
        return self.by_resource.get(resource, _EMPTY)

    def topic(self, name: str) -> Mapping[str, str]:
        return self.by_resource.get(ConfigResource(ResourceType.TOPIC, name), _EMPTY)

    def broker(self, broker_id: int) -> Mapping[str, str]:
        return self.by_resource.get(ConfigResource(ResourceType.BROKER, str(broker_id)), _EMPTY)

    @property
    def cluster_default(self) -> Mapping[str, str]:
        return self.by_resource.get(CLUSTER_DEFAULT, _EMPTY)


class ConfigsDelta:
    __slots__ = ("image", "resources")

    def __init__(self, image: ConfigsImage) -> None:
        self.image = image
        self.resources: dict[ConfigResource, MapChanges[str, str]] = {}

    def _resource(self, resource: ConfigResource) -> MapChanges[str, str]:
        found = self.resources.get(resource)
        if found is None:
            found = self.resources[resource] = MapChanges(self.image.of(resource))
        return found

    def replay(self, record: ConfigRecord) -> None:
        changes = self._resource(ConfigResource(record.resource_type, record.resource_name))
        if record.value is None:
            changes.remove(record.name)
        else:
            changes.set(record.name, record.value)

    def remove_topic(self, name: str) -> None:
        resource = ConfigResource(ResourceType.TOPIC, name)
        if resource in self.resources or resource in self.image.by_resource:
            removed = self.resources[resource] = MapChanges(self.image.of(resource))
            for key in removed.base:
                removed.remove(key)

    def apply(self) -> ConfigsImage:
        if not self.resources:
            return self.image
        merged = MapChanges(self.image.by_resource)
        for resource, changes in self.resources.items():
            values = changes.apply()
            if values:
                merged.set(resource, values)
            else:
                merged.remove(resource)
        return ConfigsImage(merged.apply())
