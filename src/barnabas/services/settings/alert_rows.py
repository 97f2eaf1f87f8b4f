"""Settings of the alert service.

Each row: name, type, default (`...`: must be given), allowed values, documentation. `client.` before any
property of Kafka's clients sets it for the client of the cluster that `bootstrap.servers` names. Rules,
targets and several clusters are in a file of their own (`alerts.file`).
"""

from barnabas.services.settings.http_rows import Row

# Rows keep two lines each, so that the table can be read as one.
# fmt: off
SETTINGS: tuple[Row, ...] = (
    ("listeners", "list", "http://127.0.0.1:8095", "",
     "URLs to listen on, with http or https."),
    ("bootstrap.servers", "string", "localhost:9092", "non-empty string",
     "Brokers of the cluster, where the file names no clusters."),
    ("alerts.file", "string", "", "",
     "The YAML file with clusters, rules, targets, routes and maintenance. Empty: the default rules."),
)
# fmt: on

OWN_PREFIX = "alerts."
ALIASES: dict[str, str] = {}
PREFIXES = ("client.",)
WITHOUT_EFFECT: frozenset[str] = frozenset()
