"""Workers are killed in turn while clients create, change and remove connectors: none is lost or doubled."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from barnabas.testing import Broker
from barnabas.testing.waiting import wait_until
from connect.worker_processes import FILE_SOURCE, WorkerProcess

COUNT, KILLS, CLIENTS = 60, 3, 3
PAUSE_S = 0.2
LOST = (0, 500)  # the response was lost with a worker: the request may have been carried out


class Clients:
    """Clients of one cluster, and the connectors that there must be, with the numbers of their changes."""

    def __init__(self, folder: Path, workers: list[WorkerProcess]) -> None:
        self.workers = workers
        self.wanted: dict[str, int] = {}
        self.wrong: list[object] = []
        self.stopping = threading.Event()
        self.is_alive = [True] * len(workers)
        self._file = str(folder / "in.txt")

    def config(self, number: int) -> dict[str, str]:
        return {"connector.class": FILE_SOURCE, "file": self._file, "topic": "lines", "number": str(number)}

    def ask(self, chance: random.Random, method: str, path: str, body: object, done: tuple[int, ...]) -> None:
        """Send a request to any worker until it is carried out."""
        may_be_done = False
        while True:
            living = [each for each, is_there in zip(self.workers, self.is_alive, strict=True) if is_there]
            found = chance.choice(living).call(method, path, body)
            text = found.text.decode(errors="replace")
            if found.status == 500 and "IO Error" not in text:
                self.wrong.append((method, path, found.status, text))
            is_repeated = may_be_done and (found.status == 404 or "already exists" in text)
            if found.status in done or is_repeated:
                return
            if found.status not in (*LOST, 409) or "already exists" in text:
                self.wrong.append((method, path, found.status, text))
                return
            may_be_done = may_be_done or found.status in LOST
            time.sleep(PAUSE_S)

    def create(self, chance: random.Random, name: str, number: int) -> None:
        self.ask(chance, "POST", "/connectors", {"name": name, "config": self.config(number)}, (201,))
        self.wanted[name] = number

    def live(self, number: int) -> None:
        chance = random.Random(number)
        for step in range(1_000_000):
            if self.stopping.is_set():
                return
            mine = [name for name in list(self.wanted) if name.startswith(f"c{number}-")]
            action = chance.random()
            if action < 0.4 or not mine:
                self.create(chance, f"c{number}-{step}", step)
            elif action < 0.75:
                name = chance.choice(mine)
                self.ask(chance, "PATCH", f"/connectors/{name}/config", {"number": str(step)}, (200,))
                self.wanted[name] = step
            else:
                name = chance.choice(mine)
                self.ask(chance, "DELETE", f"/connectors/{name}", None, (204,))
                del self.wanted[name]

    def differences(self) -> object:
        """The first thing that is not as it must be on some worker, None if there is none."""
        ids = {each.id for each in self.workers}
        running: Counter[tuple[str, int]] = Counter()
        for worker in self.workers:
            found = worker.get("/connectors?expand=status&expand=info")
            tasks = worker.get("/barnabas/tasks")
            if found is None or tasks is None:
                return f"{worker.id} does not answer"
            if found.keys() != self.wanted.keys():
                return sorted(found.keys() ^ self.wanted.keys())
            for name, entry in found.items():
                if "status" not in entry:
                    return name
                status = entry["status"]
                parts = [status["connector"], *status["tasks"]]
                states = [each["state"] for each in parts if each["worker_id"] in ids]
                if states != ["RUNNING"] * 2 or entry["info"]["config"]["number"] != str(self.wanted[name]):
                    return entry
            running.update((each["connector"], each["task"]) for each in tasks)
        return None if running == dict.fromkeys(((name, 0) for name in self.wanted), 1) else running


@pytest.mark.long
@pytest.mark.timeout(900)
def test_no_connector_is_lost_or_doubled_while_workers_are_killed(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("one\n")
    with Broker() as broker:
        workers = [
            WorkerProcess(tmp_path / "w", broker.bootstrap, "churn", is_apache=False) for _ in range(3)
        ]
        try:
            for each in workers:
                each.wait()
            clients = Clients(tmp_path, workers)
            for number in range(COUNT):
                clients.create(random.Random(number), f"first-{number}", number)
            threads = [threading.Thread(target=clients.live, args=(each,)) for each in range(CLIENTS)]
            for thread in threads:
                thread.start()
            for turn in range(KILLS):
                worker, before = workers[turn % 3], len(clients.wanted)
                wait_until(lambda before=before: len(clients.wanted) > before + 5, 120)  # type: ignore[misc]
                clients.is_alive[turn % 3] = False
                worker.kill()
                wait_until(lambda before=before: len(clients.wanted) > before + 10, 120)  # type: ignore[misc]
                worker.restart()
                worker.wait()
                clients.is_alive[turn % 3] = True
            clients.stopping.set()
            for thread in threads:
                thread.join(120)
                assert not thread.is_alive()
            wait_until(lambda: clients.differences() is None, 120, lambda: f"{clients.differences()}")
            assert not clients.wrong
        finally:
            for each in workers:
                each.stop()
