"""Names of properties as sessions and statements give them.

`ksql.streams.auto.offset.reset` and `auto.offset.reset` are one property. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping

STREAMS = "ksql.streams."
STREAMS_NAMES = frozenset(
    {
        "acceptable.recovery.lag",
        "application.id",
        "auto.offset.reset",
        "buffered.records.per.partition",
        "cache.max.bytes.buffering",
        "commit.interval.ms",
        "default.deserialization.exception.handler",
        "default.production.exception.handler",
        "default.timestamp.extractor",
        "max.task.idle.ms",
        "max.warmup.replicas",
        "metadata.max.age.ms",
        "metrics.recording.level",
        "num.standby.replicas",
        "num.stream.threads",
        "poll.ms",
        "probing.rebalance.interval.ms",
        "processing.guarantee",
        "replication.factor",
        "retries",
        "rocksdb.config.setter",
        "state.cleanup.delay.ms",
        "state.dir",
        "statestore.cache.max.bytes",
        "task.timeout.ms",
        "topology.optimization",
        "window.store.change.log.additional.retention.ms",
    }
)
CLIENT_NAMES = frozenset(
    {
        "acks",
        "batch.size",
        "buffer.memory",
        "client.id",
        "compression.type",
        "delivery.timeout.ms",
        "enable.idempotence",
        "fetch.max.bytes",
        "fetch.max.wait.ms",
        "fetch.min.bytes",
        "group.id",
        "isolation.level",
        "linger.ms",
        "max.block.ms",
        "max.partition.fetch.bytes",
        "max.poll.interval.ms",
        "max.poll.records",
        "max.request.size",
        "request.timeout.ms",
        "retry.backoff.ms",
        "session.timeout.ms",
    }
)
PREFIXES = ("producer.", "consumer.", "admin.", "topic.", "ksql.functions.", "ksql.properties.overrides.")
# Of the server alone: no session and no statement changes them.
IMMUTABLE = frozenset(
    {
        "application.id",
        "bootstrap.servers",
        "ksql.connect.url",
        "ksql.extension.dir",
        "ksql.queries.file",
        "ksql.schema.registry.url",
        "ksql.service.id",
        "ksql.udfs.enabled",
        "listeners",
    }
)


def plain_name(name: str) -> str:
    return name.removeprefix(STREAMS)


def plain_names(given: Mapping[str, str]) -> dict[str, str]:
    return {plain_name(name): value for name, value in given.items()}


def is_known(name: str, server_settings: Mapping[str, object]) -> bool:
    """Whether a property of this name exists, for a session or for the server."""
    plain = plain_name(name)
    return (
        plain in STREAMS_NAMES
        or plain in CLIENT_NAMES
        or name in server_settings
        or plain.startswith(PREFIXES)
    )
