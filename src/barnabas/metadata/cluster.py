"""The registered nodes: brokers with their listeners, racks, log directories and fences; controllers.

In: RegisterBroker, UnregisterBroker, Fence, Unfence, BrokerRegistrationChange, RegisterController records.
Out: a new image, and which nodes changed.
Does not know: heartbeats and sessions (the controller keeps them), partitions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from barnabas.metadata.changes import MapChanges
from barnabas.metadata.versions import CORDONED_LOG_DIRS, DIRECTORY_ASSIGNMENT
from barnabas.protocol.log_records.metadata import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)

# Values of BrokerRegistrationChangeRecord's `fenced` and `in_controlled_shutdown`.
NO_CHANGE = 0
FENCE = 1
UNFENCE = -1
IN_CONTROLLED_SHUTDOWN = 1


class Endpoint(NamedTuple):
    name: str
    host: str
    port: int
    security_protocol: int


class FeatureRange(NamedTuple):
    lowest: int
    highest: int


@dataclass(frozen=True, slots=True)
class BrokerRegistration:
    id: int
    epoch: int
    incarnation_id: bytes
    listeners: Mapping[str, Endpoint]
    features: Mapping[str, FeatureRange]
    rack: str | None = None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    is_migrating_zk_broker: bool = False
    log_dirs: tuple[bytes, ...] = ()
    cordoned_log_dirs: tuple[bytes, ...] | None = None

    @property
    def is_active(self) -> bool:
        """Whether it may lead and follow: it is neither fenced nor shutting down."""
        return not self.fenced and not self.in_controlled_shutdown

    def to_record(self, level: int) -> RegisterBrokerRecord:
        """The record that describes this broker, as far as the cluster's `metadata.version` can."""
        cordoned = self.cordoned_log_dirs if level >= CORDONED_LOG_DIRS else None
        return RegisterBrokerRecord(
            broker_id=self.id,
            is_migrating_zk_broker=self.is_migrating_zk_broker,
            incarnation_id=self.incarnation_id,
            broker_epoch=self.epoch,
            end_points=[
                RegisterBrokerRecord.BrokerEndpoint(
                    name=listener.name,
                    host=listener.host,
                    port=listener.port,
                    security_protocol=listener.security_protocol,
                )
                for listener in self.listeners.values()
            ],
            features=[
                RegisterBrokerRecord.BrokerFeature(
                    name=name, min_supported_version=lowest, max_supported_version=highest
                )
                for name, (lowest, highest) in self.features.items()
            ],
            rack=self.rack,
            fenced=self.fenced,
            in_controlled_shutdown=self.in_controlled_shutdown,
            log_dirs=list(self.log_dirs) if level >= DIRECTORY_ASSIGNMENT else [],
            cordoned_log_dirs=None if cordoned is None else list(cordoned),
        )


@dataclass(frozen=True, slots=True)
class ControllerRegistration:
    id: int
    incarnation_id: bytes
    listeners: Mapping[str, Endpoint]
    features: Mapping[str, FeatureRange]
    zk_migration_ready: bool = False

    def to_record(self) -> RegisterControllerRecord:
        return RegisterControllerRecord(
            controller_id=self.id,
            incarnation_id=self.incarnation_id,
            zk_migration_ready=self.zk_migration_ready,
            end_points=[
                RegisterControllerRecord.ControllerEndpoint(
                    name=listener.name,
                    host=listener.host,
                    port=listener.port,
                    security_protocol=listener.security_protocol,
                )
                for listener in self.listeners.values()
            ],
            features=[
                RegisterControllerRecord.ControllerFeature(
                    name=name, min_supported_version=lowest, max_supported_version=highest
                )
                for name, (lowest, highest) in self.features.items()
            ],
        )


@dataclass(frozen=True, slots=True)
class ClusterImage:
    brokers: Mapping[int, BrokerRegistration] = field(default_factory=dict)
    controllers: Mapping[int, ControllerRegistration] = field(default_factory=dict)

    def is_active(self, broker_id: int) -> bool:
        broker = self.brokers.get(broker_id)
        return broker is not None and broker.is_active


class ClusterDelta:
    __slots__ = ("brokers", "controllers", "image")

    def __init__(self, image: ClusterImage) -> None:
        self.image = image
        self.brokers: MapChanges[int, BrokerRegistration] = MapChanges(image.brokers)
        self.controllers: MapChanges[int, ControllerRegistration] = MapChanges(image.controllers)

    def replay_register_broker(self, record: RegisterBrokerRecord) -> None:
        cordoned = record.cordoned_log_dirs
        self.brokers.set(
            record.broker_id,
            BrokerRegistration(
                id=record.broker_id,
                epoch=record.broker_epoch,
                incarnation_id=record.incarnation_id,
                listeners={
                    each.name: Endpoint(each.name, each.host, each.port, each.security_protocol)
                    for each in record.end_points
                },
                features={
                    each.name: FeatureRange(each.min_supported_version, each.max_supported_version)
                    for each in record.features
                },
                rack=record.rack,
                fenced=record.fenced,
                in_controlled_shutdown=record.in_controlled_shutdown,
                is_migrating_zk_broker=record.is_migrating_zk_broker,
                log_dirs=tuple(record.log_dirs),
                cordoned_log_dirs=None if cordoned is None else tuple(cordoned),
            ),
        )

    def replay_unregister_broker(self, record: UnregisterBrokerRecord) -> None:
        self.brokers.remove(record.broker_id)

    def replay_fence(self, record: FenceBrokerRecord) -> None:
        self.brokers.set(record.id, replace(self._broker(record.id, record.epoch), fenced=True))

    def replay_unfence(self, record: UnfenceBrokerRecord) -> None:
        self.brokers.set(record.id, replace(self._broker(record.id, record.epoch), fenced=False))

    def replay_change(self, record: BrokerRegistrationChangeRecord) -> None:
        broker = self._broker(record.broker_id, record.broker_epoch)
        cordoned = record.cordoned_log_dirs
        self.brokers.set(
            record.broker_id,
            replace(
                broker,
                fenced=broker.fenced if record.fenced == NO_CHANGE else record.fenced == FENCE,
                in_controlled_shutdown=broker.in_controlled_shutdown
                or record.in_controlled_shutdown != NO_CHANGE,
                log_dirs=tuple(record.log_dirs) or broker.log_dirs,
                cordoned_log_dirs=broker.cordoned_log_dirs if cordoned is None else tuple(cordoned),
            ),
        )

    def _broker(self, broker_id: int, epoch: int) -> BrokerRegistration:
        broker = self.brokers.get(broker_id)
        if broker is None or broker.epoch != epoch:
            raise ValueError(f"no broker {broker_id} is registered with epoch {epoch}")
        return broker

    def replay_controller(self, record: RegisterControllerRecord) -> None:
        self.controllers.set(
            record.controller_id,
            ControllerRegistration(
                id=record.controller_id,
                incarnation_id=record.incarnation_id,
                listeners={
                    each.name: Endpoint(each.name, each.host, each.port, each.security_protocol)
                    for each in record.end_points
                },
                features={
                    each.name: FeatureRange(each.min_supported_version, each.max_supported_version)
                    for each in record.features
                },
                zk_migration_ready=record.zk_migration_ready,
            ),
        )

    def apply(self) -> ClusterImage:
        return ClusterImage(self.brokers.apply(), self.controllers.apply())
