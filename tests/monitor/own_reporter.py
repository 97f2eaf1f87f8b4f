"""A reporter as a user would write one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from barnabas.broker.reporters.reporter import Snapshot


class Remembering:
    settings: Mapping[str, Any] = {}
    values: dict[str, object] = {}

    def configure(self, settings: Mapping[str, Any]) -> None:
        Remembering.settings = settings

    def report(self, snapshot: Snapshot) -> None:
        Remembering.values = {each.mbean: each.value for each in snapshot.samples}
