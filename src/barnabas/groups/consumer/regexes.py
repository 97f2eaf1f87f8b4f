"""Subscriptions by regular expression: when to search for topics, and how the result changes the group.

In: members that change their expression, metadata. Out: a search request (a timer that is due at once), and
later the records with the topics found, and a new group epoch if they differ. As in Apache Kafka, the search
is not part of the heartbeat: the member gets its result with a later one. Topics that the member may not
describe are left out.
"""

from __future__ import annotations

from enum import Enum

from barnabas.expressions.chars import RegexError
from barnabas.expressions.matching import matcher
from barnabas.groups.basics.records import Entry
from barnabas.groups.consumer import entries
from barnabas.groups.consumer.group import ConsumerGroup
from barnabas.groups.consumer.member import ConsumerMember
from barnabas.groups.consumer.state import ConsumerState, Due
from barnabas.metadata.image import MetadataImage
from barnabas.protocol import ErrorCode, KafkaError

REFRESH_INTERVAL_MS_MIN = 10_000  # new topics do not make a group search more often than this
WHOLE_GROUP = ""  # a timer of the group, not of one member


class Change(Enum):
    NONE = "none"
    UPDATED = "updated"
    UPDATED_AND_RESOLVED = "updated and resolved"  # the matching topics are known already


def update(
    state: ConsumerState,
    group: ConsumerGroup,
    before: ConsumerMember,
    after: ConsumerMember,
    records: list[Entry],
    now_ms: int,
) -> Change:
    """Apply a member's new expression to the group, and request a search if one is due."""
    old, new = before.regex or "", after.regex or ""
    change, must_resolve = Change.NONE, False
    if before.regex != after.regex:
        change = Change.UPDATED
        if old and group.regex_counts.get(old) == 1:
            records.append(entries.no_regex(group.group_id, old))
        if new:
            if not group.regex_counts.get(new):
                check(new)
                must_resolve = True
            elif new in group.resolved:
                change = Change.UPDATED_AND_RESOLVED
        elif old:
            change = Change.UPDATED_AND_RESOLVED
    if not must_resolve and not group.regex_counts:
        return change
    if state.timers.is_set(Due.REGEX, group.group_id, WHOLE_GROUP):
        return change
    last = next(iter(group.resolved.values()), None)
    if last is not None and now_ms <= last.timestamp_ms + REFRESH_INTERVAL_MS_MIN:
        return change
    if must_resolve or is_outdated(state, group, (old, new), now_ms):
        state.timers.set(Due.REGEX, group.group_id, WHOLE_GROUP, now_ms)
    return change


def is_outdated(state: ConsumerState, group: ConsumerGroup, change: tuple[str, str], now_ms: int) -> bool:
    """Whether some expression was never resolved, or topics were created since, or the last search is old."""
    old, new = change
    wanted = set(group.regex_counts)
    if old != new:
        if old and group.regex_counts.get(old) == 1:
            wanted.discard(old)
        if new:
            wanted.add(new)
    if not wanted:
        return False
    last = next(iter(group.resolved.values()), None)
    if last is None or len(wanted) != len(group.resolved):
        return True
    interval_ms = state.settings.consumer_regex_refresh_interval_ms
    return last.version < state.topics_version or now_ms > last.timestamp_ms + interval_ms


def check(pattern: str) -> None:
    try:
        matcher(pattern)
    except RegexError as error:
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {error}.",
        ) from error


def resolve(
    state: ConsumerState, group: ConsumerGroup, image: MetadataImage, now_ms: int
) -> list[Entry] | None:
    """The records of all expressions of the group, with a new epoch if they match other topics than
    before. None while the search needs another turn."""
    records = []
    may_describe = state.viewers.get(group.group_id)
    topics = set(group.topic_counts)
    changed = False
    for pattern in sorted(group.regex_counts):
        found = state.describable.find(state.matches, group.group_id, pattern, image, may_describe)
        if found is None:
            return None
        before = group.resolved.get(pattern)
        changed = changed or found != (before.topics if before is not None else frozenset())
        topics |= found
        version = image.provenance.offset
        records.append(entries.regex(group.group_id, pattern, found, version, now_ms))
    if not state.hashes.prepare(topics, image):
        return None
    state.describable.forget(group.group_id)
    metadata_hash = state.hashes.of_group(topics, image)
    if changed or metadata_hash != group.metadata_hash:
        records.append(entries.epoch(group.group_id, group.epoch + 1, metadata_hash))
        group.metadata_is_fresh = True
    return records
