"""The table of tools: the name of each, the module that holds it, and the names that Kafka gave it.

A tool's module has `add_arguments(parser)`, `run(options, out)` (plain or async, returning the exit status or
None), and `EXAMPLES`; `PREFIX` goes in front of its errors where Kafka's tool has one. See `cli.main`.
"""

from typing import NamedTuple


class Tool(NamedTuple):
    name: str
    module: str
    summary: str
    kafka_name: str | None = None


TOOLS = (
    Tool("start", "start", "start a broker in the foreground", "kafka-server-start"),
    Tool("stop", "stop", "stop a broker that runs on this machine", "kafka-server-stop"),
    Tool("storage", "storage", "format a data folder, or say what is in it", "kafka-storage"),
    Tool("topics", "topics", "create, list, describe, alter and delete topics", "kafka-topics"),
    Tool("produce", "produce", "send lines from standard input to a topic", "kafka-console-producer"),
    Tool("consume", "consume", "print the records of topics", "kafka-console-consumer"),
    Tool(
        "get-offsets", "get_offsets", "print first, last or timed offsets of partitions", "kafka-get-offsets"
    ),
    Tool(
        "consumer-groups",
        "consumer_groups",
        "list and describe consumer groups, reset offsets",
        "kafka-consumer-groups",
    ),
    Tool("groups", "groups", "list groups of all kinds", "kafka-groups"),
    Tool("lag", "lag", "show how far groups are behind, in messages and in time"),
    Tool("dump-log", "dump_log", "print the content of log, index and snapshot files", "kafka-dump-log"),
    Tool("api-versions", "api_versions", "print which APIs each broker speaks", "kafka-broker-api-versions"),
    Tool("cluster", "cluster", "print a cluster's id and endpoints, unregister a broker", "kafka-cluster"),
    Tool("metadata-quorum", "metadata_quorum", "describe the metadata quorum", "kafka-metadata-quorum"),
    Tool("configs", "configs", "describe and alter settings, quotas and credentials", "kafka-configs"),
    Tool("log-dirs", "log_dirs", "show what brokers keep in their log dirs", "kafka-log-dirs"),
    Tool(
        "delete-records",
        "delete_records",
        "delete records of partitions up to an offset",
        "kafka-delete-records",
    ),
    Tool("features", "features", "show and change the feature levels of a cluster", "kafka-features"),
    Tool("leader-election", "leader_election", "elect leaders of partitions", "kafka-leader-election"),
    Tool(
        "reassign-partitions",
        "reassign_partitions",
        "move replicas to other brokers or log dirs",
        "kafka-reassign-partitions",
    ),
    Tool("drain", "drain", "move everything away from a broker"),
    Tool("client-metrics", "client_metrics", "choose the metrics that clients send", "kafka-client-metrics"),
    Tool(
        "transactions", "transactions", "show transactions, find and abort hanging ones", "kafka-transactions"
    ),
    Tool(
        "replica-verification",
        "replica_verification",
        "compare the replicas of partitions",
        "kafka-replica-verification",
    ),
    Tool("jmx", "jmx", "read metrics under the names of Kafka's MBeans", "kafka-jmx"),
    Tool("doctor", "doctor", "check this machine, and say what to change and why"),
    Tool(
        "metadata-shell",
        "metadata_shell",
        "browse a metadata snapshot or log like a file system",
        "kafka-metadata-shell",
    ),
    Tool("pipeline", "pipeline", "run a data pipeline that one file describes"),
    Tool("perf", "perf", "measure producing, consuming and latency"),
    Tool("producer-perf-test", "perf_producer", "measure producing", "kafka-producer-perf-test"),
    Tool("consumer-perf-test", "perf_consumer", "measure consuming", "kafka-consumer-perf-test"),
    Tool("e2e-latency", "perf_latency", "measure latency from produce to consume", "kafka-e2e-latency"),
)

HIDDEN = {"producer-perf-test", "consumer-perf-test", "e2e-latency"}  # `perf` shows the same
BY_NAME = {tool.name: tool for tool in TOOLS}
BY_KAFKA_NAME = {tool.kafka_name: tool for tool in TOOLS if tool.kafka_name}
