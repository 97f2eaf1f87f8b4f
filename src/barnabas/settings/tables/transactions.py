"""Producer ids, transactions and their state topic.

Each row: name, type, default, allowed values, importance, how it can be changed, documentation.
"""

from barnabas.settings.tables.row import Row

# Rows keep two lines each, so that the table can be read as one.
# fmt: off
SETTINGS: tuple[Row, ...] = (
    ("add.partitions.to.txn.retry.backoff.max.ms", "int", 100, "[0,...]", "high", "read-only",
     "Longest time the server itself retries adding a partition to a transaction."),
    ("add.partitions.to.txn.retry.backoff.ms", "int", 20, "[1,...]", "high", "read-only",
     "First wait when the server itself retries adding a partition to a transaction."),
    ("producer.id.expiration.ms", "int", 86_400_000, "[1,...]", "low", "cluster-wide",
     "Time the last sequence of a silent producer is remembered."),
    ("transaction.abort.timed.out.transaction.cleanup.interval.ms", "int",
     10_000,
     "[1,...]", "low", "read-only",
     "How often to look for transactions to abort for their timeout."),
    ("transaction.max.timeout.ms", "int", 900_000, "[1,...]", "high", "read-only",
     "Largest transaction timeout a producer may ask for."),
    ("transaction.partition.verification.enable", "boolean", True, "", "low", "cluster-wide",
     "Check that a partition belongs to the transaction before its records are written."),
    ("transaction.remove.expired.transaction.cleanup.interval.ms", "int",
     3_600_000,
     "[1,...]", "low", "read-only",
     "How often to look for transactional ids whose time is over."),
    ("transaction.state.log.load.buffer.size", "int", 5_242_880, "[1,...]", "high", "read-only",
     "Bytes read at a time while transaction state is loaded."),
    ("transaction.state.log.min.isr", "int", 2, "[1,...]", "high", "read-only",
     "Value of min.insync.replicas for the transaction state topic."),
    ("transaction.state.log.num.partitions", "int", 50, "[1,...]", "high", "read-only",
     "Partitions of the transaction state topic; not to be changed once it exists."),
    ("transaction.state.log.replication.factor", "short", 3, "[1,...]", "high", "read-only",
     "Replicas of the transaction state topic."),
    ("transaction.state.log.segment.bytes", "int", 104_857_600, "[1,...]", "high", "read-only",
     "Segment size of the transaction state topic."),
    ("transaction.two.phase.commit.enable", "boolean", False, "", "low", "read-only",
     "Let producers take part in two-phase commits, without a timeout of the server's."),
    ("transactional.id.expiration.ms", "int", 604_800_000, "[1,...]", "high", "read-only",
     "Time a silent transactional id is remembered."),
)

INTERNAL: tuple[Row, ...] = (
    ("producer.id.expiration.check.interval.ms", "int", 600_000, "[1,...]", "low", "read-only",
     "How often to look for producers whose time is over."),
)
# fmt: on
