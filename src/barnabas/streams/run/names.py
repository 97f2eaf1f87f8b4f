"""Names of settings of an application: those with an effect, those of Kafka Streams without one here.

In: settings as they were given. Out: warnings about names without effect; an error for a name that is almost
one with an effect, since `proccessing.guarantee` would else run at least once without a word. Does not know:
values.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from barnabas.spark.basics.settings import OptionError

SIMILARITY_MIN = 0.85
PREFIXES = ("spark.", "http.", "topic.", "security.", "sasl.", "ssl.", "config.providers")
EFFECTIVE = frozenset(
    {
        "application.server",
        "auto.offset.reset",
        "check.crcs",
        "client.id",
        "client.rack",
        "default.deserialization.exception.handler",
        "default.production.exception.handler",
        "deserialization.exception.handler",
        "errors.dead.letter.queue.topic.name",
        "fetch.max.bytes",
        "fetch.max.wait.ms",
        "max.partition.fetch.bytes",
        "metadata.max.age.ms",
        "metrics.recording.level",
        "processing.exception.handler",
        "processing.guarantee",
        "processing.log.topic",
        "production.exception.handler",
        "repartition.purge.interval.ms",
        "replication.factor",
        "request.timeout.ms",
        "state.dir",
        "topology.optimization",
    }
)
OF_PREFIXES = frozenset(  # usual names behind prefixes: a typo may be in the prefix itself
    {
        "sasl.jaas.config",
        "sasl.mechanism",
        "security.protocol",
        "spark.master",
        "ssl.keystore.location",
        "ssl.truststore.location",
        "http.listeners",
    }
)
WITHOUT_EFFECT = {  # of Kafka Streams, with what does the same here
    "acceptable.recovery.lag": "",
    "application.id": "the flag --application-id",
    "bootstrap.servers": "the flag --bootstrap-server",
    "buffered.records.per.partition": "",
    "built.in.metrics.version": "",
    "cache.max.bytes.buffering": "",
    "commit.interval.ms": "each batch is committed",
    "connections.max.idle.ms": "",
    "default.client.supplier": "",
    "default.dsl.store": "",
    "default.key.serde": "give formats in the topology",
    "default.list.key.serde.inner": "",
    "default.list.key.serde.type": "",
    "default.list.value.serde.inner": "",
    "default.list.value.serde.type": "",
    "default.timestamp.extractor": "give it in the topology",
    "default.value.serde": "give formats in the topology",
    "dsl.store.suppliers.class": "",
    "enable.metrics.push": "",
    "group.protocol": "the conductor assigns tasks",
    "log.summary.interval.ms": "",
    "max.task.idle.ms": "",
    "max.warmup.replicas": "",
    "metric.reporters": "metrics of the engine",
    "metrics.num.samples": "",
    "metrics.sample.window.ms": "",
    "num.standby.replicas": "",
    "num.stream.threads": "cores of Spark (spark.master)",
    "poll.ms": "",
    "probing.rebalance.interval.ms": "",
    "rack.aware.assignment.non_overlap_cost": "",
    "rack.aware.assignment.strategy": "",
    "rack.aware.assignment.tags": "",
    "rack.aware.assignment.traffic_cost": "",
    "receive.buffer.bytes": "",
    "reconnect.backoff.max.ms": "",
    "reconnect.backoff.ms": "",
    "retries": "",
    "retry.backoff.max.ms": "",
    "retry.backoff.ms": "",
    "rocksdb.config.setter": "state is SQLite",
    "send.buffer.bytes": "",
    "state.cleanup.delay.ms": "",
    "statestore.cache.max.bytes": "",
    "task.assignor.class": "",
    "task.timeout.ms": "",
    "upgrade.from": "",
    "window.size.ms": "",
    "windowed.inner.class.serde": "",
    "windowstore.changelog.additional.retention.ms": "",
}


def check_names(given: Iterable[str]) -> list[str]:
    """A sentence for each name that has no effect; OptionError for a near miss of one that has."""
    warnings = []
    for name in sorted(given):
        if name in EFFECTIVE or name.startswith(PREFIXES):
            continue
        if name in WITHOUT_EFFECT:
            instead = WITHOUT_EFFECT[name]
            warnings.append(f"the setting {name} has no effect here" + (f": {instead}" if instead else ""))
            continue
        near = get_close_matches(name.lower(), sorted(EFFECTIVE | OF_PREFIXES), 1, SIMILARITY_MIN)
        if near:
            raise OptionError(f"there is no setting {name}: did you mean {near[0]}?")
        warnings.append(f"the setting {name} is not known and has no effect")
    return warnings
