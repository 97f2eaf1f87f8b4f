"""The controller quorum and the metadata log.

Each row: name, type, default, allowed values, importance, how it can be changed, documentation.
"""

from barnabas.settings.tables.row import Row

# Rows keep two lines each, so that the table can be read as one.
# fmt: off
SETTINGS: tuple[Row, ...] = (
    ("controller.listener.names", "list", ..., "one or more", "high", "read-only",
     "Listeners of the controllers; a broker uses the first to reach them."),
    ("controller.quorum.append.linger.ms", "int", 25, "[0,...]", "medium", "read-only",
     "Time the quorum's leader collects records for one batch."),
    ("controller.quorum.auto.join.enable", "boolean", False, "", "low", "read-only",
     "Let a controller that is not a voter add itself to the quorum."),
    ("controller.quorum.bootstrap.servers", "list", "", "non-empty list", "high", "read-only",
     "Where to find the quorum, as host:port entries, when voters are dynamic."),
    ("controller.quorum.election.backoff.max.ms", "int", 1000, "[0,...]", "high", "read-only",
     "Longest random wait before the next election after one without a winner."),
    ("controller.quorum.election.timeout.ms", "int", 1000, "[0,...]", "high", "read-only",
     "Time without a leader before an election begins."),
    ("controller.quorum.fetch.max.bytes", "int", 1_048_576, "[1,...]", "low", "read-only",
     "Bytes of the metadata log asked for at a time."),
    ("controller.quorum.fetch.snapshot.max.bytes", "int", 1_048_576, "[1,...]", "low", "read-only",
     "Bytes of a snapshot asked for at a time."),
    ("controller.quorum.fetch.timeout.ms", "int", 2000, "[0,...]", "high", "read-only",
     "Time without a successful fetch before a voter stands for election."),
    ("controller.quorum.request.timeout.ms", "int", 2000, "[0,...]", "medium", "read-only",
     "Longest wait for an answer within the quorum."),
    ("controller.quorum.retry.backoff.ms", "int", 20, "[0,...]", "low", "read-only",
     "Wait before a failed request within the quorum is repeated."),
    ("controller.quorum.voters", "list", "", "non-empty list", "high", "read-only",
     "The voters of a static quorum, as id@host:port entries."),
    ("metadata.log.dir", "string", None, "", "high", "read-only",
     "Folder of the metadata log; unset, the first log dir."),
    ("metadata.log.max.record.bytes.between.snapshots", "long", 20_971_520, "[1,...]", "high", "read-only",
     "Bytes of new metadata records after which a snapshot is written."),
    ("metadata.log.max.snapshot.interval.ms", "long", 3_600_000, "[0,...]", "high", "read-only",
     "Time after which a snapshot is written if there is anything new; 0 turns it off."),
    ("metadata.log.segment.bytes", "int", 1_073_741_824, "[8388608,...]", "high", "read-only",
     "Segment size of the metadata log."),
    ("metadata.log.segment.ms", "long", 604_800_000, "", "high", "read-only",
     "Time after which a segment of the metadata log is closed."),
    ("metadata.max.idle.interval.ms", "int", 500, "[0,...]", "low", "read-only",
     "How often an idle active controller writes a no-op record; 0 never does."),
    ("metadata.max.retention.bytes", "long", 104_857_600, "", "high", "read-only",
     "Size of metadata log and snapshots before old ones are deleted."),
    ("metadata.max.retention.ms", "long", 604_800_000, "", "high", "read-only",
     "Time before old parts of the metadata log and snapshots are deleted."),
    ("sasl.mechanism.controller.protocol", "string", "GSSAPI", "", "high", "read-only",
     "SASL mechanism towards the controllers."),
)

INTERNAL: tuple[Row, ...] = (
    ("controller.performance.always.log.threshold.ms", "long", 2000, "[0,...]", "medium", "read-only",
     "Controller events slower than this are always logged."),
    ("controller.performance.sample.period.ms", "long", 60_000, "[100,...]", "medium", "read-only",
     "How often the controller logs a summary of its own speed."),
    ("internal.metadata.delete.delay.millis", "long", 60_000, "", "low", "read-only",
     "Wait before a superseded file of the metadata log is deleted."),
    ("internal.metadata.log.segment.bytes", "int", None, "", "low", "read-only",
     "Segment size of the metadata log for tests; replaces metadata.log.segment.bytes."),
    ("internal.metadata.max.batch.size.in.bytes", "int", 8_388_608, "", "low", "read-only",
     "Largest batch in the metadata log."),
    ("server.max.startup.time.ms", "long", 2**63 - 1, "[0,...]", "medium", "read-only",
     "Time the server has to start before it gives up."),
)
# fmt: on
