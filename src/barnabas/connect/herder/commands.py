"""Commands to a worker, and what differs between a single worker and one of a cluster.

In: commands of REST. Out: records of the config topic, changed offsets, places that restart. Does not know:
what runs. `DistributedHerder` overrides the methods at the end; here everything is the worker's own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakValueDictionary

from barnabas.connect.config.secrets import restored
from barnabas.connect.herder import config_state as records
from barnabas.connect.herder.config_state import Change, Record
from barnabas.connect.herder.errands import Errands, in_own_thread
from barnabas.connect.herder.errors import Refused, not_stopped, offsets_changed, refuse_hidden, unknown
from barnabas.connect.herder.offsets import Offsets
from barnabas.connect.herder.states import State, Status, Target, TaskId
from barnabas.connect.herder.validation import Validation, connector_class, validate
from barnabas.connect.herder.worker_state import Place, WorkerState
from barnabas.connect.plugins import Plugins


class Commands(WorkerState):
    def __init__(self, worker: Mapping[str, str], worker_id: str, plugins: Plugins) -> None:
        super().__init__(worker, worker_id, plugins)
        self._restart_places: set[Place] = set()
        self._wake = asyncio.Event()
        self._passed = asyncio.Event()  # a new one after each look at what differs
        self._errands = Errands(self.errand_ended)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def wake(self) -> None:
        self._wake.set()

    async def settled(self, place: Place | None = None) -> None:
        """Wait until everything, or one place, runs as the state says."""
        while self._wake.is_set() or self._is_open(place):
            await self._passed.wait()

    def _is_open(self, place: Place | None) -> bool:
        if place is None:
            return bool(self._errands) or bool(self._restart_places)
        return place in self._errands or place in self._restart_places

    def restart_plan(self, name: str, include_tasks: bool, only_failed: bool) -> list[Place]:
        places: list[Place] = [(name, None)]
        places += [(name, number) for number in range(len(self.state.tasks.get(name, ())))] * include_tasks

        def is_chosen(place: Place) -> bool:
            status = self.statuses.get(place)
            return not only_failed or (status is not None and status.state is State.FAILED)

        return [place for place in places if is_chosen(place)]

    # -- commands ----------------------------------------------------------------------------------

    def validated(self, config: Mapping[str, str | None]) -> Validation:
        return validate(config, self.plugins, self.worker, self.providers)

    async def put(
        self, name: str, config: Mapping[str, str | None], *, is_new: bool, target: Target | None = None
    ) -> bool:
        """Make or change a connector; True if it is new. `is_new`: refuse one that exists."""
        stored = await self._checked(name, config)
        async with self._alone(name):
            self.must_lead()
            known = name in self.state.connectors
            if is_new and known:
                raise Refused(409, f"Connector {name} already exists")
            await self.write(records.config_records(name, stored, target))
            return not known

    async def _checked(self, name: str, config: Mapping[str, str | None]) -> dict[str, str]:
        """The configuration as it is stored, if it is valid. No lock is held: a check may take long."""
        old = self.state.connectors.get(name, {})
        config = restored(config, old, self.shown_config(name, old))
        refuse_hidden(config, old)
        problem = (await in_own_thread(self.validated, config)).refusal()
        if problem is not None:
            raise problem
        return {key: value for key, value in config.items() if value is not None}

    async def patch(self, name: str, changes: Mapping[str, str | None]) -> None:
        """Change some settings. What others change meanwhile stays."""
        while True:
            self.must_lead()
            before = self.config(name)
            found = {**before, **changes}
            stored = await self._checked(name, {key: each for key, each in found.items() if each is not None})
            async with self._alone(name):
                if self.config(name) == before:
                    await self.write(records.config_records(name, stored))
                    return

    async def delete(self, name: str) -> None:
        async with self._alone(name):
            self.must_lead()
            self.config(name)
            await self.write(records.removal_records(name))

    async def set_target(self, name: str, target: Target) -> None:
        async with self._alone(name):
            self.must_lead()
            if name not in self.state.connectors:
                raise unknown(name)
            await self.write([records.target_record(name, target)])

    def _alone(self, name: str) -> asyncio.Lock:
        """A lock for commands that look at a connector and then write: one after the other."""
        return self._locks.setdefault(name, asyncio.Lock())

    async def restart(self, name: str, include_tasks: bool, only_failed: bool) -> dict[str, Any]:
        """Restart by a record that every worker sees; returns the status as it will be."""
        self.must_lead()
        if name not in self.state.connectors:
            raise Refused(404, f"Unknown connector: {name}")
        planned = self.restart_plan(name, include_tasks, only_failed)
        body = self.status(name)
        if (name, None) in planned:
            body["connector"] = {**body["connector"], "state": State.RESTARTING.value}
        for task in body["tasks"]:
            if (name, task["id"]) in planned:
                task["state"] = State.RESTARTING.value
        await self.write([records.restart_record(name, include_tasks, only_failed)])
        return body

    async def restart_here(self, name: str, task: int | None) -> None:
        """Restart a connector or one task, which its owner does."""
        if name not in self.state.connectors:
            raise Refused(404, f"Unknown connector: {name}")
        if task is not None and not 0 <= task < len(self.state.tasks.get(name, ())):
            raise Refused(404, f"Unknown task: {name}-{task}")
        self.must_own((name, task))
        self._restart_places.add((name, task))
        self.wake()
        await self.settled((name, task))

    # -- offsets of sources ------------------------------------------------------------------------

    async def alter_offsets(self, name: str, pairs: Sequence[tuple[Any, Any]] | None) -> str:
        """Set offsets of a source; None resets all. Returns the message of the response."""
        self.must_lead()
        self.config(name)
        if self.state.target(name) is not Target.STOPPED or self.state.tasks.get(name):
            raise not_stopped(name)
        stored = await self.offsets_of(name)
        changes = [(dict(part), None) for part, _ in stored.of(name)] if pairs is None else list(pairs)
        has_say = await self.checked_offsets(name, changes)
        await self.write_offsets(name, stored.records(name, changes))
        return offsets_changed("reset" if pairs is None else "altered", has_say)

    async def checked_offsets(self, name: str, changes: Sequence[tuple[Any, Any]]) -> bool:
        """Let the connector judge offsets; True if it has a say."""
        config = self.config(name)
        found = connector_class(self.plugins, config["connector.class"])()
        redaction = self.redaction(name, config)
        try:
            return await in_own_thread(found.alter_offsets, dict(redaction.resolved), changes)
        except Exception as error:
            text = redaction.text(str(error)) or f"{type(error).__name__} while offsets were checked"
            raise Refused(500, text) from error

    def errand_ended(self, place: Place, has_failed: bool) -> None:
        """Look at a place again."""
        raise NotImplementedError

    # -- what a distributed worker does otherwise --------------------------------------------------

    def owns_connector(self, name: str) -> bool:
        return True

    def owns_task(self, task: TaskId) -> bool:
        return True

    def must_lead(self) -> None:
        """Raise Elsewhere if another worker leads."""

    def must_own(self, place: Place) -> None:
        """Raise Elsewhere if another worker runs it."""

    def publishes_here(self) -> bool:
        """Whether this worker writes task configurations itself."""
        return True

    def on_changed(self, change: Change) -> None:
        """A record was applied."""

    async def before_task(self, task: TaskId) -> None:
        """Something to be done before a task starts."""

    async def write(self, changes: Sequence[Record]) -> None:
        """Make records of the config topic, which are applied when this returns."""
        raise NotImplementedError

    async def offsets_of(self, name: str) -> Offsets:
        """The offsets that tasks of a source have stored."""
        return self.offsets

    async def write_offsets(self, name: str, changes: Sequence[tuple[bytes, bytes | None]]) -> None:
        for key, value in changes:
            self.offsets.apply(key, value)

    async def publish_tasks(self, name: str, configs: Sequence[Mapping[str, str]]) -> None:
        await self.write(records.task_records(name, configs))

    def used_topic(self, task: TaskId, topic: str) -> None:
        if self.worker.get("topic.tracking.enable", "true").lower() != "false":
            self.topics.setdefault(task.connector, {}).setdefault(topic, task.task)

    async def reset_topics(self, name: str) -> None:
        """Forget the topics that a connector used."""
        self.topics.pop(name, None)

    def may_forget(self, place: Place) -> bool:
        """Whether this worker removes the status of what is gone."""
        return True

    async def put_status(self, place: Place, status: Status | None) -> None:
        if status is None:
            self.statuses.pop(place, None)
        else:
            self.statuses[place] = status
