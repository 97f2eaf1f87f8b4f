"""Ids of schemas that a broker has learnt of the registry, for topics whose records must name one.

In: settings of topics, ids that records name. Out: the rules that `AppendRules` holds; ids become known when
the registry has been asked. Questions run in threads of their own, each once, however many batches wait.
A registry that does not respond is an error that producers retry: the batch may be valid.
Does not know: requests, batches.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakValueDictionary

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.records.schema_ids import SchemaIds, SchemaRules

if TYPE_CHECKING:
    from barnabas.broker.schemas.registry import Registered, Registry
    from barnabas.runtime.threads import Threads
    from barnabas.settings import BrokerSettings, TopicSettings

log = logging.getLogger("barnabas.schemas")

URL = "confluent.schema.registry.url"
ASKED_AT_ONCE_MAX = 32  # ids of one request; the others are asked about in its next turn
QUESTIONS_MAX = 1_000  # that are under way or wait for a thread
TOLD_EVERY_S = 60.0


class Question(NamedTuple):
    prefix: bytes
    with_names: bool


class SchemaLookups:
    """The loop's thread owns this. `ids` of a topic live as long as the rules of its partitions."""

    def __init__(self, settings: BrokerSettings, threads: Threads, now_ms: Callable[[], int]) -> None:
        self._settings = settings
        self._threads = threads
        self._now_ms = now_ms
        self._ids: WeakValueDictionary[tuple[str, bool, str], SchemaIds] = WeakValueDictionary()
        self._questions: dict[Question, asyncio.Future[Registered | None]] = {}
        self._registry: Registry | None = None
        self._told_s = -TOLD_EVERY_S
        self.asked = 0

    def rules(self, topic: str, settings: TopicSettings) -> SchemaRules | None:
        """The rules of a topic; None if its records need not name a schema."""
        key = value = None
        if settings.confluent_key_schema_validation:
            key = self._ids_of(topic, True, settings.confluent_key_subject_name_strategy)
        if settings.confluent_value_schema_validation:
            value = self._ids_of(topic, False, settings.confluent_value_subject_name_strategy)
        return None if key is value else SchemaRules(key, value)

    def _ids_of(self, topic: str, is_key: bool, strategy: str) -> SchemaIds:
        found = self._ids.get((topic, is_key, strategy))
        if found is None:
            found = self._ids[topic, is_key, strategy] = SchemaIds(topic, strategy, is_key=is_key)
        return found

    async def learn(self, unknown: Mapping[SchemaIds, set[bytes]]) -> None:
        """Ask the registry about some of the ids. KafkaError if it cannot be asked."""
        wanted = [(ids, prefix) for ids, prefixes in unknown.items() for prefix in sorted(prefixes)]
        asked = [
            (ids, prefix, self._ask(Question(prefix, not ids.strategy.endswith(".TopicNameStrategy"))))
            for ids, prefix in wanted[:ASKED_AT_ONCE_MAX]
        ]
        for ids, prefix, lookup in asked:
            try:
                found = await asyncio.shield(lookup)
            except Exception as error:
                self._tell(error)
                raise KafkaError(
                    ErrorCode.REQUEST_TIMED_OUT,
                    f"no schema registry could be asked about {ids}: try again",
                ) from None
            self._remember(ids, prefix, found)

    def _ask(self, question: Question) -> asyncio.Future[Registered | None]:
        known = self._questions.get(question)
        if known is not None:
            return known
        if not self._settings[URL]:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"records must name a schema, but {URL} is not set")
        if len(self._questions) >= QUESTIONS_MAX:
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT,
                f"{QUESTIONS_MAX} questions wait for the schema registry: try again",
            )
        self.asked += 1
        lookup = self._threads.run(self._find, question)
        self._questions[question] = lookup
        lookup.add_done_callback(lambda done: self._looked_up(question, done))
        return lookup

    def _find(self, question: Question) -> Registered | None:
        """In a thread."""
        if self._registry is None:
            from barnabas.broker.schemas.registry import Registry

            self._registry = Registry(self._settings)
        return self._registry.find(question.prefix, with_names=question.with_names)

    def _looked_up(self, question: Question, done: asyncio.Future[Registered | None]) -> None:
        del self._questions[question]
        if not done.cancelled():
            done.exception()  # marked as seen: the callers that wait raise it

    def _remember(self, ids: SchemaIds, prefix: bytes, found: Registered | None) -> None:
        most: int = self._settings["confluent.schema.registry.max.cache.size"]
        if found is not None and not found.subjects.isdisjoint(subjects_of(ids, found)):
            kept = ids.accepted if len(ids.accepted) < most else frozenset()
            ids.accepted = kept | {prefix}
            return
        now_ms = self._now_ms()
        missing = {known: until for known, until in ids.missing.items() if until > now_ms}
        if len(missing) >= most:
            missing.clear()
        missing[prefix] = now_ms + 1000 * self._settings["confluent.missing.id.cache.ttl.sec"]
        ids.missing = missing

    def _tell(self, error: BaseException) -> None:
        now_s = asyncio.get_running_loop().time()
        if now_s - self._told_s >= TOLD_EVERY_S:
            self._told_s = now_s
            log.warning("The schema registry cannot be asked, batches are refused for now: %s", error)


def subjects_of(ids: SchemaIds, found: Registered) -> frozenset[str]:
    """The subjects that a schema of these records may be registered under."""
    if ids.strategy.endswith(".RecordNameStrategy"):
        return found.names
    if ids.strategy.endswith(".TopicRecordNameStrategy"):
        return frozenset(f"{ids.topic}-{name}" for name in found.names)
    return frozenset([f"{ids.topic}-{'key' if ids.is_key else 'value'}"])
