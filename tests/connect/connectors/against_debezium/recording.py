"""Answers of Debezium, kept so that a test needs no Java. With BARNABAS_RECORD=1 they are written anew."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

from connect.connectors.against_debezium.comparing import Topics


class Recording:
    def __init__(self, path: Path) -> None:
        self._path = path

    def _all(self) -> dict[str, Topics]:
        found: dict[str, Topics] = json.loads(gzip.decompress(self._path.read_bytes()))
        return found

    def read(self, name: str) -> Topics:
        return self._all()[name]

    def keep(self, name: str, topics: Topics) -> None:
        if os.environ.get("BARNABAS_RECORD") != "1":
            return
        found = self._all() if self._path.exists() else {}
        found[name] = topics
        text = json.dumps(found, ensure_ascii=False, sort_keys=False)
        self._path.write_bytes(gzip.compress(text.encode(), mtime=0))
