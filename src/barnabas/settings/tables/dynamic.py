"""Settings that exist only while running: throttles that a reassignment sets on brokers.

Each row: name, type, default, allowed values, importance, how it can be changed, documentation.
"""

from barnabas.settings.tables.row import Row

# fmt: off
SETTINGS: tuple[Row, ...] = (
    ("follower.replication.throttled.rate", "long", 2**63 - 1, "[0,...]", "medium", "cluster-wide",
     "Bytes per second that throttled replicas of this broker may fetch."),
    ("leader.replication.throttled.rate", "long", 2**63 - 1, "[0,...]", "medium", "cluster-wide",
     "Bytes per second that throttled replicas may be served by this broker."),
    ("replica.alter.log.dirs.io.max.bytes.per.second", "long", 2**63 - 1, "[0,...]", "medium", "cluster-wide",
     "Bytes per second for moving replicas between log dirs of this broker."),
)
# fmt: on
