"""TestDriver: a topology run in this process, record by record, without a broker and without Spark.

In: a plan, records for its topics. Out: records of its topics, stores, dropped records. Every topic has one
partition. After each record the state is written and read again, so that formats show their faults. Does
not know: threads.
"""

from __future__ import annotations

from typing import Any, Generic, overload

from barnabas.plans.interpreter import loading
from barnabas.plans.interpreter.processor_stores import handle_of
from barnabas.plans.interpreter.records import Headers, Message, Output, Record
from barnabas.plans.interpreter.task import Handlers, Task
from barnabas.plans.nodes import Source
from barnabas.plans.plan import Plan, Subtopology
from barnabas.plans.serdes import Serde
from barnabas.plans.stores import MemoryBackend, StateBackend
from barnabas.plans.type_variables import K2, V2, TextKey
from barnabas.streams.serdes.formats import JSON, STRING, Form, serde_of

HOPS_MAX = 100_000  # records that one record may lead to through internal topics


class InputTopic(Generic[K2, V2]):
    """A topic to write to."""

    def __init__(self, driver: TestDriver, topic: str, key: Serde[K2], value: Serde[V2]) -> None:
        self._driver, self._topic = driver, topic
        self._key, self._value = key.serializer(topic, True), value.serializer(topic, False)

    def pipe(
        self, key: K2 | None, value: V2 | None, timestamp: int | None = None, headers: Headers = ()
    ) -> None:
        """Write a record; all that follows from it has happened when this returns."""
        self._driver.pipe(
            self._topic,
            None if key is None else self._key(key),
            None if value is None else self._value(value),
            timestamp,
            headers,
        )


class OutputTopic(Generic[K2, V2]):
    """A topic to read from."""

    def __init__(self, driver: TestDriver, topic: str, key: Serde[K2], value: Serde[V2]) -> None:
        self._driver, self._topic = driver, topic
        self._key, self._value = key.deserializer(topic, True), value.deserializer(topic, False)

    def read(self) -> list[Message[K2, V2]]:
        """Records that were not read yet."""
        return [self._message(each) for each in self._driver.written.pop(self._topic, [])]

    def _message(self, each: Output) -> Message[Any, Any]:
        key = None if each.key is None else self._key(each.key)
        value = None if each.value is None else self._value(each.value)
        return Message(key, value, each.timestamp, each.headers)

    def pairs(self) -> list[tuple[K2, V2]]:
        return [(message.key, message.value) for message in self.read()]

    def table(self) -> dict[K2, V2]:
        """The last value of each key among the records that were not read yet; tombstones delete."""
        rows: dict[K2, V2] = {}
        for message in self.read():
            rows.pop(message.key, None)
            if message.value is not None:
                rows[message.key] = message.value
        return rows


