"""Where Spark runs, and with which settings.

Out: a value. Does not know: sessions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from barnabas.engine.secrets import Text


@dataclass(frozen=True, slots=True)
class SparkSettings:
    master: str = "local[*]"
    remote: str = ""
    settings: Mapping[str, Text] = field(default_factory=dict)
