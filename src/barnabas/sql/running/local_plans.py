"""A plan that runs in this process: the interpreter over records as they come, state in memory.

In: records of source topics. Out: records for the result. Every task of the plan is there, one for each
partition, so times and keys are those of a persistent query; repartition topics are handed on in memory. Does
not know: where records come from.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.client.partitioner import partition_for_key
from barnabas.plans.interpreter import loading
from barnabas.plans.interpreter.records import Output, Record
from barnabas.plans.interpreter.task import Handlers, State, Task
from barnabas.plans.plan import Plan, Subtopology
from barnabas.plans.stores import MemoryBackend
from barnabas.streams.spark.internal_topics import repartition_counts

HOPS_MAX = 100_000  # records that one record may lead to
FLUSH_RECORDS = 2_000  # after so many a task drops what its windows need no more

assert loading.OPERATORS  # imported for the operators that it registers


class LocalPlan:
    """`result` is the topic whose records are wanted. `existing` has the partitions of source topics."""

    def __init__(self, plan: Plan, existing: Mapping[str, int], result: str, handlers: Handlers) -> None:
        self._plan, self._result, self._handlers = plan, result, handlers
        self._counts = {**existing, **repartition_counts(plan, existing)}
        self._internal = {each.name for each in plan.repartition_topics}
        self._readers: dict[str, list[Subtopology]] = {}
        for part in sorted(plan.subtopologies, key=lambda each: not each.is_global):
            for topic in part.source_topics:
                self._readers.setdefault(topic, []).append(part)
        self._tasks: dict[tuple[int, int], Task] = {}
        self._fed: dict[tuple[int, int], int] = {}

    def feed(self, topic: str, record: Record) -> list[Output]:
        """Process a record; the results that it led to."""
        found: list[Output] = []
        waiting = [(topic, record)]
        for hops, (name, each) in enumerate(waiting):
            if hops > HOPS_MAX:
                raise RuntimeError(f"one record led to more than {HOPS_MAX} others")
            for part in self._readers.get(name, ()):
                for output in self._run(part, name, each):
                    if output.topic == self._result:
                        found.append(output)
                    elif output.topic in self._internal:
                        waiting.append((output.topic, self._handed_on(output)))
        return found

    def _handed_on(self, output: Output) -> Record:
        partition = output.partition
        if partition is None:
            count = self._counts[output.topic]
            partition = 0 if output.key is None else partition_for_key(output.key, count)
        return Record(output.key, output.value, output.timestamp, output.headers, partition)

    def _run(self, part: Subtopology, topic: str, record: Record) -> list[Output]:
        place = (part.number, 0 if part.is_global else record.partition)
        task = self._tasks.get(place)
        if task is None:
            task = self._tasks[place] = self._task(part, place[1])
        outputs = task.process(topic, record)
        fed = self._fed[place] = self._fed.get(place, 0) + 1
        if part.stores and fed % FLUSH_RECORDS == 0:
            task.flush()
            task.forget()
            task.pop_outputs()  # changelogs
        return outputs

    def _task(self, part: Subtopology, partition: int) -> Task:
        return Task(
            part,
            MemoryBackend(),
            application_id=self._plan.application_id,
            partition=partition,
            handlers=self._handlers,
            global_states=self._global_states() if part.global_stores else None,
        )

    def _global_states(self) -> dict[str, State]:
        found: dict[str, State] = {}
        for part in self._plan.subtopologies:
            if part.is_global:
                task = self._tasks.get((part.number, 0))
                if task is None:
                    task = self._tasks[part.number, 0] = self._task(part, 0)
                found |= task.states
        return found

    @property
    def dropped(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for task in self._tasks.values():
            for reason, count in task.dropped.items():
                found[reason] = found.get(reason, 0) + count
        return found

    def close(self) -> None:
        for task in self._tasks.values():
            task.close()