class TestDriver:
    """Runs a plan. `with TestDriver(builder.build()) as driver:` closes its processors at the end."""

    __test__ = False  # pytest takes classes of this name for tests

    def __init__(self, plan: Plan, *, handlers: Handlers | None = None, now_ms: int = 0) -> None:
        assert loading.OPERATORS
        self._plan, self.now_ms = plan, now_ms
        self.written: dict[str, list[Output]] = {}
        self.changelog: list[Output] = []
        self._offsets: dict[str, int] = {}
        self._handlers = handlers
        parts = sorted(plan.subtopologies, key=lambda part: not part.is_global)
        self._global_states: dict[str, Any] = {}
        self.tasks: list[Task] = []
        for part in parts:
            task = self._task(part, MemoryBackend())
            if part.is_global:
                self._global_states.update(task.states)
            self.tasks.append(task)

    def _task(self, part: Subtopology, backend: StateBackend) -> Task:
        return Task(
            part,
            backend,
            application_id=self._plan.application_id,
            handlers=self._handlers,
            global_states=self._global_states,
            now_ms=self.now_ms,
        )

    def rebuild(self) -> None:
        """Make tasks and processors anew over their stores, as a worker does that takes a task over: fields
        of processors begin anew."""
        for place, task in enumerate(self.tasks):
            if not task.subtopology.is_global:
                task.close()
                self.tasks[place] = self._task(task.subtopology, task.backend)
                self.tasks[place].dropped = task.dropped

    @overload
    def input(
        self, topic: str, key: Form[TextKey] = ..., value: Form[V2] | str = ...
    ) -> InputTopic[TextKey, V2]: ...

    @overload
    def input(self, topic: str, key: str, value: Form[V2] | str = ...) -> InputTopic[Any, V2]: ...

    def input(self, topic: str, key: Any = STRING, value: Any = JSON) -> InputTopic[Any, Any]:
        return InputTopic(self, topic, serde_of(key), serde_of(value))

    @overload
    def output(
        self, topic: str, key: Form[TextKey] = ..., value: Form[V2] | str = ...
    ) -> OutputTopic[TextKey, V2]: ...

    @overload
    def output(self, topic: str, key: str, value: Form[V2] | str = ...) -> OutputTopic[Any, V2]: ...

    def output(self, topic: str, key: Any = STRING, value: Any = JSON) -> OutputTopic[Any, Any]:
        return OutputTopic(self, topic, serde_of(key), serde_of(value))

    def pipe(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        timestamp: int | None = None,
        headers: Headers = (),
    ) -> None:
        """Write a record in bytes."""
        time = self.now_ms if timestamp is None else timestamp
        self._run([Output(topic, key, value, time, headers)], is_input=True)

    def advance(self, milliseconds: int) -> None:
        """Move the wall clock on; due timers run."""
        self.now_ms += milliseconds
        for task in self.tasks:
            self._run(self._settled(task, task.punctuate(self.now_ms)))

    def _settled(self, task: Task, outputs: list[Output]) -> list[Output]:
        task.flush()
        task.forget()
        for each in task.pop_outputs():
            self.changelog.append(each)
        return outputs

    def _run(self, waiting: list[Output], is_input: bool = False) -> None:
        hops = 0
        while waiting:
            hops += 1
            if hops > HOPS_MAX:
                raise RuntimeError(
                    f"one record led to more than {HOPS_MAX} others: does the topology feed itself?"
                )
            each = waiting.pop(0)
            readers = [task for task in self.tasks if _reads(task, each.topic)]
            if is_input and not readers:
                raise ValueError(f"no source reads {each.topic!r}; there are: {', '.join(self._topics())}")
            if not is_input and each.topic not in self._internal():
                self.written.setdefault(each.topic, []).append(each)
            is_input = False
            offset = self._offsets[each.topic] = self._offsets.get(each.topic, -1) + 1
            record = Record(each.key, each.value, each.timestamp, each.headers, 0, offset)
            for task in readers:
                task.now_ms = self.now_ms
                waiting += self._settled(task, task.process(each.topic, record))

    def _internal(self) -> set[str]:
        return {topic.name for topic in self._plan.repartition_topics}

    def _topics(self) -> list[str]:
        return [topic for part in self._plan.subtopologies for topic in part.source_topics]

    def store(self, name: str) -> Any:
        """A store, to read what it has: with `get`, `all` and the lookups of its kind."""
        for task in self.tasks:
            if name in task.states:
                return handle_of(task, name)
        raise KeyError(f"there is no store {name!r}; there are: {', '.join(self._plan.stores)}")

    @property
    def dropped(self) -> dict[str, int]:
        """How many records were dropped, by reason."""
        found: dict[str, int] = {}
        for task in self.tasks:
            for reason, count in task.dropped.items():
                found[reason] = found.get(reason, 0) + count
        return found

    def close(self) -> None:
        for task in self.tasks:
            task.close()

    def __enter__(self) -> TestDriver:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _reads(task: Task, topic: str) -> bool:
    import re

    return any(
        topic in node.topics or (node.pattern is not None and re.fullmatch(node.pattern, topic) is not None)
        for node in task.subtopology.nodes
        if isinstance(node, Source)
    )
