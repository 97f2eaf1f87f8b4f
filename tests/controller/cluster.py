"""A controller without a log: commands in, the records and replies of its decisions out, as text.

It applies decisions at once, so that the next command sees them. Ids are named in the order of appearance.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from barnabas.controller import producer_ids
from barnabas.controller.activation import activate
from barnabas.controller.alter_partition import alter_partition
from barnabas.controller.brokers import heartbeat, registration
from barnabas.controller.brokers.directories import assign_replicas_to_dirs
from barnabas.controller.context import Context
from barnabas.controller.create_partitions import create_partitions
from barnabas.controller.create_topics import create_topics
from barnabas.controller.decision import Decision
from barnabas.controller.delete_topics import delete_topics
from barnabas.controller.elections import elect_leaders
from barnabas.controller.periodic.balancing import balance_leaders, elect_unclean_leaders
from barnabas.controller.reassignments import alter_partition_reassignments
from barnabas.controller.sessions import BrokerSessions
from barnabas.metadata.bootstrap import bootstrap_records
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import EMPTY_IMAGE, MetadataImage
from barnabas.metadata.transactions import TransactionFilter
from barnabas.metadata.versions import release_level, supported_features
from barnabas.protocol import NULL_UUID, ErrorCode, KafkaError, Message, Struct
from barnabas.protocol.log_records.metadata import ConfigRecord, RegisterBrokerRecord
from barnabas.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from barnabas.protocol.messages.alter_partition import AlterPartitionRequest
from barnabas.protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from barnabas.protocol.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from barnabas.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from barnabas.protocol.messages.broker_registration import BrokerRegistrationRequest
from barnabas.protocol.messages.create_partitions import CreatePartitionsRequest
from barnabas.protocol.messages.create_topics import CreateTopicsRequest
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest
from barnabas.protocol.messages.elect_leaders import ElectLeadersRequest
from barnabas.protocol.messages.unregister_broker import UnregisterBrokerRequest
from barnabas.settings.broker import BrokerSettings

SESSION_TIMEOUT_MS = 9_000
LOWEST_CONTROLLER = 100
QUIET_FIELDS = {"configs", "features", "end_points", "throttle_time_ms", "unknown_tagged_fields"}

SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.voters": "1@127.0.0.1:9093",
    "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
    "controller.listener.names": "CONTROLLER",
    "log.dirs": "/unused",
}


def directory(name: str) -> bytes:
    return b"directory-of-" + name.encode().rjust(3, b"-")


class Cluster:
    """The state of an active controller. `do(verb, arguments)` runs one line of a transcript."""

    def __init__(self, settings: dict[str, str] | None = None) -> None:
        self.settings = BrokerSettings.load({**SETTINGS, **(settings or {})})
        self.image: MetadataImage = EMPTY_IMAGE
        self.sessions = BrokerSessions(SESSION_TIMEOUT_MS)
        self.rng = random.Random(7)
        self.now_ms = 0
        self.end_offset = 0
        self.registered_at: dict[int, int] = {}
        self.names: dict[bytes, str] = {NULL_UUID: "none"}

    @property
    def context(self) -> Context:
        return Context(
            self.image, self.settings, "cluster", self.sessions, self.rng, self.now_ms, self.end_offset
        )

    def do(self, verb: str, arguments: dict[str, str]) -> str:
        command: Callable[..., Decision[Any] | str] = getattr(self, f"do_{verb}")
        try:
            decision = command(**{name.replace(".", "_"): value for name, value in arguments.items()})
        except KafkaError as error:
            return f"error {ErrorCode(error.code).name}: {error.message}"
        if isinstance(decision, str):
            return decision
        self.apply(decision.records)
        lines = [self.show_record(record) for record in decision.records]
        if decision.reply is not None:
            lines.append(self.show("reply", decision.reply))
        return "\n".join(lines)

    def apply(self, records: Any) -> None:
        delta = MetadataDelta(self.image)
        delta.replay_all(TransactionFilter().pass_on(records))
        for index, record in enumerate(records):
            if isinstance(record, RegisterBrokerRecord):
                self.registered_at[record.broker_id] = self.end_offset + index
        self.image = delta.apply()
        self.end_offset += len(records)

    # Commands

    def do_activate(self, release: str = "4.3", **features: str) -> Decision[None]:
        level = release_level(release)
        assert level is not None
        wanted = {name.replace("_", "."): int(value) for name, value in features.items()}
        return Decision(None, activate(self.image, False, bootstrap_records(level, wanted), 1))

    def do_register(
        self, broker: str, incarnation: str = "a", rack: str | None = None, dirs: str = "", clean: str = ""
    ) -> Decision[Any]:
        existing = self.image.cluster.brokers.get(int(broker))
        request = BrokerRegistrationRequest(
            broker_id=int(broker),
            cluster_id="cluster",
            incarnation_id=f"incarnation-{broker}{incarnation:>3}".encode()[:16].ljust(16, b"-"),
            listeners=[BrokerRegistrationRequest.Listener(name="PLAINTEXT", host="host", port=9092)],
            features=[
                BrokerRegistrationRequest.Feature(
                    name=name, min_supported_version=lowest, max_supported_version=highest
                )
                for name, (lowest, highest) in supported_features().items()
            ],
            rack=rack,
            log_dirs=[directory(each) for each in (dirs or broker).split(",")],
            previous_broker_epoch=existing.epoch if clean and existing else -1,
        )
        decision = registration.register_broker(self.context, request)
        self.sessions.touch(int(broker), self.now_ms)
        return decision

    def do_beat(
        self, broker: str, want: str = "", offset: str = "", offline: str = "", cordoned: str | None = None
    ) -> Decision[Any]:
        number = int(broker)
        registered = self.image.cluster.brokers.get(number)
        request = BrokerHeartbeatRequest(
            broker_id=number,
            broker_epoch=registered.epoch if registered else -1,
            current_metadata_offset=int(offset) if offset else self.end_offset - 1,
            want_fence=want == "fence",
            want_shut_down=want == "shutdown",
            offline_log_dirs=[directory(each) for each in offline.split(",") if each],
            cordoned_log_dirs=None
            if cordoned is None
            else [directory(each) for each in cordoned.split(",") if each],
        )
        decision = heartbeat.heartbeat(self.context, request, self.registered_at.get(number, 0))
        session = self.sessions.touch(number, self.now_ms, request.current_metadata_offset)
        if decision.reply.is_fenced:
            session.controlled_shutdown_offset = -1
        elif want == "shutdown" and session.controlled_shutdown_offset < 0:
            session.controlled_shutdown_offset = self.end_offset + len(decision.records) - 1
        return decision

    def do_assign(self, broker: str, topic: str, partitions: str, to: str, epoch: str = "") -> Decision[Any]:
        registered = self.image.cluster.brokers.get(int(broker))
        known = self.image.topics.by_name.get(topic)
        wanted = AssignReplicasToDirsRequest.DirectoryData
        asked = wanted.TopicData(
            topic_id=known.id if known is not None else b"nobody knows me!",
            partitions=[
                wanted.TopicData.PartitionData(partition_index=int(number))
                for number in partitions.split(",")
            ],
        )
        request = AssignReplicasToDirsRequest(
            broker_id=int(broker),
            broker_epoch=int(epoch) if epoch else registered.epoch if registered else -1,
            directories=[wanted(id=directory(to), topics=[asked])],
        )
        return assign_replicas_to_dirs(self.context, request)

    def do_directories(self, topic: str) -> str:
        return "\n".join(
            f"{topic}-{number} " + ",".join(self.text(each) for each in partition.directories)
            for number, partition in self.image.topics.by_name[topic].partitions.items()
        )

    def do_wait(self, ms: str) -> str:
        self.now_ms += int(ms)
        return ""

    def do_fence_silent(self) -> Decision[Any]:
        decision = heartbeat.fence_silent(self.context)
        return Decision(None, decision.records)

    def do_unregister(self, broker: str) -> Decision[Any]:
        return registration.unregister_broker(self.context, UnregisterBrokerRequest(broker_id=int(broker)))

    def do_create(
        self,
        topic: str,
        partitions: str = "-1",
        factor: str = "-1",
        on: str = "",
        validate: str = "",
        **configs: str,
    ) -> Decision[Any]:
        wanted = CreateTopicsRequest.CreatableTopic
        topics = [
            wanted(
                name=name,
                num_partitions=int(partitions),
                replication_factor=int(factor),
                assignments=[
                    wanted.CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
                    for index, brokers in enumerate(placed(on))
                ],
                configs=[
                    wanted.CreatableTopicConfig(name=key.replace("_", "."), value=value)
                    for key, value in configs.items()
                ],
            )
            for name in topic.split(",")
        ]
        return create_topics(self.context, CreateTopicsRequest(topics=topics, validate_only=bool(validate)))

    def do_grow(self, topic: str, to: str, on: str = "", validate: str = "") -> Decision[Any]:
        wanted = CreatePartitionsRequest.CreatePartitionsTopic
        assignments = [wanted.CreatePartitionsAssignment(broker_ids=brokers) for brokers in placed(on)]
        request = CreatePartitionsRequest(
            topics=[wanted(name=topic, count=int(to), assignments=assignments if on else None)],
            validate_only=bool(validate),
        )
        return create_partitions(self.context, request)

    def do_delete(self, topic: str = "", id_of: str = "") -> Decision[Any]:
        by_id = [
            DeleteTopicsRequest.DeleteTopicState(topic_id=self.image.topics.by_name[name].id)
            for name in id_of.split(",")
            if name
        ]
        names = [name for name in topic.split(",") if name]
        return delete_topics(self.context, DeleteTopicsRequest(topics=by_id, topic_names=names))

    def do_allocate(self, broker: str, epoch: str = "") -> Decision[Any]:
        registered = self.image.cluster.brokers.get(int(broker))
        known = registered.epoch if registered else -1
        request = AllocateProducerIdsRequest(
            broker_id=int(broker), broker_epoch=int(epoch) if epoch else known
        )
        return producer_ids.allocate(self.context, request)

    def do_isr(
        self,
        broker: str,
        partition: str,
        isr: str,
        epoch: str = "",
        version: str = "",
        lives: str = "",
        recovering: str = "",
    ) -> Decision[Any]:
        """AlterPartition, with the epochs that the leader should know unless they are given."""
        topic, _, number = partition.rpartition("-")
        known = self.image.topics.by_name[topic]
        now = known.partitions.get(int(number))
        asked = AlterPartitionRequest.TopicData
        brokers = self.image.cluster.brokers
        ids = [int(each) for each in isr.split(",") if each]
        epochs = [int(each) for each in lives.split(",")] if lives else [brokers[each].epoch for each in ids]
        request = AlterPartitionRequest(
            broker_id=int(broker),
            broker_epoch=brokers[int(broker)].epoch,
            topics=[
                asked(
                    topic_id=known.id,
                    partitions=[
                        asked.PartitionData(
                            partition_index=int(number),
                            leader_epoch=int(epoch) if epoch else now.leader_epoch if now else 0,
                            partition_epoch=int(version) if version else now.partition_epoch if now else 0,
                            leader_recovery_state=1 if recovering else 0,
                            new_isr_with_epochs=[
                                asked.PartitionData.BrokerState(broker_id=each, broker_epoch=life)
                                for each, life in zip(ids, epochs, strict=True)
                            ],
                        )
                    ],
                )
            ],
        )
        return alter_partition(self.context, request)

    def do_reassign(self, partition: str, to: str = "", keep_factor: str = "") -> Decision[Any]:
        topic, _, number = partition.rpartition("-")
        asked = AlterPartitionReassignmentsRequest.ReassignableTopic
        request = AlterPartitionReassignmentsRequest(
            allow_replication_factor_change=not keep_factor,
            topics=[
                asked(
                    name=topic,
                    partitions=[
                        asked.ReassignablePartition(
                            partition_index=int(number),
                            replicas=[int(each) for each in to.split(",")] if to else None,
                        )
                    ],
                )
            ],
        )
        return alter_partition_reassignments(self.context, request)

    def do_elect(self, partition: str = "", kind: str = "preferred") -> Decision[Any]:
        topic, _, number = partition.rpartition("-")
        asked = ElectLeadersRequest.TopicPartitions
        request = ElectLeadersRequest(
            election_type=0 if kind == "preferred" else 1,
            topic_partitions=[asked(topic=topic, partitions=[int(number)])] if partition else None,
        )
        return elect_leaders(self.context, request)

    def do_balance(self) -> Decision[Any]:
        return Decision(None, balance_leaders(self.context).records)

    def do_elect_unclean(self) -> Decision[Any]:
        return Decision(None, elect_unclean_leaders(self.context).records)

    def do_set(self, topic: str, **configs: str) -> str:
        self.apply(
            [
                ConfigRecord(resource_type=2, resource_name=topic, name=name.replace("_", "."), value=value)
                for name, value in configs.items()
            ]
        )
        return ""

    def do_partitions(self, topic: str) -> str:
        lines = []
        for number, partition in self.image.topics.by_name[topic].partitions.items():
            text = f"{topic}-{number} replicas={list(partition.replicas)} isr={list(partition.isr)}"
            text += f" leader={partition.leader} epoch={partition.leader_epoch}"
            if partition.elr or partition.last_known_elr:
                text += f" elr={list(partition.elr)} last={list(partition.last_known_elr)}"
            if partition.leader_recovery_state:
                text += " recovering"
            if partition.adding_replicas or partition.removing_replicas:
                text += (
                    f" adding={list(partition.adding_replicas)} removing={list(partition.removing_replicas)}"
                )
            lines.append(text)
        return "\n".join(lines)

    def do_brokers(self) -> str:
        return "\n".join(
            f"broker {broker.id} epoch={broker.epoch} {'fenced' if broker.fenced else 'unfenced'}"
            + (" leaving" if broker.in_controlled_shutdown else "")
            for broker in self.image.cluster.brokers.values()
        )

    # Showing

    def show_record(self, record: Message) -> str:
        return self.show("record " + type(record).__name__.removesuffix("Record"), record)

    def show(self, head: str, value: Any) -> str:
        return f"{head} {self.text(value)}".rstrip()

    def text(self, value: Any) -> str:
        if isinstance(value, Struct):
            blank = type(value)()
            shown = [
                f"{field.name}={self.text(got)}"
                for field in value.schema.fields
                if field.name not in QUIET_FIELDS
                and (got := getattr(value, field.name)) != getattr(blank, field.name)
            ]
            return " ".join(shown)
        if isinstance(value, list):
            separator = "; " if value and isinstance(value[0], Struct) else ","
            return "[" + separator.join(self.text(each) for each in value) + "]"
        if isinstance(value, ErrorCode):
            return value.name
        if isinstance(value, bytes):
            return self.name_of(value)
        return str(value)

    def name_of(self, value: bytes) -> str:
        if value.startswith((b"directory-of-", b"incarnation-")):
            return (
                value.decode()
                .replace("directory-of-", "dir")
                .replace("-", "")
                .replace(" ", "")
                .replace("incarnation", "run")
            )
        return self.names.setdefault(value, f"id{len(self.names)}")


def placed(text: str) -> list[list[int]]:
    """`1,2;2,1` is two partitions on brokers 1, 2 and 2, 1."""
    return [[int(broker) for broker in part.split(",") if broker] for part in text.split(";")] if text else []
