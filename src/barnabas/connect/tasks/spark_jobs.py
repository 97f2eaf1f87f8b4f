"""Tasks that are Spark jobs. The contract is there; the road is not built yet."""

from __future__ import annotations

from typing import Any

from barnabas.connect.plugins import ConnectError


def run_spark(running: Any, task: Any, settings: Any) -> None:
    raise ConnectError(
        f"{type(task).__qualname__} is a Spark job: this worker runs connectors in threads only so far"
    )
