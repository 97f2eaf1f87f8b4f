"""Input of a decision: the image, the node's settings, broker sessions, time and random numbers.

In: values that the host collects before each decision. Out: lookups that several decisions need (active
brokers, a topic's effective `min.insync.replicas`, a broker's default log directory).
Does not know: requests.
"""

from __future__ import annotations

from collections.abc import Callable, MutableSequence
from dataclasses import dataclass
from typing import Any, Protocol

from barnabas.controller.sessions import BrokerSessions
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.partitions import (
    MIGRATING_DIRECTORY,
    UNASSIGNED_DIRECTORY,
    PartitionRegistration,
    is_reserved_directory,
)
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.security.principal import ANONYMOUS, Principal
from barnabas.settings.broker import BrokerSettings
from barnabas.settings.secrets import Secrets

# Kafka's limit on the records of one request, and so on one atomic batch.
RECORDS_PER_DECISION_MAX = 10_000


class Rng(Protocol):
    """The part of `random.Random` that decisions use."""

    def randrange(self, stop: int, /) -> int: ...
    def shuffle(self, items: MutableSequence[Any], /) -> None: ...
    def randbytes(self, count: int, /) -> bytes: ...


def unlimited(count: int) -> None:
    """Accept any number of mutations."""


@dataclass(frozen=True, slots=True)
class Context:
    image: MetadataImage
    settings: BrokerSettings
    cluster_id: str
    sessions: BrokerSessions
    rng: Rng
    now_ms: int
    next_offset: int  # the offset of this decision's first record
    kraft_version: int = 0
    secrets: Secrets | None = None  # None: passwords are stored unencrypted
    charge_mutations: Callable[[int], None] = unlimited  # of partitions; refuses where a quota is used up
    principal: Principal = ANONYMOUS  # the caller
    wall_ms: int = 0  # the time of day; `now_ms` is the time of a clock that never goes back

    @property
    def level(self) -> int:
        return self.image.features.metadata_level

    def is_active(self, broker_id: int) -> bool:
        return self.image.cluster.is_active(broker_id)

    def new_uuid(self) -> bytes:
        """A random id that is not reserved and whose text has no leading dash, which tools would read as
        an option."""
        while True:
            raw = bytearray(self.rng.randbytes(16))
            raw[6] = raw[6] & 0x0F | 0x40
            raw[8] = raw[8] & 0x3F | 0x80
            # The first base64 digit is a dash when the first six bits are 62.
            if raw[0] >> 2 != 62 and not is_reserved_directory(bytes(raw)):
                return bytes(raw)

    def default_directory(self, broker_id: int) -> bytes:
        """The directory of a new replica on this broker, if it is already certain."""
        broker = self.image.cluster.brokers.get(broker_id)
        if broker is None:
            return UNASSIGNED_DIRECTORY
        if not broker.log_dirs:
            return MIGRATING_DIRECTORY
        return broker.log_dirs[0] if len(broker.log_dirs) == 1 else UNASSIGNED_DIRECTORY

    def topic_config(self, topic: str, name: str) -> str | None:
        """A dynamic value: the topic's own, else the default of all brokers."""
        own = self.image.configs.topic(topic).get(name)
        return own if own is not None else self.image.configs.cluster_default.get(name)

    def min_insync_replicas(self, topic: str, replication_factor: int) -> int:
        value = self.topic_config(topic, "min.insync.replicas")
        wanted = int(value) if value is not None else int(self.settings["min.insync.replicas"])
        return min(wanted, replication_factor)

    def unclean_election_allowed(self, topic: str) -> bool:
        value = self.topic_config(topic, "unclean.leader.election.enable")
        if value is not None:
            return value.strip().lower() == "true"
        return bool(self.settings["unclean.leader.election.enable"])

    def check_broker_epoch(self, broker_id: int, epoch: int) -> None:
        broker = self.image.cluster.brokers.get(broker_id)
        if broker is None:
            raise KafkaError(
                ErrorCode.STALE_BROKER_EPOCH, f"No broker registration found for broker id {broker_id}"
            )
        if broker.epoch != epoch:
            raise KafkaError(
                ErrorCode.STALE_BROKER_EPOCH,
                f"Expected broker epoch {broker.epoch}, but got broker epoch {epoch}",
            )

    def new_partition(self, replicas: tuple[int, ...]) -> PartitionRegistration | None:
        """A new partition on these replicas, led by the first active one; None if none is active."""
        isr = tuple(replica for replica in replicas if self.is_active(replica))
        if not isr:
            return None
        directories = tuple(self.default_directory(replica) for replica in replicas)
        return PartitionRegistration(replicas, directories, isr, isr[0])
