"""Settings of a Connect worker that the frame of services reads; workers read the others themselves."""

from barnabas.services.settings.http_rows import Row

SETTINGS: tuple[Row, ...] = (
    ("listeners", "list", "http://0.0.0.0:8083", "", "URLs to listen on, with http or https."),
)
OWN_PREFIX = "connect."
ALIASES: dict[str, str] = {}
PREFIXES: tuple[str, ...] = ()
WITHOUT_EFFECT: frozenset[str] = frozenset()
