"""kill -9 during decisions: everything that got a response is there, and the next start continues from it."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from pathlib import Path

import pytest

from runtime.nodes import Node, run, settings_for

KILLS = 4
ANSWERS_BEFORE_THE_END = (3, 40)


async def create_for_ever(folder: Path, prefix: str) -> None:
    """Create topics, several at a time, and print the name of each when its response comes."""
    node = await Node(settings_for(folder, metadata_log_max_record_bytes_between_snapshots="4000")).start()
    node.sync_in_threads()

    async def one_after_another(worker: int) -> None:
        for number in range(1_000_000):
            name = f"{prefix}-{worker}-{number}"
            assert (await node.create(name)).error_code == 0
            print(name, flush=True)

    await asyncio.gather(*(one_after_another(worker) for worker in range(4)))


@pytest.mark.slow
def test_topics_that_got_a_response_survive_repeated_kills(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    Node(settings_for(folder)).format()
    rng = random.Random(1)
    answered: set[str] = set()
    for life in range(KILLS):
        command = [sys.executable, "-m", "runtime.test_killed", str(folder), f"life{life}"]
        with subprocess.Popen(
            command, cwd=Path(__file__).parents[1], stdout=subprocess.PIPE, text=True
        ) as child:
            assert child.stdout is not None
            for _ in range(rng.randrange(*ANSWERS_BEFORE_THE_END)):
                answered.add(child.stdout.readline().strip())
            child.kill()
            answered.update(line.strip() for line in child.stdout if line.endswith("\n"))

    async def survivors() -> set[str]:
        node = await Node(settings_for(folder)).start()
        found = set(node.controller.image.topics.by_name)
        await node.stop()
        return found

    assert len(answered) > KILLS
    assert answered <= run(survivors)


if __name__ == "__main__":
    asyncio.run(create_for_ever(Path(sys.argv[1]), sys.argv[2]))
