"""Settings of the service that answers interactive queries of an application of streams.

Each row: name, type, default (`...`: must be given), allowed values, documentation. They are given to the
application with the prefix `http.`.
"""

from barnabas.services.settings.http_rows import Row

# fmt: off
SETTINGS: tuple[Row, ...] = (
    ("listeners", "list", "http://127.0.0.1:0", "",
     "URLs to listen on, with http or https."),
    ("advertised.listener", "string", None, "",
     "Host and port that metadata of keys names, as application.server of Kafka Streams does."),
)
# fmt: on

OWN_PREFIX = "http."
ALIASES: dict[str, str] = {}
PREFIXES: tuple[str, ...] = ()
WITHOUT_EFFECT: frozenset[str] = frozenset()
