"""Fetch sessions: made, used, changed, closed, and used wrongly."""

from __future__ import annotations

from typing import Any

from barnabas.protocol import ApiKey

from ..requests import batch, fetch, produce
from ..talk import Talk, scenario

PRODUCE, FETCH = ApiKey.PRODUCE, ApiKey.FETCH
VERSIONS = (7, 8, 11, 12, 13, 15, 17, 18)


def add(talk: Talk, topic: str, partition: int = 0) -> None:
    talk.silently(PRODUCE, 9, **produce(talk, topic, {partition: batch(b"more")}))


def ask(
    talk: Talk, label: str, version: int, session: int, epoch: int, topics: dict[str, Any], **more: Any
) -> int:
    body = fetch(talk, topics, session_id=session, session_epoch=epoch, **more)
    return int(talk.ask(f"{label} (epoch {epoch})", FETCH, version, **body).get("session_id", 0))


@scenario
def a_session_tells_only_what_changed(talk: Talk) -> None:
    for version in VERSIONS:
        topic = talk.topic(f"v{version}", partitions=3)
        add(talk, topic, 0)
        wanted = {topic: [{"partition": n} for n in range(3)]}
        session = ask(talk, "new session", version, 0, 0, wanted)
        ask(talk, "the rest of partition 0", version, session, 1, {topic: [{"fetch_offset": 1}]})
        ask(talk, "nothing new", version, session, 2, {})
        add(talk, topic, 2)
        ask(talk, "partition 2 has news", version, session, 3, {})
        ask(talk, "the same news, not read yet", version, session, 4, {})
        ask(talk, "read", version, session, 5, {topic: [{"partition": 2, "fetch_offset": 1}]})
        add(talk, topic, 1)
        ask(talk, "forget partition 1", version, session, 6, {}, forget={topic: [1]})
        add(talk, topic, 0)
        ask(talk, "partition 0 has news", version, session, 7, {})
        ask(talk, "partition 1 again", version, session, 8, {topic: [{"partition": 1}]})
        ask(talk, "an error shows", version, session, 9, {topic: [{"partition": 1, "fetch_offset": 50}]})
        ask(talk, "and shows again", version, session, 10, {})
        ask(talk, "a partition that is not there", version, session, 11, {topic: [{"partition": 9}]})
        ask(talk, "and shows again", version, session, 12, {})
        ask(talk, "closed", version, session, -1, {})
        ask(talk, "closed already", version, session, 13, {})


@scenario
def sessions_used_wrongly(talk: Talk) -> None:
    topic = talk.topic()
    add(talk, topic)
    for version in VERSIONS:
        wanted: dict[str, Any] = {topic: [{}]}
        ask(talk, "a session that nobody made", version, 12_345, 1, {})
        ask(talk, "a session that nobody made, with topics", version, 12_345, 5, wanted)
        ask(talk, "a negative session", version, -5, 1, wanted)
        session = ask(talk, "new session", version, 0, 0, wanted)
        ask(talk, "an epoch too far", version, session, 2, {})
        ask(talk, "the right epoch after a wrong one", version, session, 1, {})
        ask(talk, "the same epoch again", version, session, 1, {})
        ask(talk, "a negative epoch", version, session, -2, {})
        second = ask(talk, "a new session instead of this one", version, session, 0, wanted)
        ask(talk, "the old one", version, session, 2, {})
        ask(talk, "the new one", version, second, 1, {})
        ask(talk, "full fetch with session 0", version, 0, -1, wanted)
        ask(talk, "session 0 with an epoch", version, 0, 3, wanted)
        ask(
            talk,
            "forget what was never there",
            version,
            second,
            2,
            {},
            forget={topic: [7], talk.name("missing"): [0]},
        )
        ask(talk, "closed", version, second, -1, wanted)


@scenario
def a_session_of_nothing(talk: Talk) -> None:
    topic = talk.topic()
    for version in (7, 12, 13):
        session = ask(talk, "new session without partitions", version, 0, 0, {})
        ask(talk, "next", version, session, 1, {topic: [{}]})


@scenario
def unknown_topics_in_a_session(talk: Talk) -> None:
    topic = talk.topic()
    add(talk, topic)
    nowhere = {talk.name("missing"): b"0123456789abcdef"}
    for version in VERSIONS:
        both = {topic: [{}], talk.name("missing"): [{}]}
        session = ask(talk, "one topic there, one not", version, 0, 0, both, topic_ids=nowhere)
        ask(talk, "next", version, session, 1, {}, topic_ids=nowhere)


@scenario
def sessions_outlive_connections(talk: Talk) -> None:
    topic = talk.topic()
    add(talk, topic)
    session = ask(talk, "new session", 12, 0, 0, {topic: [{}]})
    talk.reconnect()
    ask(talk, "on another connection", 12, session, 1, {})


@scenario
def names_and_ids_do_not_mix(talk: Talk) -> None:
    topic = talk.topic()
    add(talk, topic)
    session = ask(talk, "new session by name", 12, 0, 0, {topic: [{}]})
    ask(talk, "then by id", 13, session, 1, {topic: [{}]})
    session = ask(talk, "new session by id", 13, 0, 0, {topic: [{}]})
    ask(talk, "then by name", 12, session, 1, {topic: [{}]})
