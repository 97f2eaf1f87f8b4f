"""Events of verifiable clients: one JSON object a line, as Kafka's system tests read them.

In: the name of an event and its fields. Out: a line with the time and the name first.
Does not know: clients.
"""

import json
import time
from typing import Any

from barnabas.cli.frame.output import Output


class Events:
    def __init__(self, out: Output) -> None:
        self._out = out

    def tell(self, name: str, /, **fields: Any) -> None:
        event: dict[str, Any] = {"timestamp": int(time.time() * 1000), "name": name, **fields}
        self._out.line(json.dumps(event, separators=(",", ":"), ensure_ascii=False))
        self._out.flush()


def text(data: bytes | None) -> str | None:
    """A key or a value as Java's StringDeserializer reads it."""
    return None if data is None else data.decode("utf-8", "replace")
