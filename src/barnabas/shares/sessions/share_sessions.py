"""Share sessions (KIP-932): a member sends its partitions once, and afterwards only changes.

In: session epochs and partitions of ShareFetch and ShareAcknowledge requests, connections that are lost. Out:
the session with its partitions in the order in which they are served, or Kafka's error. Unlike fetch
sessions, these have no id and are not evicted: a member has one session at each broker, which ends with the
final epoch or with its connection. `include` says which partitions belong in a response.
Does not know: records, the network, the clock.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import NamedTuple

from barnabas.protocol import ErrorCode, KafkaError

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
FIRST_EPOCH = 1
INT32_MAX = 2**31 - 1


class TopicIdPartition(NamedTuple):
    topic_id: bytes
    partition: int


class MemberKey(NamedTuple):
    group: str
    member: str


class ShareSession:
    __slots__ = ("connection", "epoch", "key", "partitions")

    def __init__(self, key: MemberKey, partitions: Iterable[TopicIdPartition], connection: Hashable) -> None:
        self.key = key
        self.connection = connection
        self.epoch = FIRST_EPOCH  # that the next request must have
        # In the order in which they are served; True: the next response must have it.
        self.partitions: dict[TopicIdPartition, bool] = dict.fromkeys(partitions, False)

    def update(self, added: Iterable[TopicIdPartition], forgotten: Iterable[TopicIdPartition]) -> None:
        for partition in added:
            self.partitions.setdefault(partition, True)
        for partition in forgotten:
            self.partitions.pop(partition, None)

    def include(self, partition: TopicIdPartition, *, has_records: bool, has_error: bool) -> bool:
        """Whether a response must have the partition. One with records is served last next time."""
        known = self.partitions.get(partition)
        if known is None:
            return has_records or has_error
        if has_records:
            del self.partitions[partition]
        if has_records or known != has_error:
            self.partitions[partition] = has_error  # an error that is over shows in the next response
        return has_records or has_error or known

    def advance(self) -> None:
        self.epoch = next_epoch(self.epoch)


def next_epoch(epoch: int) -> int:
    if epoch < 0:
        return FINAL_EPOCH
    return FIRST_EPOCH if epoch == INT32_MAX else epoch + 1


class ShareSessions:
    """The share sessions of one broker."""

    __slots__ = ("_by_connection", "_members", "_sessions", "evictions", "sessions_max")

    def __init__(self, sessions_max: int) -> None:
        self.sessions_max = sessions_max  # `group.share.max.share.sessions`
        self.evictions = 0  # sessions that ended with their connection
        self._sessions: dict[MemberKey, ShareSession] = {}
        self._members: dict[str, int] = {}  # sessions of each group
        self._by_connection: dict[Hashable, dict[MemberKey, None]] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partition_count(self) -> int:
        return sum(len(session.partitions) for session in self._sessions.values())

    @property
    def connection_count(self) -> int:
        """Connections with sessions."""
        return len(self._by_connection)

    def get(self, key: MemberKey) -> ShareSession | None:
        return self._sessions.get(key)

    def has_members(self, group: str) -> bool:
        return group in self._members

    def open(
        self, key: MemberKey, partitions: Iterable[TopicIdPartition], connection: Hashable
    ) -> ShareSession:
        """Begin a session, instead of the one that the member has. SHARE_SESSION_LIMIT_REACHED if there are
        too many."""
        self.remove(key)
        if len(self._sessions) >= self.sessions_max:
            raise KafkaError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        session = self._sessions[key] = ShareSession(key, partitions, connection)
        self._members[key.group] = self._members.get(key.group, 0) + 1
        self._by_connection.setdefault(connection, {})[key] = None
        return session

    def use(self, key: MemberKey, epoch: int) -> ShareSession:
        """The session that a request with this epoch belongs to; the next request must have the next epoch.
        A request with the final epoch leaves the session as it is."""
        session = self._sessions.get(key)
        if session is None:
            raise KafkaError(ErrorCode.SHARE_SESSION_NOT_FOUND)
        if epoch != FINAL_EPOCH:
            if session.epoch != epoch:
                raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
            session.advance()
        return session

    def remove(self, key: MemberKey) -> ShareSession | None:
        """End a session. Records that the member has acquired are the caller's concern."""
        session = self._sessions.pop(key, None)
        if session is None:
            return None
        left = self._members[key.group] - 1
        if left:
            self._members[key.group] = left
        else:
            del self._members[key.group]
        others = self._by_connection.get(session.connection)
        if others is not None:
            others.pop(key, None)
            if not others:
                del self._by_connection[session.connection]
        return session

    def of_connection(self, connection: Hashable) -> list[ShareSession]:
        """The sessions that were begun on a connection."""
        return [self._sessions[key] for key in self._by_connection.get(connection, ())]

    def clear(self) -> list[ShareSession]:
        """End all sessions: share groups were switched off."""
        sessions = list(self._sessions.values())
        self._sessions.clear()
        self._members.clear()
        self._by_connection.clear()
        return sessions
