"""Commands and Java classes of older Kafka releases, and the tools that replace them.

In: a name. Out: the tool, or a text with the command to use instead. Does not know: options.
"""

from barnabas.cli.tools import BY_KAFKA_NAME, BY_NAME, Tool

RUN_CLASS = "kafka-run-class"

# Without the package, because Kafka has moved the classes between packages.
CLASSES = {
    "TopicCommand": "kafka-topics",
    "ConfigCommand": "kafka-configs",
    "AclCommand": "kafka-acls",
    "DelegationTokenCommand": "kafka-delegation-tokens",
    "ConsoleProducer": "kafka-console-producer",
    "ConsoleConsumer": "kafka-console-consumer",
    "GetOffsetShell": "kafka-get-offsets",
    "ConsumerGroupCommand": "kafka-consumer-groups",
    "ConsoleShareConsumer": "kafka-console-share-consumer",
    "ShareGroupCommand": "kafka-share-groups",
    "StreamsGroupCommand": "kafka-streams-groups",
    "StreamsResetter": "kafka-streams-application-reset",
    "GroupsCommand": "kafka-groups",
    "DumpLogSegments": "kafka-dump-log",
    "BrokerApiVersionsCommand": "kafka-broker-api-versions",
    "ClusterTool": "kafka-cluster",
    "MetadataQuorumCommand": "kafka-metadata-quorum",
    "MetadataShell": "kafka-metadata-shell",
    "LogDirsCommand": "kafka-log-dirs",
    "DeleteRecordsCommand": "kafka-delete-records",
    "FeatureCommand": "kafka-features",
    "LeaderElectionCommand": "kafka-leader-election",
    "PreferredReplicaLeaderElectionCommand": "kafka-leader-election",
    "ReassignPartitionsCommand": "kafka-reassign-partitions",
    "ClientMetricsCommand": "kafka-client-metrics",
    "TransactionsCommand": "kafka-transactions",
    "ReplicaVerificationTool": "kafka-replica-verification",
    "JmxTool": "kafka-jmx",
    "StorageTool": "kafka-storage",
    "ProducerPerformance": "kafka-producer-perf-test",
    "ConsumerPerformance": "kafka-consumer-perf-test",
    "ShareConsumerPerformance": "kafka-share-consumer-perf-test",
    "VerifiableProducer": "kafka-verifiable-producer",
    "VerifiableConsumer": "kafka-verifiable-consumer",
    "VerifiableShareConsumer": "kafka-verifiable-share-consumer",
    "EndToEndLatency": "kafka-e2e-latency",
    "Kafka": "kafka-server-start",
    "SchemaRegistryMain": "schema-registry-start",
    "KafkaRestMain": "kafka-rest-start",
    "ConnectStandalone": "connect-standalone",
    "ConnectDistributed": "connect-distributed",
    "KsqlServerMain": "ksql-server-start",
    "Ksql": "ksql",
}

NO_ZOOKEEPER = "there is no ZooKeeper any more: the metadata is in the brokers' own log. {instead}"
REPLACEMENTS = {
    "kafka-preferred-replica-election": (
        "use `barnabas leader-election --election-type preferred --all-topic-partitions`"
    ),
    "kafka-consumer-offset-checker": "use `barnabas lag`, or `barnabas consumer-groups --describe --group G`",
    "kafka-simple-consumer-shell": "use `barnabas consume --topic TOPIC --partition N --offset N`",
    "kafka-create-topic": "use `barnabas topics --create --topic TOPIC`",
    "kafka-list-topic": "use `barnabas topics --list`",
    "kafka-add-partitions": "use `barnabas topics --alter --topic TOPIC --partitions N`",
    "kafka-replay-log-producer": "use `barnabas consume ... | barnabas produce ...`",
    "zookeeper-server-start": NO_ZOOKEEPER.format(instead="Use `barnabas start` alone"),
    "zookeeper-server-stop": NO_ZOOKEEPER.format(instead="Use `barnabas stop` alone"),
    "zookeeper-shell": NO_ZOOKEEPER.format(instead="Use `barnabas metadata-shell --directory DATA`"),
    "zookeeper-security-migration": NO_ZOOKEEPER.format(instead="There is nothing to migrate"),
}


def tool_named(name: str) -> Tool | None:
    """A tool by its own name or Kafka's, with or without `kafka-`."""
    return BY_NAME.get(name) or BY_KAFKA_NAME.get(name) or BY_KAFKA_NAME.get(f"kafka-{name}")


def tool_of_class(class_name: str) -> Tool | None:
    """The tool that replaces a Java class of Kafka."""
    known = CLASSES.get(class_name.rpartition(".")[2])
    return None if known is None else BY_KAFKA_NAME[known]
