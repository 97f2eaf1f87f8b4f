"""A classic group of raw members, with one connection each, in one loop.

In: an address, a topic with a record in each partition. Out: the time until all members have read a record of
their own partition, and the time until the others have rebalanced after one left.
Does not know: which broker it is.
"""

from __future__ import annotations

import enum
import select
import socket
import struct
import time

from bench import frames
from bench import group_frames as wire
from bench.generator import LoadError

MEMBER_ID_REQUIRED, REBALANCE_IN_PROGRESS = 79, 27
NOT_YET = (14, 15, 16)  # the coordinator loads, is not available, or has moved: retry
STALL_S = 30.0
BEAT_S = 0.002  # interval of heartbeats while a member waits for others
BEATS_A_SECOND_MAX = 10_000
FETCH_BYTES = 1 << 16


class Step(enum.Enum):
    IDLE = 0
    JOINING = 1
    SYNCING = 2
    POSITION = 3
    FETCHING = 4
    READ = 5
    BEATING = 6
    LEAVING = 7
    GONE = 8


class Member:
    """One member: its connection, the response it waits for, and its state in the group."""

    __slots__ = ("asked_at", "generation", "id", "partition", "received", "sock", "step")

    def __init__(self, port: int) -> None:
        self.sock = socket.create_connection(("127.0.0.1", port))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.received = bytearray()
        self.step = Step.IDLE
        self.id = ""
        self.generation = -1
        self.partition = -1
        self.asked_at = 0.0

    def answer(self) -> bytes | None:
        """The next response without its size; None until all of it has arrived."""
        data = self.sock.recv(1 << 16)
        if not data:
            raise LoadError("connection closed by the broker")
        self.received += data
        if len(self.received) < 4:
            return None
        (size,) = struct.unpack_from(">i", self.received)
        if len(self.received) < 4 + size:
            return None
        found = bytes(self.received[4 : 4 + size])
        del self.received[: 4 + size]
        return found


class Group:
    """All members of one group in one poll."""

    def __init__(self, port: int, name: str, topic: str, size: int) -> None:
        self.port, self.name, self.topic = port, name, topic
        self.members = [Member(port) for _ in range(size)]
        self.generation = -1
        self.generation_size = 0
        self._beat_s = max(BEAT_S, size / BEATS_A_SECOND_MAX)
        self._poll = select.epoll()
        self._by_fd = {member.sock.fileno(): member for member in self.members}
        for fd in self._by_fd:
            self._poll.register(fd, select.EPOLLIN)

    def close(self) -> None:
        self._poll.close()
        for member in self.members:
            member.sock.close()

    def join_all(self) -> float:
        """Seconds from the first join until every member of the complete group has read a record."""
        began = time.perf_counter()
        for member in self.members:
            self._join(member)
        self._run(len(self.members))
        return time.perf_counter() - began

    def one_leaves(self) -> float:
        """Seconds from the leave until all other members have a new assignment and have read a record."""
        leaver = next(member for member in self.members if member.generation == self.generation)
        began = time.perf_counter()
        self._ask(leaver, Step.LEAVING, wire.leave(self.name, leaver.id))
        self._run(len(self.members) - 1)
        return time.perf_counter() - began

    def _run(self, size: int) -> None:
        deadline = time.perf_counter() + STALL_S
        while not self._is_done(size):
            for fd, _ in self._poll.poll(BEAT_S):
                member = self._by_fd[fd]
                if (answer := member.answer()) is not None:
                    self._take(member, answer)
            now = time.perf_counter()
            if now > deadline:
                steps = {step.name: sum(m.step is step for m in self.members) for step in Step}
                raise LoadError(f"a group of {size} does not settle: {steps}")
            self._beat(now)

    def _is_done(self, size: int) -> bool:
        if self.generation_size != size:
            return False
        has_read = (Step.READ, Step.BEATING)
        return size == sum(m.step in has_read and m.generation == self.generation for m in self.members)

    def _beat(self, now: float) -> None:
        for member in self.members:
            if member.step is Step.READ and now - member.asked_at > self._beat_s:
                self._ask(member, Step.BEATING, wire.heartbeat(self.name, member.generation, member.id))

    def _ask(self, member: Member, step: Step, frame: bytes) -> None:
        member.step, member.asked_at = step, time.perf_counter()
        member.sock.sendall(frame)

    def _join(self, member: Member) -> None:
        self._ask(member, Step.JOINING, wire.join(self.name, member.id, self.topic))

    def _take(self, member: Member, answer: bytes) -> None:
        """Choose the next request of a member by a response."""
        step = member.step
        if step is Step.JOINING:
            self._on_joined(member, wire.joined(answer))
        elif step is Step.SYNCING:
            self._on_synced(member, answer)
        elif step is Step.POSITION:
            frame = frames.fetch(self.topic, 0, FETCH_BYTES, partition=member.partition)
            self._ask(member, Step.FETCHING, frame)
        elif step is Step.FETCHING:
            if len(answer) < frames.fetch_head_bytes(self.topic):
                raise LoadError(f"no record in partition {member.partition}")
            member.step = Step.READ
        elif step is Step.BEATING:
            member.step = Step.READ
            self._go_on(member, wire.error_of(answer))
        elif step is Step.LEAVING:
            member.step, member.generation = Step.GONE, -1
            for other in self.members:
                if other.step is Step.READ:
                    self._ask(other, Step.BEATING, wire.heartbeat(self.name, other.generation, other.id))

    def _go_on(self, member: Member, error: int) -> None:
        if error == REBALANCE_IN_PROGRESS or error in NOT_YET:
            self._join(member)
        elif error:
            raise LoadError(f"a member got error {error}")

    def _on_joined(self, member: Member, joined: wire.Joined) -> None:
        if joined.error == MEMBER_ID_REQUIRED:
            member.id = joined.member_id
            self._join(member)
        elif joined.error:
            self._go_on(member, joined.error)
        else:
            member.id, member.generation = joined.member_id, joined.generation
            parts: dict[str, bytes] = {}
            if joined.members:
                self.generation, self.generation_size = joined.generation, len(joined.members)
                parts = {who: wire.assignment(self.topic, n) for n, who in enumerate(joined.members)}
            self._ask(member, Step.SYNCING, wire.sync(self.name, member.generation, member.id, parts))

    def _on_synced(self, member: Member, answer: bytes) -> None:
        if error := wire.error_of(answer):
            self._go_on(member, error)
            return
        member.partition = wire.assigned_partition(wire.synced(answer), self.topic)
        self._ask(member, Step.POSITION, wire.offset_fetch(self.name, self.topic, member.partition))
