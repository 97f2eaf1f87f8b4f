"""Trials of consumer groups: joining, leaving, committing, and the memory of a thousand groups.

In: a broker, a scale. Out: one value for each row. Does not know: which broker it is, the order of rounds,
floors.
"""

from __future__ import annotations

import itertools
import socket
import struct
import subprocess
import time

from bench import frames, generator
from bench import group_frames as wire
from bench.brokers import Apache, Contender, ask, create_topics, memory_bytes
from bench.generator import LoadError, Plan
from bench.group_members import Group
from bench.loads import Scale, Trial

TOPIC = "group-work"
MEMBERS_MAX = 100
GROUPS_PER_PARTITION = 2.5  # of the scale: 10,000 at its fullest
COORDINATOR_TIMEOUT_S = 60.0
CHUNK = 200
GROUPS_PER_ROW = 1_000
_names = itertools.count(1)


def members_of(scale: Scale) -> int:
    return min(MEMBERS_MAX, scale.partitions)


def groups_of(scale: Scale) -> int:
    return int(scale.partitions * GROUPS_PER_PARTITION)


def make_work(broker: Contender, scale: Scale) -> None:
    """Create a topic with a record in each partition, and wait until the coordinator is ready."""
    partitions = members_of(scale)
    create_topics(broker, {TOPIC: partitions})
    batch = frames.batch_of(1)
    for partition in range(partitions):
        load = frames.produce(TOPIC, batch, 1, partition)
        ask(broker.port, load.frames)
    wait_for_coordinator(broker)


def wait_for_coordinator(broker: Contender) -> None:
    deadline = time.perf_counter() + COORDINATOR_TIMEOUT_S
    while True:
        found = wire.error_of(ask(broker.port, wire.find_coordinator("any")))
        if not found:
            answer = ask(broker.port, wire.offset_fetch("any", TOPIC, 0))
            found = wire.offset_fetch_error(answer)
        if found not in (14, 15, 16):
            return
        if time.perf_counter() > deadline:
            raise LoadError(f"the coordinator of {broker.name} does not come up: error {found}")
        time.sleep(0.01)


def join_group(broker: Contender, scale: Scale) -> dict[str, float]:
    """Groups of 1, 10 and 100 members, from the first join to each member's first record; then one leaves."""
    values: dict[str, list[float]] = {}
    end = time.perf_counter() + scale.seconds
    while not values or time.perf_counter() < end:
        for size in (1, 10, 100):
            group = Group(broker.port, f"joining-{next(_names)}", TOPIC, min(size, members_of(scale)))
            try:
                values.setdefault(f"group-join-{size}", []).append(group.join_all() * 1e3)
                if size == 100:
                    values.setdefault("group-leave", []).append(group.one_leaves() * 1e3)
            finally:
                group.close()
    return {name: sorted(found)[len(found) // 2] for name, found in values.items()}


def commits_pipelined(broker: Contender, scale: Scale) -> dict[str, float]:
    """One group, one connection, 512 commits in flight."""
    load = b"".join(wire.commit("committing", TOPIC, offset) for offset in range(512))
    plan = Plan(1, 512, seconds=scale.seconds, error_at=wire.commit_error_at(TOPIC))
    return {"commits-pipelined": generator.run(broker.port, load, plan).rate / 1e3}


def commits_of_many_groups(broker: Contender, scale: Scale) -> dict[str, float]:
    """10,000 groups that commit in turn, on 16 connections."""
    load = b"".join(wire.commit(f"many-{n}", TOPIC, n) for n in range(groups_of(scale)))
    plan = Plan(16, 32, seconds=scale.seconds, error_at=wire.commit_error_at(TOPIC))
    return {"commits-groups": generator.run(broker.port, load, plan).rate / 1e3}


def memory_of_groups(broker: Contender, scale: Scale) -> dict[str, float]:
    """The memory that groups of one member and one offset add (to Java's heap after a collection)."""
    broker.start()
    try:
        run = next(_names)
        create_topics(broker, {f"{TOPIC}-{run}": 1})
        wait_for_coordinator(broker)
        count = groups_of(scale)
        make_groups(broker, f"{TOPIC}-{run}", f"first-{run}", count // 10)
        before = held_bytes(broker)
        make_groups(broker, f"{TOPIC}-{run}", f"more-{run}", count)
        after = held_bytes(broker)
    finally:
        broker.stop()
    return {"group-memory": max(after - before, 1) / count * GROUPS_PER_ROW / 1e6}


def held_bytes(broker: Contender) -> int:
    if broker.name != Apache.name:
        return memory_bytes(broker.pid)
    pid = str(broker.pid)
    for _ in range(2):
        subprocess.run(["jcmd", pid, "GC.run"], capture_output=True, check=True)
    lines = subprocess.run(["jcmd", pid, "GC.heap_info"], capture_output=True, text=True, check=True).stdout
    words = next(line for line in lines.splitlines() if "used" in line).replace(",", "").split()
    return int(words[words.index("used") + 1].rstrip("K")) * 1024


def make_groups(broker: Contender, topic: str, prefix: str, count: int) -> None:
    """Create groups, each with a member that joined and synced, and a committed offset."""
    with socket.create_connection(("127.0.0.1", broker.port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        stream = connection.makefile("rb")

        def exchange(requests: list[bytes]) -> list[bytes]:
            """Send all joins before reading: each waits for its own group, and responses come in order."""
            connection.sendall(b"".join(requests))
            return [stream.read(struct.unpack(">i", stream.read(4))[0]) for _ in requests]

        for start in range(0, count, CHUNK):
            names = [f"{prefix}-{n}" for n in range(start, min(start + CHUNK, count))]
            answers = exchange([wire.join(name, "", topic, 3) for name in names])
            found = dict(zip(names, (wire.joined(answer, 3) for answer in answers), strict=True))
            part = wire.assignment(topic, 0)
            syncs, commits = [], []
            for name, joined in found.items():
                if joined.error:
                    raise LoadError(f"{broker.name} refused a join with error {joined.error}")
                syncs.append(wire.sync(name, joined.generation, joined.member_id, {joined.member_id: part}))
                commits.append(wire.commit(name, topic, 1, joined.generation, joined.member_id))
            exchange(syncs)
            exchange(commits)


TRIALS = (
    Trial(("group-join-1", "group-join-10", "group-join-100", "group-leave"), join_group, prepare=make_work),
    Trial(("commits-pipelined",), commits_pipelined, prepare=make_work),
    Trial(("commits-groups",), commits_of_many_groups, prepare=make_work),
)
FRESH_TRIALS = (Trial(("group-memory",), memory_of_groups, warm_up=False),)
