"""Forms of a line: Kafka's text, or one JSON object.

In: a record of Python's `logging`. Out: text. Does not know: files.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime

KAFKAS_LEVELS = {"WARNING": "WARN", "CRITICAL": "FATAL"}
TEXT_FORM = "[%(asctime)s,%(msecs)03d] %(levelname)s %(message)s (%(name)s)"
TEXT, JSON = "text", "json"


def formatter(form: str) -> logging.Formatter:
    if form == JSON:
        return JsonForm()
    return logging.Formatter(TEXT_FORM, "%Y-%m-%d %H:%M:%S")


class JsonForm(logging.Formatter):
    """One object a line: timestamp, level, logger, message, thread, and the traceback of an exception."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC)
        line = {
            "timestamp": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": KAFKAS_LEVELS.get(record.levelname, record.levelname),
            "logger": record.name,
            "message": record.getMessage(),
            "thread": record.threadName,
        }
        if record.exc_info or record.exc_text:
            line["exception"] = record.exc_text or self.formatException(record.exc_info or (None, None, None))
        return json.dumps(line, ensure_ascii=False)
