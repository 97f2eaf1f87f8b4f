"""The table of tools: the name of each, its module, and Kafka's name for it.

A tool's module has `add_arguments(parser)`, `run(options, out)` (plain or async; it returns the exit status
or None) and `EXAMPLES`. `PREFIX`, if Kafka's tool has one, is put before its errors. See `cli.main`.
"""

from typing import NamedTuple


class Tool(NamedTuple):
    name: str
    module: str
    summary: str
    kafka_name: str | None = None


TOOLS = (
    Tool("start", "node.start", "start a broker in the foreground", "kafka-server-start"),
    Tool("stop", "node.stop", "stop a broker that runs on this machine", "kafka-server-stop"),
    Tool("storage", "node.storage", "format a data folder, or show what is in it", "kafka-storage"),
    Tool("certs", "node.certs", "make certificates for development: an authority, brokers, clients"),
    Tool("topics", "topics.topics", "create, list, describe, alter and delete topics", "kafka-topics"),
    Tool(
        "produce",
        "records.produce",
        "send lines from standard input to a topic",
        "kafka-console-producer",
    ),
    Tool("consume", "records.consume", "print the records of topics", "kafka-console-consumer"),
    Tool(
        "share-consume",
        "records.share_consume",
        "print records as a member of a share group",
        "kafka-console-share-consumer",
    ),
    Tool(
        "get-offsets",
        "topics.get_offsets",
        "print the first or last offsets of partitions, or those at a time",
        "kafka-get-offsets",
    ),
    Tool(
        "consumer-groups",
        "groups.consumer_groups",
        "list and describe consumer groups, reset offsets",
        "kafka-consumer-groups",
    ),
    Tool(
        "share-groups",
        "groups.share_groups",
        "list and describe share groups, set offsets",
        "kafka-share-groups",
    ),
    Tool(
        "streams-groups",
        "groups.streams_groups",
        "list and describe streams groups, reset offsets",
        "kafka-streams-groups",
    ),
    Tool(
        "streams-reset",
        "groups.application_reset",
        "process the input of a streams application again",
        "kafka-streams-application-reset",
    ),
    Tool("groups", "groups.groups", "list groups of all kinds", "kafka-groups"),
    Tool("lag", "groups.lag", "show the consumer lag of groups, in records and in time, or serve it"),
    Tool("audit", "audit.audit", "compare what was sent with what arrived, tier by tier"),
    Tool("schemas", "schemas.schemas", "list, register, check, compare and move schemas of a registry"),
    Tool(
        "dump-log",
        "files.dump_log",
        "print the content of log, index and snapshot files",
        "kafka-dump-log",
    ),
    Tool(
        "api-versions",
        "cluster.api_versions",
        "print the API versions that each broker supports",
        "kafka-broker-api-versions",
    ),
    Tool(
        "cluster",
        "cluster.cluster",
        "print a cluster's id and endpoints, unregister a broker",
        "kafka-cluster",
    ),
    Tool(
        "metadata-quorum",
        "cluster.metadata_quorum",
        "describe the metadata quorum",
        "kafka-metadata-quorum",
    ),
    Tool(
        "configs",
        "cluster.configs",
        "describe and alter settings, quotas and credentials",
        "kafka-configs",
    ),
    Tool("roles", "security.roles", "bind roles to principals, and list them"),
    Tool("acls", "security.acls", "add, remove, list and explain ACLs", "kafka-acls"),
    Tool(
        "delegation-tokens",
        "security.delegation_tokens",
        "create, describe, renew and expire delegation tokens",
        "kafka-delegation-tokens",
    ),
    Tool("log-dirs", "cluster.log_dirs", "show the partitions in brokers' log dirs", "kafka-log-dirs"),
    Tool(
        "delete-records",
        "topics.delete_records",
        "delete records of partitions up to an offset",
        "kafka-delete-records",
    ),
    Tool(
        "features",
        "cluster.features",
        "show and change the feature levels of a cluster",
        "kafka-features",
    ),
    Tool(
        "leader-election",
        "topics.leader_election",
        "elect leaders of partitions",
        "kafka-leader-election",
    ),
    Tool(
        "reassign-partitions",
        "topics.reassign_partitions",
        "move replicas to other brokers or log dirs",
        "kafka-reassign-partitions",
    ),
    Tool("drain", "topics.drain", "move all replicas away from a broker"),
    Tool(
        "client-metrics",
        "cluster.client_metrics",
        "choose the metrics that clients send",
        "kafka-client-metrics",
    ),
    Tool(
        "transactions",
        "transactions.transactions",
        "show transactions, find and abort hanging ones",
        "kafka-transactions",
    ),
    Tool(
        "replica-verification",
        "topics.replica_verification",
        "compare the replicas of partitions",
        "kafka-replica-verification",
    ),
    Tool("dashboards", "metrics.dashboards", "write dashboards for Grafana and rules for Prometheus"),
    Tool("jmx", "metrics.jmx", "read metrics under the names of Kafka's MBeans", "kafka-jmx"),
    Tool("health", "alerts.health", "one page: what is wrong in a cluster, why, and what to do"),
    Tool("alerts", "alerts.alerts", "evaluate rules and tell people; show, silence and test alerts"),
    Tool("doctor", "node.doctor", "check this machine, and say what to change and why"),
    Tool(
        "metadata-shell",
        "files.metadata_shell",
        "browse a metadata snapshot or log like a file system",
        "kafka-metadata-shell",
    ),
    Tool(
        "verifiable-producer",
        "verifiable.producer",
        "produce numbers and print each result as JSON",
        "kafka-verifiable-producer",
    ),
    Tool(
        "verifiable-consumer",
        "verifiable.consumer",
        "consume in a group and print events as JSON",
        "kafka-verifiable-consumer",
    ),
    Tool(
        "verifiable-share-consumer",
        "verifiable.share_consumer",
        "consume in a share group and print events as JSON",
        "kafka-verifiable-share-consumer",
    ),
    Tool("registry", "services.registry", "start the schema registry"),
    Tool("rest", "services.rest", "start the REST proxy"),
    Tool("registry-start", "services.registry_start", "start the schema registry", "schema-registry-start"),
    Tool("rest-start", "services.rest_start", "start the REST proxy", "kafka-rest-start"),
    Tool("connect", "connect.connect", "workers of Connect: start them, look at connectors, write new ones"),
    Tool(
        "connect-standalone", "connect.standalone", "start a single worker of Connect", "connect-standalone"
    ),
    Tool("connect-distributed", "connect.distributed", "start a worker of a cluster", "connect-distributed"),
    Tool("pipeline", "pipelines.pipeline", "run a data pipeline that one file describes"),
    Tool("streams", "streams.streams", "run a topology on Spark, or reset its application"),
    Tool("sql", "sql.sql", "SQL over topics: a shell, a server, files with statements"),
    Tool("sql-start", "sql.server_start", "start the SQL server", "ksql-server-start"),
    Tool("sql-shell", "sql.ksql", "a shell on the SQL server", "ksql"),
    Tool("sql-test", "sql.test_runner", "run statements over records of a file", "ksql-test-runner"),
    Tool("engine", "engine.engine", "list, describe and stop applications on Spark and their queries"),
    Tool("perf", "perf.perf", "measure producing, consuming and latency"),
    Tool("producer-perf-test", "perf.perf_producer", "measure producing", "kafka-producer-perf-test"),
    Tool("consumer-perf-test", "perf.perf_consumer", "measure consuming", "kafka-consumer-perf-test"),
    Tool(
        "share-consumer-perf-test",
        "perf.perf_share_consumer",
        "measure consuming in a share group",
        "kafka-share-consumer-perf-test",
    ),
    Tool(
        "e2e-latency",
        "perf.perf_latency",
        "measure latency from produce to consume",
        "kafka-e2e-latency",
    ),
)

# The overview lists `perf`, `registry` and `rest` instead.
HIDDEN = {
    "producer-perf-test",
    "consumer-perf-test",
    "share-consumer-perf-test",
    "e2e-latency",
    "registry-start",
    "rest-start",
    "connect-standalone",
    "connect-distributed",
    "sql-start",
    "sql-shell",
    "sql-test",
}
BY_NAME = {tool.name: tool for tool in TOOLS}
BY_KAFKA_NAME = {tool.kafka_name: tool for tool in TOOLS if tool.kafka_name}
