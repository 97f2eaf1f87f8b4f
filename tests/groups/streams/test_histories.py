"""Random histories of streams groups: members join, leave, die, lag and lose responses; topics come late.

After every step a task has at most one runner, a process runs no task twice, and a replay of the log gives
the same state. When members keep sending heartbeats, they reach an assignment of all tasks.
"""

from __future__ import annotations

import random

import pytest

from barnabas.groups.basics.settings import GroupSettings
from barnabas.protocol import ErrorCode

from ..host import Host
from .streams_client import COUNTS, SOURCE, WORDS, StreamsClient
from .test_coordinator import group_of, state_of

STEPS = 150
REPLAYED_EVERY = 15
PARTITIONS = 4
SESSION_MS = 45_000
TOPICS = {SOURCE: PARTITIONS, WORDS: PARTITIONS, COUNTS: PARTITIONS}


class History:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        settings = GroupSettings(
            streams_initial_rebalance_delay_ms=self.rng.choice((0, 3000)),
            streams_assignment_interval_ms=self.rng.choice((0, 1000)),
            streams_standby_count=self.rng.choice((0, 1, 2)),
        )
        self.host = Host(settings, {SOURCE: PARTITIONS}, seed)
        self.clients: list[StreamsClient] = []
        self.made = 0

    def step(self) -> None:
        choice = self.rng.random()
        client = self.rng.choice(self.clients) if self.clients else None
        if client is None or (choice < 0.07 and len(self.clients) < 6):
            self.made += 1
            client = StreamsClient(self.host, f"m{self.made}", f"process-{self.rng.randint(1, 4)}")
            client.join()
            self.clients.append(client)
        elif choice < 0.10:
            client.leave()
            self.clients.remove(client)
        elif choice < 0.12:
            self.clients.remove(client)  # it dies; what it ran counts until its session ends
            self.wait_for_session()
        elif choice < 0.20:
            client.send_beat()  # the response is lost
        elif choice < 0.22:
            self.host.change_topics(TOPICS)
        elif choice < 0.30:
            self.host.advance(self.rng.randrange(3000))
        else:
            client.beat()

    def wait_for_session(self) -> None:
        for _ in range(5):
            self.host.advance(SESSION_MS // 4)
            for client in self.clients:
                client.beat()

    def check(self) -> None:
        seen: dict[tuple[str, int], str] = {}
        places: set[tuple[str, str, int]] = set()
        for client in self.clients:
            for task in client.running():
                assert task not in seen, f"{seen[task]} and {client.member_id} run {task}"
                seen[task] = client.member_id
            for task in (*client.running(), *client.copies()):
                place = (client.process_id, *task)
                assert place not in places, f"a process runs {task} twice"
                places.add(place)

    def check_replay(self) -> None:
        groups = self.host.shard.streams.state.groups
        replayed = self.host.replayed().streams.state.groups
        assert {name: state_of(group) for name, group in replayed.items()} == {
            name: state_of(group) for name, group in groups.items()
        }

    def settle(self) -> None:
        self.host.change_topics(TOPICS)
        for _ in range(40):
            self.host.advance(1000)
            for client in self.clients:
                reply = client.beat()
                assert reply.error_code == ErrorCode.NONE


@pytest.mark.parametrize("seed", range(12))
def test_a_task_has_one_runner_and_all_tasks_run_in_the_end(seed: int) -> None:
    history = History(seed)
    for number in range(STEPS):
        history.step()
        history.check()
        if number % REPLAYED_EVERY == 0:
            history.check_replay()
    history.settle()
    history.check()
    history.check_replay()
    if history.clients:
        running = [task for client in history.clients for task in client.running()]
        assert sorted(running) == [(name, number) for name in "01" for number in range(PARTITIONS)]
        assert group_of(history.host).state == "Stable"
