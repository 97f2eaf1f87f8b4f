"""A real Prometheus for tests: scrapes what it is told, answers queries."""

from __future__ import annotations

import json
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from barnabas.testing.ports import free_ports
from barnabas.testing.waiting import wait_until
from installed_tools import needs

START_S_MAX = 60


class Prometheus:
    def __init__(
        self,
        folder: Path,
        jobs: dict[str, Sequence[str]],
        rules: Path | None = None,
        dialects: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """`dialects`: of jobs that are scraped in another one than the nodes' own."""
        needs("prometheus", "promtool")
        [self.port] = free_ports(1)
        config = {
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(rules)] if rules is not None else [],
            "scrape_configs": [
                {
                    "job_name": job,
                    "static_configs": [{"targets": list(targets)}],
                    "params": {"dialect": [dialects[job]]} if job in dialects else {},
                }
                for job, targets in jobs.items()
            ],
        }
        self._config = folder / "prometheus.yml"
        self._config.write_text(json.dumps(config))  # YAML reads JSON
        self._folder = folder

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [
                "prometheus", f"--config.file={self._config}", f"--storage.tsdb.path={self._folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{self.port}", "--log.level=error",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        wait_until(self._is_ready, START_S_MAX, "Prometheus is ready")
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(30)

    def _is_ready(self) -> bool:
        try:
            return bool(self.get("/-/ready", is_json=False))
        except OSError:
            return False

    def get(self, path: str, *, is_json: bool = True, **query: str) -> Any:
        url = f"http://127.0.0.1:{self.port}{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=30) as answer:
            return json.load(answer) if is_json else answer.read()

    def query(self, text: str) -> list[Any]:
        """Series and their values now. ValueError: Prometheus does not understand the query."""
        try:
            data = self.get("/api/v1/query", query=text)["data"]
        except urllib.error.HTTPError as error:
            with error:
                raise ValueError(f"{text}: {json.load(error)['error']}") from None
        return [data["result"]] if data["resultType"] in ("scalar", "string") else list(data["result"])

    def targets(self) -> list[Any]:
        return list(self.get("/api/v1/targets")["data"]["activeTargets"])

    def rules(self) -> list[Any]:
        return [rule for group in self.get("/api/v1/rules")["data"]["groups"] for rule in group["rules"]]
