"""Names of loggers: Kafka's, and ours that mean the same.

In: a name as an operator knows it from log4j2 (`kafka.controller`, `org.apache.kafka.raft.KafkaRaftClient`).
Out: the name of the logger of this project that writes such lines. Three of Kafka's loggers exist here under
their own names. Does not know: levels, files.
"""

from __future__ import annotations

REQUESTS = "kafka.request.logger"
STATE_CHANGES = "state.change.logger"
AUTHORIZER = "kafka.authorizer.logger"
OWN_OF_KAFKA = (REQUESTS, STATE_CHANGES, AUTHORIZER)
OURS = "barnabas"

# Kafka's packages and classes, and our loggers. The longest prefix counts.
KAFKAS = {
    "kafka": OURS,
    "kafka.cluster.Partition": "barnabas.isr",
    "kafka.controller": "barnabas.quorum.controller",
    "kafka.coordinator.group": "barnabas.coordinator",
    "kafka.coordinator.transaction": "barnabas.transactions",
    "kafka.log": "barnabas.storage",
    "kafka.log.LogCleaner": "barnabas.cleaner",
    "kafka.network": "barnabas.server",
    "kafka.raft": "barnabas.quorum",
    "kafka.server": OURS,
    "kafka.server.BrokerLifecycleManager": "barnabas.quorum.broker_lifecycle",
    "kafka.server.DynamicBrokerConfig": "barnabas.settings",
    "kafka.server.ReplicaFetcherThread": "barnabas.following",
    "kafka.server.ReplicaManager": "barnabas.replicas",
    "org.apache.kafka": OURS,
    "org.apache.kafka.clients.NetworkClient": "barnabas.peers",
    "org.apache.kafka.common.network": "barnabas.channel",
    "org.apache.kafka.common.security": "barnabas.logins",
    "org.apache.kafka.controller": "barnabas.quorum.controller",
    "org.apache.kafka.coordinator.group": "barnabas.coordinator",
    "org.apache.kafka.coordinator.transaction": "barnabas.transactions",
    "org.apache.kafka.image": "barnabas.quorum.metadata_replica",
    "org.apache.kafka.metadata": "barnabas.quorum",
    "org.apache.kafka.raft": "barnabas.quorum",
    "org.apache.kafka.storage.internals.log": "barnabas.storage",
    "org.apache.kafka.storage.internals.log.LogCleaner": "barnabas.cleaner",
}

# Classes whose levels operators of Kafka change. Tools refuse a name that a broker does not list.
CLASSES = (
    "kafka.coordinator.transaction.TransactionCoordinator",
    "kafka.coordinator.transaction.TransactionStateManager",
    "kafka.log.LogManager",
    "kafka.network.RequestChannel",
    "kafka.network.SocketServer",
    "kafka.server.BrokerServer",
    "kafka.server.ControllerServer",
    "kafka.server.KafkaApis",
    "kafka.server.ReplicaAlterLogDirsManager",
    "kafka.server.ReplicaFetcherManager",
    "kafka.server.metadata.BrokerMetadataPublisher",
    "org.apache.kafka.common.network.Selector",
    "org.apache.kafka.common.security.authenticator.SaslServerAuthenticator",
    "org.apache.kafka.controller.QuorumController",
    "org.apache.kafka.controller.ReplicationControlManager",
    "org.apache.kafka.coordinator.group.GroupCoordinatorService",
    "org.apache.kafka.coordinator.group.GroupMetadataManager",
    "org.apache.kafka.image.loader.MetadataLoader",
    "org.apache.kafka.raft.KafkaRaftClient",
    "org.apache.kafka.raft.QuorumState",
    "org.apache.kafka.storage.internals.log.UnifiedLog",
)


def ours(name: str) -> str:
    """Our name of a logger of Kafka's; any other name as it is."""
    if name in OWN_OF_KAFKA:
        return name
    prefix = name
    while prefix:
        found = KAFKAS.get(prefix)
        if found is not None:
            return found
        prefix = prefix.rpartition(".")[0]
    return name


def is_kafkas(name: str) -> bool:
    return ours(name) != name


# Kafka's files, and the loggers whose lines they get. All other lines go to server.log.
SERVER = "server"
FILES: dict[str, tuple[str, ...]] = {
    "controller": ("barnabas.quorum", "barnabas.controller"),
    "state-change": (STATE_CHANGES,),
    "kafka-request": (REQUESTS,),
    "kafka-authorizer": (AUTHORIZER,),
    "log-cleaner": ("barnabas.cleaner", "barnabas.storage.compaction"),
}


def file_of(logger: str) -> str:
    """The file that gets the lines of a logger."""
    for file, roots in FILES.items():
        if any(logger == root or logger.startswith(f"{root}.") for root in roots):
            return file
    return SERVER
