"""The log cleaner: how compaction runs and how much it may use.

Each row: name, type, default, allowed values, importance, how it can be changed, documentation.
"""

from barnabas.settings.tables.row import Row

# Rows keep two lines each, so that the table can be read as one.
# fmt: off
SETTINGS: tuple[Row, ...] = (
    ("log.cleaner.backoff.ms", "long", 15_000, "[0,...]", "medium", "cluster-wide",
     "Wait between two looks for work when there is nothing to compact."),
    ("log.cleaner.dedupe.buffer.size", "long", 134_217_728, "", "medium", "cluster-wide",
     "Memory for the offset maps of all compaction workers together."),
    ("log.cleaner.delete.retention.ms", "long", 86_400_000, "[0,...]", "medium", "cluster-wide",
     "Time a tombstone stays readable after its key was compacted away."),
    ("log.cleaner.enable", "boolean", True, "", "medium", "read-only",
     "Run the compaction workers at all; compacted topics grow without end when off."),
    ("log.cleaner.io.buffer.load.factor", "double", 0.9, "", "medium", "cluster-wide",
     "How full an offset map may get before a pass of compaction stops collecting keys."),
    ("log.cleaner.io.buffer.size", "int", 524_288, "[0,...]", "medium", "cluster-wide",
     "Memory for the read and write buffers of all compaction workers together."),
    ("log.cleaner.io.max.bytes.per.second", "double", 1.7976931348623157e+308, "", "medium", "cluster-wide",
     "Upper limit for what compaction reads and writes in a second."),
    ("log.cleaner.max.compaction.lag.ms", "long", 2**63 - 1, "[1,...]", "medium", "cluster-wide",
     "Time after which a record must have been offered to compaction."),
    ("log.cleaner.min.cleanable.ratio", "double", 0.5, "[0,...,1]", "medium", "cluster-wide",
     "Share of a log that must be uncompacted before it is worth a pass."),
    ("log.cleaner.min.compaction.lag.ms", "long", 0, "[0,...]", "medium", "cluster-wide",
     "Time a record is left uncompacted after it was written."),
    ("log.cleaner.threads", "int", 1, "[0,...]", "medium", "cluster-wide",
     "Number of workers that compact."),
    ("log.cleanup.policy", "list", "delete", "[compact, delete]", "medium", "cluster-wide",
     "What happens to old data: delete, compact, both, or nothing when empty."),
)
# fmt: on
