"""Synonyms of settings: the broker setting of a topic setting, and broker settings in coarser units.

In: a name. Out: the names to read, in order of precedence, with the factor that converts each to
milliseconds. Does not know: values.
"""

from __future__ import annotations

MINUTE_MS = 60 * 1000
HOUR_MS = 60 * MINUTE_MS

# A topic setting and the broker setting with its default; other topic settings have none.
TOPIC_TO_BROKER: dict[str, str] = {
    "barnabas.produce.validation": "barnabas.produce.validation",
    "cleanup.policy": "log.cleanup.policy",
    "compression.gzip.level": "compression.gzip.level",
    "compression.lz4.level": "compression.lz4.level",
    "compression.type": "compression.type",
    "compression.zstd.level": "compression.zstd.level",
    "delete.retention.ms": "log.cleaner.delete.retention.ms",
    "file.delete.delay.ms": "log.segment.delete.delay.ms",
    "flush.messages": "log.flush.interval.messages",
    "flush.ms": "log.flush.interval.ms",
    "index.interval.bytes": "log.index.interval.bytes",
    "local.retention.bytes": "log.local.retention.bytes",
    "local.retention.ms": "log.local.retention.ms",
    "max.compaction.lag.ms": "log.cleaner.max.compaction.lag.ms",
    "max.message.bytes": "message.max.bytes",
    "message.timestamp.after.max.ms": "log.message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms": "log.message.timestamp.before.max.ms",
    "message.timestamp.type": "log.message.timestamp.type",
    "min.cleanable.dirty.ratio": "log.cleaner.min.cleanable.ratio",
    "min.compaction.lag.ms": "log.cleaner.min.compaction.lag.ms",
    "min.insync.replicas": "min.insync.replicas",
    "preallocate": "log.preallocate",
    "retention.bytes": "log.retention.bytes",
    "retention.ms": "log.retention.ms",
    "segment.bytes": "log.segment.bytes",
    "segment.index.bytes": "log.index.size.max.bytes",
    "segment.jitter.ms": "log.roll.jitter.ms",
    "segment.ms": "log.roll.ms",
    "unclean.leader.election.enable": "unclean.leader.election.enable",
}

# Broker settings that fall back to others: name and factor, the first that is set decides.
FALLBACKS: dict[str, tuple[tuple[str, int], ...]] = {
    "log.retention.ms": (("log.retention.minutes", MINUTE_MS), ("log.retention.hours", HOUR_MS)),
    "log.roll.ms": (("log.roll.hours", HOUR_MS),),
    "log.roll.jitter.ms": (("log.roll.jitter.hours", HOUR_MS),),
    "log.flush.interval.ms": (("log.flush.scheduler.interval.ms", 1),),
}
RETENTION = ("log.retention.ms", "log.retention.minutes", "log.retention.hours")
ROLL = ("log.roll.ms", "log.roll.hours")
ROLL_JITTER = ("log.roll.jitter.ms", "log.roll.jitter.hours")

# Synonyms of a broker setting in DescribeConfigs, where they are more than the name itself.
BROKER_SYNONYMS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(RETENTION, RETENTION),
    **dict.fromkeys(ROLL, ROLL),
    **dict.fromkeys(ROLL_JITTER, ROLL_JITTER),
    "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
}
