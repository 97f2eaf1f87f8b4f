"""Followers, in-sync replicas, leader election and the purgatories.

Each row: name, type, default, allowed values, importance, how it can be changed, documentation.
"""

from barnabas.settings.tables.row import Row

# Rows keep two lines each, so that the table can be read as one.
# fmt: off
SETTINGS: tuple[Row, ...] = (
    ("auto.leader.rebalance.enable", "boolean", True, "", "high", "read-only",
     "Move leadership back to preferred replicas in the background."),
    ("default.replication.factor", "int", 1, "", "medium", "read-only",
     "Replicas of a topic that is created without a number."),
    ("delete.records.purgatory.purge.interval.requests", "int", 1, "", "medium", "read-only",
     "Finished DeleteRecords waiters collected before they are swept out."),
    ("fetch.purgatory.purge.interval.requests", "int", 1000, "", "medium", "read-only",
     "Finished Fetch waiters collected before they are swept out."),
    ("leader.imbalance.check.interval.seconds", "long", 300, "[1,...]", "high", "read-only",
     "How often the controller compares leaders with preferred replicas."),
    ("num.replica.alter.log.dirs.threads", "int", None, "", "high", "read-only",
     "Workers that move replicas between log dirs; unset, one a log dir."),
    ("num.replica.fetchers", "int", 1, "[1,...]", "high", "cluster-wide",
     "Fetchers a follower runs towards each leader."),
    ("producer.purgatory.purge.interval.requests", "int", 1000, "", "medium", "read-only",
     "Finished Produce waiters collected before they are swept out."),
    ("replica.fetch.backoff.ms", "int", 1000, "[0,...]", "medium", "read-only",
     "Wait of a follower after a failed fetch."),
    ("replica.fetch.max.bytes", "int", 1_048_576, "[0,...]", "medium", "read-only",
     "Bytes a follower asks for per partition; a larger first batch still passes."),
    ("replica.fetch.min.bytes", "int", 1, "", "high", "read-only",
     "Bytes a leader waits for before it answers a follower."),
    ("replica.fetch.response.max.bytes", "int", 10_485_760, "[0,...]", "medium", "read-only",
     "Bytes a follower asks for per request."),
    ("replica.fetch.wait.max.ms", "int", 500, "", "high", "read-only",
     "Longest wait of a follower's fetch; keep it below replica.lag.time.max.ms."),
    ("replica.high.watermark.checkpoint.interval.ms", "long", 5000, "", "high", "read-only",
     "How often high watermarks are written to disk."),
    ("replica.lag.time.max.ms", "long", 30_000, "", "high", "read-only",
     "Time a follower may be behind before it leaves the in-sync replicas."),
    ("replica.selector.class", "string", None, "", "medium", "read-only",
     "Plug-in that picks the replica a consumer reads from."),
    ("replica.socket.receive.buffer.bytes", "int", 65_536, "", "high", "read-only",
     "Kernel receive buffer of a follower's connections."),
    ("replica.socket.timeout.ms", "int", 30_000, "", "high", "read-only",
     "Socket timeout of a follower; at least replica.fetch.wait.max.ms."),
    ("share.fetch.purgatory.purge.interval.requests", "int", 1000, "", "medium", "read-only",
     "Finished ShareFetch waiters collected before they are swept out."),
    ("unclean.leader.election.enable", "boolean", False, "", "high", "cluster-wide",
     "Let a replica that is not in sync lead when no other is left, at the price of lost records."),
)

INTERNAL: tuple[Row, ...] = (
    ("unclean.leader.election.interval.ms", "long", 300_000, "[1,...]", "medium", "read-only",
     "How often partitions without a leader are considered for an unclean election."),
)
# fmt: on
