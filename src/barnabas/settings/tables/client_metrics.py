"""Settings of a subscription to clients' metrics (KIP-714).

Each row: name, type, default, allowed values, importance, how it can be changed, documentation.
"""

from barnabas.settings.tables.row import Row

# fmt: off
SETTINGS: tuple[Row, ...] = (
    ("interval.ms", "int", 300_000, "", "medium", "read-only",
     "How often clients are to send what is subscribed to, from 100 ms to an hour."),
    ("match", "list", "", "", "medium", "read-only",
     "Which clients: attribute=expression entries that must all match; empty matches every client."),
    ("metrics", "list", "", "", "medium", "read-only",
     "Prefixes of metric names to send; * is all of them, empty is none."),
)
# fmt: on
