"""Three workers of one cluster, and what happens to them: kills, restarts, pauses, stops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from barnabas.testing.waiting import wait_until
from connect.worker_processes import JSON, WorkerProcess

PATIENCE_S = 120.0


class Workers:
    """Workers by number. Calls go to one that lives."""

    def __init__(self, folder: Path, bootstrap: str, count: int = 3, **more: str) -> None:
        given = {
            "key__converter": JSON,
            "value__converter": JSON,
            "exactly__once__source__support": "enabled",
            "topic__creation__enable": "true",
            **more,
        }
        self.all = [
            WorkerProcess(folder / f"w{number}", bootstrap, "shown", is_apache=False, **given)
            for number in range(count)
        ]
        self.bootstrap = bootstrap
        self.connectors: list[str] = []
        for each in self.all:
            each.wait(PATIENCE_S)

    @property
    def one(self) -> WorkerProcess:
        return next(each for each in self.all if each.process.poll() is None)

    def said(self) -> str:
        return "\n".join(each.said() for each in self.all)

    def done(self, condition: Callable[[], object], what: str = "") -> None:
        wait_until(condition, PATIENCE_S, lambda: f"{what}: {self.failures()}\n{self.said()}")

    def call(self, method: str, path: str, body: object = None, expected: tuple[int, ...] = ()) -> Any:
        """Send a request again while workers rebalance (409), and return its body."""
        wanted = expected or (200, 201, 202, 204)
        found: list[Any] = []

        def is_done() -> bool:
            response = self.one.call(method, path, body)
            if response.status in (0, 409, 500, 503) and response.status not in wanted:
                return False
            found.append(response)
            return True

        self.done(is_done, f"{method} {path}")
        assert found[0].status in wanted, (method, path, found[0].status, found[0].text)
        return found[0].body

    def create(self, name: str, config: Mapping[str, str]) -> None:
        self.call("POST", "/connectors", {"name": name, "config": dict(config)}, (201,))
        self.connectors.append(name)

    def states(self, name: str) -> list[str]:
        """The states of a connector and its tasks; the tasks must be on workers that live."""
        found = self.one.get(f"/connectors/{name}/status")
        if found is None:
            return []
        living = {each.id for each in self.all if each.process.poll() is None}
        parts = [found["connector"], *found["tasks"]]
        return [each["state"] if each["worker_id"] in living else "AWAY" for each in parts]

    def failures(self) -> dict[str, Any]:
        found = self.one.get("/connectors?expand=status") or {}
        return {
            name: [task.get("trace", "")[-1500:] or task["state"] for task in each["status"]["tasks"]]
            for name, each in found.items()
            if any(task["state"] != "RUNNING" for task in each["status"]["tasks"])
        }

    def all_are(self, state: str) -> None:
        for name in self.connectors:
            self.done(
                lambda name=name: (found := self.states(name))[1:] and set(found) == {state},  # type: ignore[misc]
                f"{name} is {state}",
            )

    def owner(self, name: str) -> WorkerProcess:
        found = self.one.get(f"/connectors/{name}/tasks/0/status")
        return next(each for each in self.all if each.id == found["worker_id"])

    def revive(self) -> None:
        """Start those again that were killed."""
        gone = [each for each in self.all if each.process.poll() is not None]
        for each in gone:
            each.restart()
        for each in gone:
            each.wait(PATIENCE_S)

    def stop(self) -> None:
        for each in self.all:
            each.stop()


@contextmanager
def running_workers(folder: Path, bootstrap: str, **more: Any) -> Iterator[Workers]:
    workers = Workers(folder, bootstrap, **more)
    try:
        yield workers
    except BaseException:
        print(workers.failures(), workers.said())
        raise
    finally:
        workers.stop()
