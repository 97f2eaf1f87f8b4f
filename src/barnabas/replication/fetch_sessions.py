"""Fetch sessions (KIP-227): a consumer or follower sends its partitions once, and afterwards only changes.

In: Fetch requests, one after the other. Out: a `FetchContext` for each: the partitions to read, and which of
them belong in the response. A broker uses it like this:

    context = sessions.open(request, api_version, now_ms, privileged=is_follower)
    if context.error_code: respond with it (session_id 0, no partitions)
    for partition in context.partitions: ...read from partition.request.fetch_offset on, perhaps wait...
    if context.superseded: respond with INVALID_FETCH_SESSION_EPOCH (the client gave up on this request)
    respond with context.session_id and every partition for which context.include(partition, data) is true

`include` remembers what was sent to the client, so call it once for each partition of a response. Most
partitions of a follower have no news. After the first request, `to_read` returns only the partitions that the
request names, that are not settled (`mark_settled`), or that the broker has marked since
(`SessionPartition.mark`).
Does not know: topics, logs, waiting, the network, the clock.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, Protocol

from barnabas.protocol import NULL_UUID, ErrorCode

if TYPE_CHECKING:
    from barnabas.protocol.messages.fetch import FetchRequest, FetchResponse

NO_SESSION = 0
INITIAL_EPOCH = 0  # a full request that wants a session
FINAL_EPOCH = -1  # a full request that wants none
INT32_MAX = 2**31 - 1
PARTITIONS_A_STEP = 32  # of `open_in_steps`
TOPIC_IDS_SINCE_VERSION = 13
EVICTION_MS = 120_000  # any new session may evict one that was unused for longer

# Instead of the high watermark that was sent to the client last:
NOT_SENT_YET = -1
LOG_AGREES = -2  # not sent yet, but the follower's log is known to agree with the leader's


_numbers = count()


class Rng(Protocol):
    def randrange(self, start: int, stop: int, /) -> int: ...


class SessionPartition:
    """One partition that a client fetches: its last request, and the last state that was sent to it."""

    __slots__ = (
        "attachment", "high_watermark", "index", "log_start_offset", "number", "request", "session", "topic",
        "topic_id",
    )  # fmt: skip

    def __init__(
        self, topic: str, topic_id: bytes, request: "FetchRequest.FetchTopic.FetchPartition"
    ) -> None:
        self.topic = topic  # "" until the broker resolves the topic id
        self.topic_id = topic_id
        self.index = request.partition
        self.request = (
            request  # fetch_offset, partition_max_bytes, current_leader_epoch, last_fetched_epoch ...
        )
        self.high_watermark = NOT_SENT_YET
        self.log_start_offset = -1
        self.attachment: Any = None  # for the broker: cached lookups for this partition
        self.number = next(_numbers)  # if a follower has two for one partition, the larger number is current
        self.session: FetchSession | None = None  # a follower's session, while it fetches this partition

    def mark(self) -> "FetchSession | None":
        """Mark that the partition may have news. Returns the session to examine, or None if it is closed."""
        session = self.session
        if session is not None:
            session.unsettled[self] = None
        return session

    def __repr__(self) -> str:
        return f"{self.topic or self.topic_id.hex()}-{self.index}@{self.request.fetch_offset}"


class FetchSession:
    __slots__ = (
        "_moved",
        "_ordered",
        "created_ms",
        "epoch",
        "last_used_ms",
        "on_change",
        "partitions",
        "privileged",
        "session_id",
        "unsettled",
        "uses_topic_ids",
    )

    def __init__(self, session_id: int, *, privileged: bool, uses_topic_ids: bool, now_ms: int) -> None:
        self.session_id = session_id
        self.privileged = privileged  # a follower's: it may evict consumers' sessions
        self.uses_topic_ids = uses_topic_ids
        self.created_ms = now_ms
        self.last_used_ms = now_ms
        self.epoch = INITIAL_EPOCH + 1  # that the next request must have
        self.partitions: dict[tuple[bytes | str, int], SessionPartition] = {}
        self.unsettled: dict[
            SessionPartition, None
        ] = {}  # partitions of a follower that may have news, in fair order
        self.on_change: Callable[[], None] | None = (
            None  # the broker sets and calls it while a follower waits
        )
        self._ordered: list[SessionPartition] | None = None
        self._moved: list[tuple[bytes | str, int]] = []

    def advance_epoch(self, now_ms: int) -> None:
        self.last_used_ms = now_ms
        self.epoch = self.epoch + 1 if self.epoch < INT32_MAX else 1

    def ordered(self) -> list[SessionPartition]:
        """The partitions in the order to read them. For fairness, those that returned records last come
        last."""
        if self._moved:
            partitions = self.partitions
            for key in self._moved:
                if (partition := partitions.pop(key, None)) is not None:
                    partitions[key] = partition
            self._moved = []
            self._ordered = None
        if self._ordered is None:
            self._ordered = list(self.partitions.values())
        return self._ordered

    def update_partitions(self, topics: "Iterable[FetchRequest.FetchTopic]") -> list[SessionPartition]:
        """Add partitions to the session, or update those it has. For a follower, returns all named ones."""
        named: list[SessionPartition] = []
        partitions = self.partitions
        uses_topic_ids = self.uses_topic_ids
        for topic in topics:
            name: bytes | str = topic.topic_id if uses_topic_ids else topic.topic
            for request in topic.partitions:
                key = (name, request.partition)
                known = partitions.get(key)
                if known is not None:
                    known.request = request
                else:
                    known = partitions[key] = SessionPartition(
                        "" if uses_topic_ids else topic.topic,
                        topic.topic_id if uses_topic_ids else NULL_UUID,
                        request,
                    )
                    self._ordered = None
                if self.privileged:
                    # The follower may have dropped the last response: it had already sent this request, or
                    # its log was being truncated. So send the high watermark again.
                    known.high_watermark = NOT_SENT_YET
                    known.session = self
                    self.unsettled[known] = None
                    named.append(known)
        return named

    def forget(self, topics: "Iterable[FetchRequest.ForgottenTopic]") -> None:
        for topic in topics:
            name: bytes | str = topic.topic_id if self.uses_topic_ids else topic.topic
            for index in topic.partitions:
                gone = self.partitions.pop((name, index), None)
                if gone is not None:
                    gone.session = None
                    self.unsettled.pop(gone, None)
                    self._ordered = None

    def move_to_end(self, partition: SessionPartition) -> None:
        """Move a partition behind the others for the next request."""
        if self.privileged:
            self.unsettled.pop(partition, None)
            self.unsettled[partition] = None
        elif len(self.partitions) > 1:
            self._moved.append(
                (partition.topic_id if self.uses_topic_ids else partition.topic, partition.index)
            )


class FetchContext:
    """One Fetch request within its session, or without one."""

    __slots__ = (
        "_epoch", "_session", "error_code", "follower_session", "full", "named", "partitions", "session_id",
    )  # fmt: skip

    def __init__(
        self,
        partitions: list[SessionPartition],
        session: FetchSession | None = None,
        *,
        full: bool = True,
        error_code: int = 0,
        marked: FetchSession | None = None,
        named: Sequence[SessionPartition] = (),
        epoch: int | None = None,
    ) -> None:
        self.partitions = partitions
        self.named = named  # the partitions of a follower that this request names
        self.session_id = session.session_id if session is not None else NO_SESSION
        self.full = full  # the response contains every partition
        self.error_code = error_code
        self._session = session
        # The session in which a follower's partitions are marked; without one, a session of this request.
        self.follower_session = session if session is not None and session.privileged else marked
        if epoch is None:
            epoch = session.epoch if session is not None else 0
        self._epoch = epoch  # that the session has until the next request

    @property
    def size(self) -> int:
        """The number of partitions to examine now."""
        session = self._session
        if session is None or not self.is_incremental:
            return len(self.partitions)
        return len(session.unsettled)

    def to_read(self) -> list[SessionPartition]:
        """The partitions to examine now."""
        session = self._session
        if session is None or not self.is_incremental:
            return self.partitions
        return list(session.unsettled)

    @property
    def is_incremental(self) -> bool:
        """Whether a response may leave partitions of a follower to the next one."""
        return not self.full and self._session is not None and self._session.privileged

    @property
    def has_settled(self) -> bool:
        """Whether some partition need not be examined."""
        session = self._session
        if session is None or not self.is_incremental:
            return False
        return len(session.partitions) > len(session.unsettled)

    def mark_settled(self, partition: SessionPartition) -> None:
        """Skip a partition until it is marked again: the follower has all its records and its current
        state."""
        if self._session is not None:
            self._session.unsettled.pop(partition, None)

    @property
    def superseded(self) -> bool:
        """Whether a later request of the session came meanwhile. Then the client ignores this response."""
        return self._session is not None and self._session.epoch != self._epoch

    def include(
        self, partition: SessionPartition, data: "FetchResponse.FetchableTopicResponse.PartitionData"
    ) -> bool:
        """Whether the response must contain the partition. If so, its state counts as sent."""
        return self.include_state(
            partition,
            data.high_watermark,
            data.log_start_offset,
            has_records=bool(data.records),
            has_news=data.error_code != 0
            or data.preferred_read_replica >= 0
            or data.diverging_epoch.epoch >= 0,
            failed=data.error_code != 0,
        )

    def include_state(
        self,
        partition: SessionPartition,
        high_watermark: int,
        log_start_offset: int,
        *,
        has_records: bool = False,
        has_news: bool = False,
        failed: bool = False,
    ) -> bool:
        """Like `include`, without the response's data: avoids building it for unchanged partitions."""
        session = self._session
        if session is None:
            return True
        changed = self.full or has_records or has_news
        if partition.high_watermark != high_watermark:
            partition.high_watermark = high_watermark
            changed = True
        if partition.log_start_offset != log_start_offset:
            partition.log_start_offset = log_start_offset
            changed = True
        if failed:
            partition.high_watermark = NOT_SENT_YET  # so that the next successful read is included
            if self.is_incremental:
                session.move_to_end(partition)  # partitions that fail must not keep others out of responses
            return True
        if has_records and not self.full:
            session.move_to_end(partition)
        return changed


