"""A metadata image as a tree of folders and files, with the names and texts of Kafka's metadata shell.

In: an image. Out: nodes, created when they are first needed. Default quotas have the name `<default>`; Kafka
gives them none. Does not know: paths, printing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from barnabas import __version__
from barnabas.metadata import versions
from barnabas.metadata.cluster import BrokerRegistration, ControllerRegistration, Endpoint, FeatureRange
from barnabas.metadata.configs import ResourceType
from barnabas.metadata.image import MetadataImage, Provenance
from barnabas.metadata.partitions import RECOVERED, PartitionRegistration
from barnabas.metadata.quotas import QuotaEntity
from barnabas.metadata.security import AccessControlEntry, DelegationToken, ScramCredential
from barnabas.metadata.topics import TopicImage
from barnabas.protocol import uuid

KAFKA_VERSION = "4.3.1"
SECURITY_PROTOCOLS = {0: "PLAINTEXT", 1: "SSL", 2: "SASL_PLAINTEXT", 3: "SASL_SSL"}
MECHANISMS = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
RESOURCES = ("UNKNOWN", "ANY", "TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER")
PATTERNS = ("UNKNOWN", "ANY", "MATCH", "LITERAL", "PREFIXED")
PERMISSIONS = ("UNKNOWN", "ANY", "DENY", "ALLOW")
OPERATIONS = (
    *("UNKNOWN", "ANY", "ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "CLUSTER_ACTION"),
    *("DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE", "CREATE_TOKENS", "DESCRIBE_TOKENS"),
    "TWO_PHASE_COMMIT",
)
QUOTA_NAMES = {"client-id": "clientId", "ip": "ip", "user": "user"}
DEFAULT = "<default>"


@dataclass(frozen=True, slots=True)
class Folder:
    children: Mapping[str, Callable[[], Node]]

    def names(self) -> list[str]:
        return sorted(self.children)

    def child(self, name: str) -> Node | None:
        make = self.children.get(name)
        return None if make is None else make()


@dataclass(frozen=True, slots=True)
class File:
    text: str


Node = Folder | File


def files(content: Mapping[str, str]) -> Folder:
    return Folder({name: partial(File, text) for name, text in content.items()})


def root(image: MetadataImage) -> Folder:
    local = {"version": KAFKA_VERSION, "commitId": f"barnabas-{__version__}"}
    return Folder({"local": lambda: files(local), "image": lambda: image_folder(image)})


def image_folder(image: MetadataImage) -> Folder:
    return Folder(
        {
            "provenance": lambda: File(provenance_text(image.provenance)),
            "features": lambda: files(dict(feature_texts(image))),
            "cluster": lambda: cluster_folder(image),
            "topics": lambda: topics_folder(image),
            "configs": lambda: configs_folder(image),
            "clientQuotas": lambda: quotas_folder(image),
            "producerIds": lambda: files({"nextProducerId": str(image.next_producer_id)}),
            "acls": lambda: Folder({"byId": lambda: acls_folder(image)}),
            "scram": lambda: scram_folder(image),
            "delegationToken": lambda: files(
                {token.id: token_text(token) for token in image.security.tokens.values()}
            ),
        }
    )


def provenance_text(at: Provenance) -> str:
    seconds, milliseconds = divmod(at.timestamp_ms, 1000)
    moment = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    fraction = f".{milliseconds:03}".rstrip("0") if milliseconds else ""
    return f"offset {at.offset}, epoch {at.epoch}, time {moment}{fraction}Z[UTC]"


def feature_texts(image: MetadataImage) -> Iterator[tuple[str, str]]:
    finalized = dict(image.features.finalized)
    level = finalized.pop(versions.METADATA_VERSION, None)
    yield (
        "metadataVersion",
        "Optional.empty" if level is None else f"Optional[{versions.release_name(level)}]",
    )
    for name, value in finalized.items():
        yield f"finalized_{name}", str(value)


def cluster_folder(image: MetadataImage) -> Folder:
    brokers = {str(each.id): broker_text(each) for each in image.cluster.brokers.values()}
    controllers = {str(each.id): controller_text(each) for each in image.cluster.controllers.values()}
    return Folder({"brokers": lambda: files(brokers), "controllers": lambda: files(controllers)})


def topics_folder(image: MetadataImage) -> Folder:
    by_name = {name: partial(topic_folder, topic) for name, topic in image.topics.by_name.items()}
    by_id = {uuid.to_text(topic.id): partial(topic_folder, topic) for topic in image.topics.by_id.values()}
    return Folder({"byName": lambda: Folder(by_name), "byId": lambda: Folder(by_id)})


def topic_folder(topic: TopicImage) -> Folder:
    partitions = {str(index): partition_text(each) for index, each in topic.partitions.items()}
    return files({"name": topic.name, "id": uuid.to_text(topic.id), **partitions})


def configs_folder(image: MetadataImage) -> Folder:
    found = {}
    for resource, values in image.configs.by_resource.items():
        kind = ResourceType(resource.type).name
        name = f"{kind}:{resource.name}" if resource.name else kind
        found[name] = partial(files, values)
    return Folder(found)


def quotas_folder(image: MetadataImage) -> Folder:
    return Folder(
        {
            entity_name(entity): partial(files, {name: str(value) for name, value in values.items()})
            for entity, values in image.quotas.by_entity.items()
        }
    )


def entity_name(entity: QuotaEntity) -> str:
    parts = dict(entity)
    return "_".join(
        f"{QUOTA_NAMES[kind]}({DEFAULT if parts[kind] is None else escaped(parts[kind] or '')})"
        for kind in QUOTA_NAMES
        if kind in parts
    )


def escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")


def acls_folder(image: MetadataImage) -> Folder:
    return files({uuid.to_text(acl_id): acl_text(acl) for acl_id, acl in image.security.acls.items()})


def scram_folder(image: MetadataImage) -> Folder:
    found: dict[str, dict[str, str]] = {name: {} for name in MECHANISMS}
    for name, number in MECHANISMS.items():
        for user, credential in image.security.scram.items():
            if user.mechanism == number:
                found[name][user.name] = scram_text(credential)
    return Folder({name: partial(files, users) for name, users in found.items()})


# -- texts ---------------------------------------------------------------------------------------------


def broker_text(broker: BrokerRegistration) -> str:
    rack = "Optional.empty" if broker.rack is None else f"Optional[{broker.rack}]"
    return (
        f"BrokerRegistration(id={broker.id}, epoch={broker.epoch}, "
        f"incarnationId={uuid.to_text(broker.incarnation_id)}, listeners={listeners(broker.listeners)}, "
        f"supportedFeatures={{{features(broker.features)}}}, rack={rack}, fenced={truth(broker.fenced)}, "
        f"inControlledShutdown={truth(broker.in_controlled_shutdown)}, "
        f"isMigratingZkBroker={truth(broker.is_migrating_zk_broker)}, directories={ids(broker.log_dirs)}, "
        f"cordonedDirectories={ids(broker.cordoned_log_dirs or ())})"
    )


def controller_text(controller: ControllerRegistration) -> str:
    return (
        f"ControllerRegistration(id={controller.id}, "
        f"incarnationId={uuid.to_text(controller.incarnation_id)}, "
        f"zkMigrationReady={truth(controller.zk_migration_ready)}, "
        f"listeners={listeners(controller.listeners)}, supportedFeatures={{{features(controller.features)}}})"
    )


def partition_text(partition: PartitionRegistration) -> str:
    state = "RECOVERED" if partition.leader_recovery_state == RECOVERED else "RECOVERING"
    return (
        f"PartitionRegistration(replicas={numbers(partition.replicas)}, "
        f"directories={ids(partition.directories)}, isr={numbers(partition.isr)}, "
        f"removingReplicas={numbers(partition.removing_replicas)}, "
        f"addingReplicas={numbers(partition.adding_replicas)}, elr={numbers(partition.elr)}, "
        f"lastKnownElr={numbers(partition.last_known_elr)}, leader={partition.leader}, "
        f"leaderRecoveryState={state}, leaderEpoch={partition.leader_epoch}, "
        f"partitionEpoch={partition.partition_epoch})"
    )


def acl_text(acl: AccessControlEntry) -> str:
    return (
        f"StandardAcl(resourceType={RESOURCES[acl.resource_type]}, resourceName={acl.resource_name}, "
        f"patternType={PATTERNS[acl.pattern_type]}, principal={acl.principal}, host={acl.host}, "
        f"operation={OPERATIONS[acl.operation]}, permissionType={PERMISSIONS[acl.permission_type]})"
    )


def scram_text(credential: ScramCredential) -> str:
    return (
        f"ScramCredentialData(salt={credential.salt.hex()}, storedKey={credential.stored_key.hex()}, "
        f"serverKey={credential.server_key.hex()}, iterations={credential.iterations})"
    )


def token_text(token: DelegationToken) -> str:
    return (
        f"DelegationTokenData(tokenId={token.id}, owner={token.owner}, tokenRequester={token.requester}, "
        f"renewers={' '.join(token.renewers)}, issueTimestamp={token.issue_timestamp}, "
        f"maxTimestamp={token.max_timestamp}, expiryTimestamp={token.expiration_timestamp})"
    )


def listeners(found: Mapping[str, Endpoint]) -> str:
    shown = (
        f"Endpoint(listenerName='{each.name}', "
        f"securityProtocol={SECURITY_PROTOCOLS.get(each.security_protocol, str(each.security_protocol))}, "
        f"host='{each.host}', port={each.port})"
        for _, each in sorted(found.items())
    )
    return f"[{', '.join(shown)}]"


def features(found: Mapping[str, FeatureRange]) -> str:
    return ", ".join(f"{name}: {each.lowest}-{each.highest}" for name, each in sorted(found.items()))


def ids(found: Iterable[bytes]) -> str:
    return f"[{', '.join(map(uuid.to_text, found))}]"


def numbers(found: Iterable[int]) -> str:
    return f"[{', '.join(map(str, found))}]"


def truth(value: bool) -> str:
    return "true" if value else "false"
