"""Headers that say which connector sent an event: `__debezium.context.*`. Pure."""

from __future__ import annotations

from uuid import uuid4

from barnabas.connect.config import Settings
from barnabas.connect.data import STRING, Header, Headers

PREFIX = "__debezium.context."


def context_headers(settings: Settings, connector: str, task: int) -> Headers:
    """The headers of all events of one run of a task; none with `extended.headers.enabled=false`."""
    if not settings.flag("extended.headers.enabled"):
        return ()
    found = {
        "connectorLogicalName": settings.text("topic.prefix"),
        "taskId": str(task),
        "connectorName": connector,
        "runId": str(uuid4()),
    }
    return tuple(Header(PREFIX + name, text, STRING) for name, text in found.items())
