"""Windows over which quotas are measured, and delegation tokens.

Each row: name, type, default, allowed values, importance, how it can be changed, documentation.
"""

from barnabas.settings.tables.row import Row

# Rows keep two lines each, so that the table can be read as one.
# fmt: off
SETTINGS: tuple[Row, ...] = (
    ("alter.log.dirs.replication.quota.window.num", "int", 11, "[1,...]", "low", "read-only",
     "Samples kept for the limit on moves between log dirs."),
    ("alter.log.dirs.replication.quota.window.size.seconds", "int", 1, "[1,...]", "low", "read-only",
     "Length of one sample of the limit on moves between log dirs."),
    ("controller.quota.window.num", "int", 11, "[1,...]", "low", "read-only",
     "Samples kept for the quota on controller mutations."),
    ("controller.quota.window.size.seconds", "int", 1, "[1,...]", "low", "read-only",
     "Length of one sample of the quota on controller mutations."),
    ("delegation.token.expiry.check.interval.ms", "long", 3_600_000, "[1,...]", "low", "read-only",
     "How often expired delegation tokens are removed."),
    ("delegation.token.expiry.time.ms", "long", 86_400_000, "[1,...]", "medium", "read-only",
     "Time a delegation token is valid without renewal."),
    ("delegation.token.max.lifetime.ms", "long", 604_800_000, "[1,...]", "medium", "read-only",
     "Time after which a delegation token cannot be renewed any more."),
    ("delegation.token.secret.key", "password", None, "", "medium", "read-only",
     "Secret that delegation tokens are made with; the same on every node."),
    ("quota.window.num", "int", 11, "[1,...]", "low", "read-only",
     "Samples kept for client quotas."),
    ("quota.window.size.seconds", "int", 1, "[1,...]", "low", "read-only",
     "Length of one sample of a client quota."),
    ("replication.quota.window.num", "int", 11, "[1,...]", "low", "read-only",
     "Samples kept for the throttle on replication."),
    ("replication.quota.window.size.seconds", "int", 1, "[1,...]", "low", "read-only",
     "Length of one sample of the throttle on replication."),
)
# fmt: on
