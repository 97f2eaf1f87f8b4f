from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol import NULL_UUID, ErrorCode
from barnabas.protocol.messages.fetch import FetchRequest, FetchResponse
from barnabas.replication.fetch_sessions import (
    PARTITIONS_A_STEP,
    FetchContext,
    FetchSessions,
    SessionPartition,
    parts_of,
)
from barnabas.runtime.pieces import at_once
from replication.transcript import replay

Open = Callable[..., FetchContext]
HERE = Path(__file__).parent
Data = FetchResponse.FetchableTopicResponse.PartitionData
TOPIC_IDS = {name: name.encode().ljust(16, b".") for name in ("one", "two", "three", "gone")}


class CountingRng:
    """Session ids 1, 2, 3 ..."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def randrange(self, start: int, stop: int, /) -> int:
        return next(self._numbers)


def fetch_request(
    session: int, epoch: int, want: dict[str, int], forget: list[str] | None = None, version: int = 12
) -> FetchRequest:
    """`want` maps partitions ("one-0") to offsets."""

    def named(topic: str) -> dict[str, str | bytes]:
        return {"topic_id": TOPIC_IDS[topic]} if version >= 13 else {"topic": topic}

    topics = []
    for where, offset in want.items():
        topic, index = where.split("-")
        partition = FetchRequest.FetchTopic.FetchPartition(partition=int(index), fetch_offset=offset)
        topics.append(FetchRequest.FetchTopic(**named(topic), partitions=[partition]))
    forgotten = []
    for where in forget or []:
        topic, index = where.split("-")
        forgotten.append(FetchRequest.ForgottenTopic(**named(topic), partitions=[int(index)]))
    return FetchRequest(
        session_id=session, session_epoch=epoch, topics=topics, forgotten_topics_data=forgotten
    )


def open_in_steps(sessions: FetchSessions, *request: Any, privileged: bool = False) -> FetchContext:
    return at_once(sessions.open_in_steps(*request, privileged=privileged))


class Broker:
    """Partitions with an end and a start, and a client that fetches from them."""

    def __init__(self, slots: int = 2, open_session: Open = FetchSessions.open) -> None:
        self.sessions = FetchSessions(slots, CountingRng())
        self.open_session = open_session
        self.logs: dict[str, tuple[int, int]] = {}
        self.now_ms = 0

    def answer(self, verb: str, given: dict[str, str]) -> str:
        said: str = getattr(self, verb)(**given)
        return said

    def log(self, of: str, end: str, start: str = "0") -> str:
        self.logs[of] = (int(start), int(end))
        return ""

    def wait(self, ms: str) -> str:
        self.now_ms += int(ms)
        return ""

    def sizes(self) -> str:
        cached, evictions = self.sessions.partitions_cached, self.sessions.evictions
        return f"{len(self.sessions)} sessions, {cached} partitions, {evictions} evictions"

    def fetch(
        self,
        session: str,
        epoch: str,
        want: str = "",
        forget: str = "",
        version: str = "12",
        by: str = "consumer",
    ) -> str:
        wanted = dict(part.split("@") for part in want.split(",") if part)
        request = fetch_request(
            int(session),
            int(epoch),
            {where: int(offset) for where, offset in wanted.items()},
            [where for where in forget.split(",") if where],
            int(version),
        )
        context = self.open_session(
            self.sessions, request, int(version), self.now_ms, privileged=by == "follower"
        )
        if context.error_code:
            return f"{ErrorCode(context.error_code).name}, session {context.session_id}"
        said = [f"session {context.session_id}:"]
        for partition in context.partitions:
            data = self.read(partition)
            if context.include(partition, data):
                said.append(f"{self.name(partition)} {self.describe(data)}")
        return " | ".join(said)

    def name(self, partition: SessionPartition) -> str:
        if partition.topic_id != NULL_UUID:
            assert partition.topic == ""
            return f"{partition.topic_id.rstrip(b'.').decode()}-{partition.index}"
        return f"{partition.topic}-{partition.index}"

    def read(self, partition: SessionPartition) -> Data:
        found = self.logs.get(self.name(partition))
        if found is None:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return Data(error_code=code, high_watermark=-1, log_start_offset=-1)
        start, end = found
        offset = partition.request.fetch_offset
        if not start <= offset <= end:
            return Data(error_code=ErrorCode.OFFSET_OUT_OF_RANGE, high_watermark=-1, log_start_offset=-1)
        return Data(high_watermark=end, log_start_offset=start, records=b"r" * (end - offset))

    @staticmethod
    def describe(data: Data) -> str:
        if data.error_code:
            return ErrorCode(data.error_code).name
        return f"{len(data.records or b'')} records hw={data.high_watermark} start={data.log_start_offset}"


@pytest.mark.parametrize("opened", [FetchSessions.open, open_in_steps])
@pytest.mark.parametrize("name", ["answers", "eviction"])
def test_fetches_are_answered_as_written_down(name: str, opened: Open) -> None:
    replay(HERE / "transcripts" / f"fetch_sessions_{name}.txt", Broker(open_session=opened).answer)


def test_a_session_that_is_opened_in_steps_is_found_when_it_is_complete() -> None:
    sessions = FetchSessions(10, CountingRng())
    request = fetch_request(0, 0, {f"many-{index}": 0 for index in range(3)})
    steps = sessions.open_in_steps(request, 12, 0)
    next(steps)
    assert not len(sessions)
    context = at_once(steps)
    assert len(sessions) == 1 and context.session_id and len(context.partitions) == 3


def test_no_two_requests_have_the_same_epoch_though_one_takes_steps() -> None:
    sessions = FetchSessions(10, CountingRng())
    session_id = open_session(sessions, {"one-0": 5}).session_id
    steps = sessions.open_in_steps(fetch_request(session_id, 1, {"one-1": 5}), 12, 0)
    next(steps)
    again = sessions.open(fetch_request(session_id, 1, {"one-2": 5}), 12, 0)
    assert again.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    later = sessions.open(fetch_request(session_id, 2, {}), 12, 0)
    assert at_once(steps).superseded and not later.superseded


def test_a_large_topic_is_split_into_parts() -> None:
    partitions = [FetchRequest.FetchTopic.FetchPartition(partition=index) for index in range(100)]
    topics = [
        FetchRequest.FetchTopic(topic="one", partitions=partitions[:10]),
        FetchRequest.FetchTopic(topic_id=TOPIC_IDS["two"], partitions=partitions),
    ]
    found = [part for parts in parts_of(topics) for part in parts]
    assert max(len(part.partitions) for part in found) == PARTITIONS_A_STEP
    assert [(part.topic, part.topic_id, each) for part in found for each in part.partitions] == [
        (topic.topic, topic.topic_id, each) for topic in topics for each in topic.partitions
    ]


def open_session(sessions: FetchSessions, want: dict[str, int]) -> FetchContext:
    context = sessions.open(fetch_request(0, 0, want), 12, 0)
    for partition in context.partitions:
        assert context.include(partition, Data(high_watermark=5, log_start_offset=0))
    return context


def test_a_request_that_was_overtaken_notices_it() -> None:
    sessions = FetchSessions(10, CountingRng())
    first = open_session(sessions, {"one-0": 5})
    waiting = sessions.open(fetch_request(first.session_id, 1, {}), 12, 0)
    assert not waiting.superseded
    sessions.open(fetch_request(first.session_id, 2, {}), 12, 0)
    assert waiting.superseded


def test_a_response_includes_divergence_and_preferred_replicas() -> None:
    sessions = FetchSessions(10, CountingRng())
    session_id = open_session(sessions, {"one-0": 5}).session_id
    context = sessions.open(fetch_request(session_id, 1, {}), 12, 0)
    [partition] = context.partitions
    assert not context.include(partition, Data(high_watermark=5, log_start_offset=0))
    assert context.include(partition, Data(high_watermark=5, log_start_offset=0, preferred_read_replica=2))
    diverging = Data.EpochEndOffset(epoch=3, end_offset=4)
    assert context.include(partition, Data(high_watermark=5, log_start_offset=0, diverging_epoch=diverging))


def test_of_a_followers_partitions_only_those_with_news_are_read() -> None:
    sessions = FetchSessions(10, CountingRng())
    wanted = {f"many-{number}": 5 for number in range(100)}
    first = sessions.open(fetch_request(0, 0, wanted), 12, 0, privileged=True)
    partitions = first.to_read()
    assert len(partitions) == 100 and not first.has_settled
    context = sessions.open(fetch_request(first.session_id, 1, {}), 12, 0, privileged=True)
    assert len(context.to_read()) == 100  # nobody has said yet that they need no look
    for partition in partitions:
        context.mark_settled(partition)
    assert context.to_read() == [] and context.has_settled
    marked, named, gone = partitions[7], partitions[20], partitions[30]
    session = marked.mark()
    assert session is context.follower_session
    gone.mark()
    following = sessions.open(
        fetch_request(first.session_id, 2, {"many-20": 6}, ["many-30"]), 12, 0, privileged=True
    )
    assert following.to_read() == [marked, named]
    assert gone.mark() is None and following.to_read() == [marked, named]
    following.include(marked, Data(high_watermark=6, log_start_offset=0, records=b"r"))
    assert following.to_read() == [named, marked]  # the others come first the next time


def test_session_epochs_start_again_at_one_after_the_largest() -> None:
    sessions = FetchSessions(10, CountingRng())
    session_id = open_session(sessions, {"one-0": 5}).session_id
    sessions._sessions[session_id].epoch = 2**31 - 1
    assert not sessions.open(fetch_request(session_id, 2**31 - 1, {}), 12, 0).error_code
    assert not sessions.open(fetch_request(session_id, 1, {}), 12, 0).error_code


def test_a_broker_without_slots_keeps_no_sessions() -> None:
    sessions = FetchSessions(0, CountingRng())
    context = sessions.open(fetch_request(0, 0, {"one-0": 5}), 12, 0)
    assert context.session_id == 0 and len(context.partitions) == 1


def test_a_partition_keeps_the_broker_s_attachment() -> None:
    sessions = FetchSessions(10, CountingRng())
    first = open_session(sessions, {"one-0": 5})
    first.partitions[0].attachment = "a log"
    context = sessions.open(fetch_request(first.session_id, 1, {"one-0": 6}), 12, 0)
    [partition] = context.partitions
    assert (partition.attachment, partition.request.fetch_offset) == ("a log", 6)


wants = st.dictionaries(
    st.sampled_from(["one-0", "one-1", "two-0", "three-0"]), st.integers(0, 9), max_size=4
)


@given(
    st.lists(
        st.tuples(
            wants,
            st.lists(st.sampled_from(["one-0", "two-0", "three-0"]), max_size=2),
            st.dictionaries(
                st.sampled_from(["one-0", "one-1", "two-0", "three-0"]),
                st.tuples(st.integers(0, 2), st.integers(3, 9)),
            ),
        ),
        max_size=12,
    ),
    st.sampled_from([12, 13]),
)
def test_a_client_that_remembers_answers_knows_the_state_of_every_partition(
    steps: list[tuple[dict[str, int], list[str], dict[str, tuple[int, int]]]], version: int
) -> None:
    """What an incremental answer leaves out is what the client knows already."""
    broker = Broker(slots=1)
    known: dict[str, tuple[int, int] | None] = {}
    session, epoch = 0, 0
    for want, forget, logs in steps:
        broker.logs.update(logs)
        request = fetch_request(session, epoch, want, forget if session else [], version)
        context = broker.sessions.open(request, version, 0)
        assert not context.error_code
        if not session:
            known.clear()
        for where in forget if session else []:
            known.pop(where, None)
        for partition in context.partitions:
            data = broker.read(partition)
            truth = None if data.error_code else (data.high_watermark, data.log_start_offset)
            where = broker.name(partition)
            if context.include(partition, data):
                known[where] = truth
            else:
                assert not data.records and not data.error_code
            assert known[where] == truth
        session = context.session_id
        epoch = epoch + 1 if session else 0
