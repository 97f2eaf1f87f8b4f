"""Settings of the lag service.

Each row: name, type, default (`...`: must be given), allowed values, documentation. `cluster.NAME.` before
any property of Kafka's clients sets it for the client of that cluster; `cluster.NAME.bootstrap.servers` makes
the cluster known. Words are Burrow's where it has the setting.
"""

from barnabas.services.settings.http_rows import Row

# Rows keep two lines each, so that the table can be read as one.
# fmt: off
SETTINGS: tuple[Row, ...] = (
    ("listeners", "list", "http://0.0.0.0:8000", "",
     "URLs to listen on, with http or https."),
    ("bootstrap.servers", "list", "", "",
     "Brokers of the only cluster, where no cluster.NAME.bootstrap.servers is set."),
    ("cluster.name", "string", "local", "non-empty string",
     "Name of that cluster in responses and metrics."),
    ("intervals", "int", 10, "[1,...,1000]",
     "Commits of each group to each partition that are kept and judged."),
    ("min.distance.seconds", "int", 0, "[0,...]",
     "A commit that follows the last one earlier than that replaces it, and keeps its time."),
    ("expire.group.seconds", "long", 604_800, "[1,...]",
     "A group that does not commit for so long is forgotten."),
    ("allowed.lag", "long", 0, "[0,...]",
     "A lag up to this many records counts as none."),
    ("minimum.complete", "double", 0.0, "[0,...,1]",
     "A partition of whose commits less than this share is known is OK."),
    ("group.allowlist", "string", "", "",
     "Regular expression: only groups whose ids match are watched. Empty: all."),
    ("group.denylist", "string", "", "",
     "Regular expression: groups whose ids match are not watched."),
    ("topic.denylist", "string", "", "",
     "Regular expression: metrics of topics whose names match are not shown."),
    ("topic.refresh.seconds", "double", 60.0, "[0.1,...]",
     "How often the topics are read."),
    ("offset.refresh.seconds", "double", 5.0, "[0.1,...]",
     "How often the ends of all partitions are read."),
    ("start.refresh.seconds", "double", 60.0, "[0.1,...]",
     "How often the starts of all partitions are read."),
    ("groups.refresh.seconds", "double", 60.0, "[0.1,...]",
     "How often all groups are listed and described. Groups whose members change are described at once."),
    ("details.refresh.seconds", "double", 300.0, "[1,...]",
     "How often settings of topics and sizes of logs are read."),
    ("commits.source", "string", "auto", "[auto, topic, protocol]",
     "Where commits are read: from the offsets topic, by requests, or by requests if the topic is refused."),
    ("commits.poll.seconds", "double", 5.0, "[0.1,...]",
     "How often committed offsets are asked for where they are not read from the topic."),
    ("start.latest", "boolean", False, "",
     "Read the offsets topic from its end, so that groups are known from their next commit on."),
    ("offsets.topic", "string", "__consumer_offsets", "non-empty string",
     "The topic with the commits."),
    ("exact.lookups.max", "int", 500, "[0,...,100000]",
     "Timestamps of records that are read at each refresh of offsets; other lags in time are interpolated."),
    ("history.points", "int", 60, "[3,...,10000]",
     "Samples of each partition that are kept, for forecasts."),
    ("history.interval.seconds", "double", 30.0, "[0.1,...]",
     "Time between two samples."),
    ("metrics.dialects", "list", "burrow,own",
     "one or more of [burrow, kafka_exporter, kminion, lag_exporter, opentelemetry, own, none]",
     "Whose names /metrics uses; a query parameter `dialect` asks for others."),
    ("kminion.prefix", "string", "kminion", "non-empty string",
     "First word of kminion's metrics."),
    ("probe.enabled", "boolean", False, "",
     "Produce and consume records of an own topic in each cluster, and measure how long they take."),
    ("probe.topic", "string", "kminion-end-to-end", "non-empty string",
     "The topic of the probe. It is made if it does not exist."),
    ("probe.interval.ms", "int", 1_000, "[10,...]",
     "Time between two records to each partition of that topic."),
    ("probe.roundtrip.ms", "int", 20_000, "[1,...]",
     "A record of the probe that does not arrive within this time is lost."),
    ("probe.ack.ms", "int", 5_000, "[1,...]",
     "A record of the probe that is not acknowledged within this time failed."),
    ("probe.replication.factor", "int", 1, "[1,...,32767]",
     "Replicas of the topic of the probe when it is made."),
)
# fmt: on

OWN_PREFIX = "lag."
ALIASES: dict[str, str] = {}
PREFIXES = ("cluster.",)
WITHOUT_EFFECT: frozenset[str] = frozenset()