class FetchSessions:
    """The sessions of one broker: at most `slots` (`max.incremental.fetch.session.cache.slots`)."""

    def __init__(self, slots: int, rng: Rng, eviction_ms: int = EVICTION_MS) -> None:
        self._slots = slots
        self._rng = rng
        self._eviction_ms = eviction_ms
        self._sessions: dict[int, FetchSession] = {}
        self.evictions = 0

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partitions_cached(self) -> int:
        return sum(len(session.partitions) for session in self._sessions.values())

    def open(
        self, request: "FetchRequest", api_version: int, now_ms: int, *, privileged: bool = False
    ) -> FetchContext:
        """Find or create the session of a request and update it."""
        epoch = request.session_epoch
        uses_topic_ids = api_version >= TOPIC_IDS_SINCE_VERSION
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            return self._open_full(request, uses_topic_ids, now_ms, privileged)
        session = self._continued(request, uses_topic_ids)
        if isinstance(session, FetchContext):
            return session
        named = session.update_partitions(request.topics)
        if request.forgotten_topics_data:
            session.forget(request.forgotten_topics_data)
        if not session.partitions:
            del self._sessions[session.session_id]
            return _without_session(request, uses_topic_ids, privileged)
        session.advance_epoch(now_ms)
        partitions = [] if session.privileged else session.ordered()
        return FetchContext(partitions, session, full=False, named=named)

    def open_in_steps(
        self, request: "FetchRequest", api_version: int, now_ms: int, *, privileged: bool = False
    ) -> Generator[None, None, FetchContext]:
        """Do the same as `open` for a request of many partitions, a few of them in each step.

        The epoch advances first, so that no other request takes this one's place between two steps. A new
        session is found by others when it is complete.
        """
        uses_topic_ids = api_version >= TOPIC_IDS_SINCE_VERSION
        is_full = request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH)
        if is_full:
            self._sessions.pop(request.session_id, None)
        else:
            session = self._continued(request, uses_topic_ids)
            if isinstance(session, FetchContext):
                return session
            session.advance_epoch(now_ms)
            epoch = session.epoch
            named: list[SessionPartition] = []
            for topics in parts_of(request.topics):
                named += session.update_partitions(topics)
                yield
            for forgotten in parts_of(request.forgotten_topics_data):
                session.forget(forgotten)
                yield
            if session.partitions:
                partitions = [] if session.privileged else session.ordered()
                return FetchContext(partitions, session, full=False, named=named, epoch=epoch)
            if self._sessions.get(session.session_id) is session:
                del self._sessions[session.session_id]
        new = FetchSession(NO_SESSION, privileged=privileged, uses_topic_ids=uses_topic_ids, now_ms=now_ms)
        named = []
        for topics in parts_of(request.topics):
            named += new.update_partitions(topics)
            yield
        is_kept = is_full and request.session_epoch != FINAL_EPOCH
        if is_kept and self._has_slot(privileged, len(new.partitions), now_ms):
            new.session_id = self._new_id()
            self._sessions[new.session_id] = new
            return FetchContext(new.ordered(), new, named=named)
        return FetchContext(new.ordered(), marked=new if privileged else None, named=named)

    def _continued(self, request: "FetchRequest", uses_topic_ids: bool) -> FetchSession | FetchContext:
        """The session that the request continues, or the error that refuses it."""
        session = self._sessions.get(request.session_id)
        if session is None:
            return FetchContext([], error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != request.session_epoch:
            return FetchContext([], error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != uses_topic_ids:
            return FetchContext([], error_code=ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        return session

    def is_next(self, session: FetchSession, epoch: int) -> bool:
        """Whether this epoch is the next one of the session, and the session is still open."""
        return session.epoch == epoch and self._sessions.get(session.session_id) is session

    def _open_full(
        self, request: "FetchRequest", uses_topic_ids: bool, now_ms: int, privileged: bool
    ) -> FetchContext:
        self._sessions.pop(request.session_id, None)  # a full request closes the session that it names
        if request.session_epoch == FINAL_EPOCH:
            return _without_session(request, uses_topic_ids, privileged)
        size = sum(len(topic.partitions) for topic in request.topics)
        if not self._has_slot(privileged, size, now_ms):
            return _without_session(request, uses_topic_ids, privileged)
        session = FetchSession(
            self._new_id(), privileged=privileged, uses_topic_ids=uses_topic_ids, now_ms=now_ms
        )
        named = session.update_partitions(request.topics)
        self._sessions[session.session_id] = session
        return FetchContext(session.ordered(), session, named=named)

    def _has_slot(self, privileged: bool, size: int, now_ms: int) -> bool:
        return len(self._sessions) < self._slots or self._evict_for_new(privileged, size, now_ms)

    def _evict_for_new(self, privileged: bool, size: int, now_ms: int) -> bool:
        """Evict a session for a new one: an unused one, or one of lower priority. False if there is none.

        A follower's session has priority over a consumer's, then more partitions over fewer. Young sessions
        are not evicted, except consumers' sessions by followers.
        """
        if not self._sessions:
            return False
        oldest = min(self._sessions.values(), key=lambda session: (session.last_used_ms, session.session_id))
        if now_ms - oldest.last_used_ms > self._eviction_ms:
            self._evict(oldest)
            return True
        candidates = [
            (session.privileged, len(session.partitions), session.session_id)
            for session in self._sessions.values()
            if session.last_used_ms - session.created_ms > self._eviction_ms
            or (privileged and not session.privileged)
        ]
        if not candidates or (privileged, size, 0) < min(candidates):
            return False
        self._evict(self._sessions[min(candidates)[2]])
        return True

    def _evict(self, session: FetchSession) -> None:
        del self._sessions[session.session_id]
        self.evictions += 1

    def _new_id(self) -> int:
        while True:
            session_id = self._rng.randrange(1, INT32_MAX)
            if session_id not in self._sessions:
                return session_id


def _without_session(request: "FetchRequest", uses_topic_ids: bool, privileged: bool) -> FetchContext:
    """The context of a request without a session."""
    session = FetchSession(NO_SESSION, privileged=privileged, uses_topic_ids=uses_topic_ids, now_ms=0)
    named = session.update_partitions(request.topics)
    return FetchContext(session.ordered(), marked=session if privileged else None, named=named)


def parts_of(topics: "Iterable[Any]") -> Iterator[list[Any]]:
    """Split topics of a request into parts of a few partitions each."""
    for topic in topics:
        partitions = topic.partitions
        if len(partitions) <= PARTITIONS_A_STEP:
            yield [topic]
            continue
        for first in range(0, len(partitions), PARTITIONS_A_STEP):
            some = partitions[first : first + PARTITIONS_A_STEP]
            yield [type(topic)(topic=topic.topic, topic_id=topic.topic_id, partitions=some)]
