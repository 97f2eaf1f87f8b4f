"""Settings of a group, resolved over the broker settings with the prefix `group.`.

Each row: name, type, default, allowed values, importance, how it can be changed, documentation.
"""

from barnabas.settings.tables.row import Row

# Rows keep two lines each, so that the table can be read as one.
# fmt: off
SETTINGS: tuple[Row, ...] = (
    ("consumer.assignment.interval.ms", "int", 1000, "[0,...]", "medium", "read-only",
     "Least time between two new assignments of the group."),
    ("consumer.heartbeat.interval.ms", "int", 5000, "[1,...]", "medium", "read-only",
     "Heartbeat interval told to the group's members."),
    ("consumer.session.timeout.ms", "int", 45_000, "[1,...]", "medium", "read-only",
     "Silence after which a member leaves the group."),
    ("share.assignment.interval.ms", "int", 1000, "[0,...]", "medium", "read-only",
     "Least time between two new assignments of the share group."),
    ("share.auto.offset.reset", "string",
     "latest",
     "[latest, earliest, by_duration:PnDTnHnMn.nS]", "medium", "read-only",
     "Where a share group starts: latest, earliest, or a duration back from now."),
    ("share.delivery.count.limit", "int", 5, "[2,...]", "medium", "read-only",
     "Times a record is delivered before it counts as failed."),
    ("share.heartbeat.interval.ms", "int", 5000, "[1,...]", "medium", "read-only",
     "Heartbeat interval told to the share group's members."),
    ("share.isolation.level", "string",
     "read_uncommitted",
     "[read_committed, read_uncommitted]", "medium", "read-only",
     "Whether records of open or aborted transactions are delivered."),
    ("share.partition.max.record.locks", "int", 2000, "[100,...]", "medium", "read-only",
     "Records of a partition that may be locked at a time."),
    ("share.record.lock.duration.ms", "int", 30_000, "[1000,...]", "medium", "read-only",
     "Time a member has to acknowledge a record it acquired."),
    ("share.renew.acknowledge.enable", "boolean", True, "", "medium", "read-only",
     "Let members renew the lock of a record they are still working on."),
    ("share.session.timeout.ms", "int", 45_000, "[1,...]", "medium", "read-only",
     "Silence after which a member leaves the share group."),
    ("streams.assignment.interval.ms", "int", 1000, "[0,...]", "medium", "read-only",
     "Least time between two new assignments of the streams group."),
    ("streams.heartbeat.interval.ms", "int", 5000, "[1,...]", "medium", "read-only",
     "Heartbeat interval told to the streams group's members."),
    ("streams.initial.rebalance.delay.ms", "int", 3000, "[0,...]", "medium", "read-only",
     "Wait for more members before the first assignment of an empty group."),
    ("streams.num.standby.replicas", "int", 0, "[0,...]", "medium", "read-only",
     "Standby tasks for each task with state."),
    ("streams.session.timeout.ms", "int", 45_000, "[1,...]", "medium", "read-only",
     "Silence after which a member leaves the streams group."),
)
# fmt: on
