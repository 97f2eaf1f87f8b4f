"""A talk with a worker's REST API: requests, and the parts of its responses that are the same each time.

Texts that differ between runs (folders, ports, times) are replaced by words in angle brackets. Documentation
of settings is left out: it is each project's own.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from barnabas import __version__
from connect.worker_processes import VERSION, Answer, WorkerProcess

PLACE = re.compile(r"location='file:[^']*'")  # of a plugin's jar
LEFT_OUT = ("documentation",)
CHANGING = ("commit", "kafka_cluster_id", "last_modified", "trace")
VERSIONED = ("version",)
STORAGE, CONVERTERS = "org.apache.kafka.connect.storage.", "org.apache.kafka.connect.converters."
# Plugins that both workers have: others are left out of recommended values.
OFFERED = (f"{STORAGE}StringConverter", f"{STORAGE}SimpleHeaderConverter", f"{CONVERTERS}BooleanConverter",
           f"{CONVERTERS}ByteArrayConverter", "org.apache.kafka.connect.json.JsonConverter", VERSION,
           __version__)  # fmt: skip


class Talk:
    """Sends requests and keeps the exchange."""

    def __init__(self, worker: WorkerProcess, folder: Path, others: Sequence[WorkerProcess] = ()) -> None:
        """`others` are workers of the same group, which may own what is asked about."""
        self.worker = worker
        self.others = others
        self.folder = folder
        self.exchanges: list[dict[str, Any]] = []

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        keeps: Any = None,
    ) -> Any:
        """Send a request and keep the response. `keeps` chooses the part of a body that is compared."""
        sent = self._filled(body)
        found = self._answer(method, path, sent, headers)
        try:
            answer = found.body
        except ValueError:
            answer = "<not JSON>"
        shown = answer if keeps is None or found.status >= 400 else keeps(answer)
        entry: dict[str, Any] = {"request": f"{method} {path}", "status": found.status}
        if body is not None:
            entry["sent"] = body.decode("latin-1") if isinstance(body, bytes) else body
        if headers:
            entry["with"] = dict(headers)
        for name in ("content-type", "location", "allow"):
            if name in found.headers:
                text = found.headers[name]
                entry[name] = ",".join(sorted(text.split(","))) if name == "allow" else self._stable(text)
        entry["body"] = self._stable(shown)
        self.exchanges.append(entry)
        return answer

    def _answer(self, method: str, path: str, sent: Any, headers: Mapping[str, str] | None) -> Answer:
        """The response. A question is asked again while workers share their work anew."""
        for _ in range(60):
            found = self.worker.call(method, path, sent, headers)
            if method != "GET" or b"rebalance is expected" not in found.text:
                break
            time.sleep(0.5)
        return found

    def _filled(self, value: Any) -> Any:
        if value is None or isinstance(value, bytes):
            return value
        return json.loads(json.dumps(value).replace("<folder>", str(self.folder)))

    def _stable(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {
                name: [self._stable(one) for one in each if one in OFFERED]
                if name == "recommended_values"
                else "<changing>"
                if name in CHANGING and each is not None
                else "<version>"
                if name in VERSIONED and each is not None
                else self._stable(each)
                for name, each in value.items()
                if name not in LEFT_OUT
            }
        if isinstance(value, list):
            return [self._stable(each) for each in value]
        if isinstance(value, str):
            if value in (VERSION, __version__):
                return "<version>"
            value = PLACE.sub("location='<place>'", value.replace(str(self.folder), "<folder>"))
            for each in (self.worker, *self.others):
                value = value.replace(each.id, "<worker>")
            return value
        return value
