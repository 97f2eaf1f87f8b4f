"""Lines of the log that tasks write, without the secrets of their settings.

A server may repeat a password in its response, and errors show responses. In: what hides the secrets of a
task, told in its thread. Out: messages and traces of that thread with the secrets hidden. Does not know:
tasks.
"""

from __future__ import annotations

import logging
import threading

from barnabas.connect.config.secrets import Redaction

log = logging.getLogger("barnabas.connect")
here = threading.local()


class WithoutSecrets(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        redaction: Redaction | None = getattr(here, "redaction", None)
        if redaction is not None:
            record.msg, record.args = redaction.text(record.getMessage()), ()
            if record.exc_info and not record.exc_text:
                record.exc_text = redaction.text(logging.Formatter().formatException(record.exc_info))
        return True


FILTER = WithoutSecrets()


def hide_secrets(redaction: Redaction) -> None:
    """Hide them in what this thread logs from now on."""
    here.redaction = redaction
    log.addFilter(FILTER)  # once, however often it is added
