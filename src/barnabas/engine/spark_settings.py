"""The place where Spark runs, and its settings.

Out: a value. Does not know: sessions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from barnabas.engine.secrets import Text

CONNECT_SCHEME = "sc://"


class SessionKind(StrEnum):
    """The place where a session computes: this process, executors of a cluster, or behind Spark Connect."""

    LOCAL = "local"
    CLUSTER = "cluster"
    CONNECT = "connect"


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """`master` names a cluster (`spark://`, `yarn`, `k8s://`) or `local[N]`; `remote` the server of Spark
    Connect. A master that begins with `sc://` is one too."""

    master: str = "local[*]"
    remote: str = ""
    settings: Mapping[str, Text] = field(default_factory=dict)

    @property
    def connect_server(self) -> str:
        """The address of the Spark Connect server; empty if there is none."""
        return self.remote or (self.master if self.master.startswith(CONNECT_SCHEME) else "")

    @property
    def kind(self) -> SessionKind:
        if self.connect_server:
            return SessionKind.CONNECT
        return SessionKind.LOCAL if self.master.startswith("local") else SessionKind.CLUSTER
