"""What a run of the tests leaves behind, in a folder: how long each test took, which failed, which are flaky.

Does not know: pytest.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "tests"


class Kept:
    def __init__(self, folder: Path = FOLDER) -> None:
        self._durations = folder / "durations.json"
        self._failed = folder / "failed.txt"
        self._flaky = folder / "flaky.txt"
        self._folder = folder

    # -- durations ---------------------------------------------------------------------------------

    def seconds(self) -> dict[str, float]:
        """How long each test took when it last ran here; empty in a fresh clone."""
        try:
            return {str(test): float(took) for test, took in self._load()["seconds"].items()}
        except (OSError, ValueError, KeyError, AttributeError, TypeError):
            return {}

    def last_run(self) -> tuple[float, list[str]]:
        """Wall-clock seconds of the last run, and its tests; no tests where no run was kept."""
        try:
            kept = self._load()
            return float(kept["wall_s"]), [str(test) for test in kept["last"]]
        except (OSError, ValueError, KeyError, TypeError):
            return 0.0, []

    def processor(self) -> dict[str, float]:
        """Processor seconds of each file of the last run."""
        try:
            return {str(file): float(used) for file, used in self._load()["processor"].items()}
        except (OSError, ValueError, KeyError, AttributeError, TypeError):
            return {}

    def save_durations(
        self, wall_s: float, seconds: Mapping[str, float], processor: Mapping[str, float]
    ) -> None:
        new = {test: round(took, 3) for test, took in sorted(seconds.items())}
        kept = {
            "wall_s": round(wall_s, 1),
            "last": list(new),
            "seconds": self.seconds() | new,
            "processor": dict(sorted(processor.items())),
        }
        self._folder.mkdir(parents=True, exist_ok=True)
        beside = self._durations.with_suffix(f".{os.getpid()}")
        beside.write_text(json.dumps(kept, indent=0))
        beside.replace(self._durations)

    def _load(self) -> dict[str, Any]:
        return json.loads(self._durations.read_text())

    # -- failures ----------------------------------------------------------------------------------

    def failed(self) -> list[str]:
        """Of the last run; empty where it kept none."""
        return self._failed.read_text().splitlines() if self._failed.exists() else []

    def save_failed(self, tests: Iterable[str]) -> None:
        self._save(self._failed, tests)

    def save_flaky(self, tests: Iterable[str]) -> None:
        self._save(self._flaky, tests)

    def forget_failures(self) -> None:
        for path in (self._failed, self._flaky):
            path.unlink(missing_ok=True)

    def _save(self, path: Path, tests: Iterable[str]) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{test}\n" for test in tests))
