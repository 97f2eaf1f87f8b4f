"""Settings of the audit service.

Each row: name, type, default (`...`: must be given), allowed values, documentation. `client.` before any
property of Kafka's clients sets it for the client that reads the audit topic.
"""

from barnabas.services.settings.http_rows import Row

# Rows keep two lines each, so that the table can be read as one.
# fmt: off
SETTINGS: tuple[Row, ...] = (
    ("listeners", "list", "http://127.0.0.1:8086", "",
     "URLs to listen on, with http or https."),
    ("bootstrap.servers", "list", ..., "one or more",
     "Brokers that have the audit topic: host:port, or PROTOCOL://host:port."),
    ("audit.topic", "string", "_barnabas_audit", "non-empty string",
     "The topic with the counts."),
    ("report.interval.ms", "int", 600_000, "[100,...]",
     "How often a report is made."),
    ("history.ms", "long", 604_800_000, "[3600000,...]",
     "The service reads the messages of this time when it starts, and keeps buckets for as long."),
    ("rules.file", "string", "", "",
     "YAML file that says which tiers belong together, and how long records may take."),
)
# fmt: on

OWN_PREFIX = "audit."
ALIASES: dict[str, str] = {}
PREFIXES = ("client.",)
WITHOUT_EFFECT: frozenset[str] = frozenset()
