"""A worker: carries out what the config state says, and commands that change it.

In: commands of REST, records of the config topic, states of tasks. Out: records, running connectors and
tasks, statuses. Commands become records; applied records wake `_reconcile`, which starts and stops what
differs from the state, one thing after another. This class is the standalone worker: its records stay in
memory and everything is its own. `DistributedHerder` overrides the methods at the end.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import traceback
from collections.abc import Mapping, Sequence
from typing import Any

from barnabas.connect.config.secrets import Redaction, masked, restored
from barnabas.connect.herder import config_state as records
from barnabas.connect.herder.config_state import Change, Record
from barnabas.connect.herder.errors import (
    Refused,
    not_stopped,
    offsets_changed,
    refuse_hidden,
    unknown,
)
from barnabas.connect.herder.loggers import Loggers
from barnabas.connect.herder.offsets import Offsets
from barnabas.connect.herder.running import RunningConnector, Startups
from barnabas.connect.herder.states import RunningTask, State, Status, Target, TaskId, TaskRunner
from barnabas.connect.herder.validation import Validation, connector_class, validate
from barnabas.connect.herder.worker_state import Place, WorkerState
from barnabas.connect.plugins import Plugins

log = logging.getLogger("barnabas.connect")


class Herder(WorkerState):
    def __init__(
        self, worker: Mapping[str, str], worker_id: str, plugins: Plugins, runner: TaskRunner
    ) -> None:
        super().__init__(worker, worker_id, plugins)
        self.generation = 0
        self.startups = Startups()
        self._runner = runner
        self.running: dict[str, RunningConnector] = {}
        self._tasks: dict[TaskId, RunningTask] = {}
        self.loggers = Loggers()
        self._restarts: list[tuple[str, bool, bool]] = []
        self._restart_places: set[Place] = set()
        self._redactions: dict[str, Redaction] = {}  # by connector: what its traces must not show
        self._telling: set[asyncio.Future[None]] = set()
        self._wake = asyncio.Event()
        self._settled = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None

    # -- life --------------------------------------------------------------------------------------

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Stop all tasks and connectors of this worker."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._stop_everything()

    async def _stop_everything(self) -> None:
        await asyncio.gather(*(self._stop_task(each) for each in list(self._tasks)))
        for name in list(self.running):
            await self._stop_connector(name)

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                await self._reconcile()
            except Exception:
                log.exception("the worker could not follow a change of its connectors; it tries again")
                await asyncio.sleep(1)
                self._wake.set()
            if not self._wake.is_set():
                self._settled.set()

    def wake(self) -> None:
        self._settled.clear()
        self._wake.set()

    async def settled(self) -> None:
        """Wait until everything runs as the state says."""
        await self._settled.wait()

    # -- records -----------------------------------------------------------------------------------

    def applied(self, key: str, value: Any, *, is_old: bool = False) -> None:
        """Follow one record of the config topic. Old restarts are not carried out again."""
        changed = self.state.apply(key, value)
        if changed is None:
            return
        match changed.change:
            case Change.RESTART if not is_old:
                value = changed.value
                self._restarts.append(
                    (changed.name, bool(value.get("include-tasks")), bool(value.get("only-failed")))
                )
            case Change.LOGGER if not is_old:
                self.loggers.set(changed.name, str(changed.value.get("level", "")))
            case Change.REMOVED:
                self.topics.pop(changed.name, None)
                self._redactions.pop(changed.name, None)
        self.on_changed(changed.change)
        self.wake()

    # -- what runs ---------------------------------------------------------------------------------

    async def _reconcile(self) -> None:
        self._plan_restarts()
        wanted = {name for name in self.state.connectors if self.owns_connector(name)}
        tasks = {
            TaskId(name, number): config
            for name, configs in self.state.tasks.items()
            for number, config in enumerate(configs)
            if self.owns_task(TaskId(name, number))
        }
        gone = [each for each, running in self._tasks.items() if self._must_stop(each, running, tasks)]
        await asyncio.gather(*(self._stop_task(each) for each in gone))
        for name in list(self.running):
            running = self.running[name]
            is_old = name in wanted and running.raw != self.state.connectors[name]
            if (
                name not in wanted
                or is_old
                or (name, None) in self._restart_places
                or self.state.target(name) is not Target.STARTED
            ):
                await self._stop_connector(name)
        await self._forget()
        for name in sorted(wanted):
            await self._follow_connector(name)
        for task, config in tasks.items():
            if self.state.target(task.connector) is not Target.STOPPED:
                await self._follow_task(task, config)
        self._restart_places.clear()

    def _must_stop(self, task: TaskId, running: RunningTask, wanted: Mapping[TaskId, dict[str, str]]) -> bool:
        if task not in wanted or wanted[task] != running.raw or tuple(task) in self._restart_places:
            return True
        return self.state.target(task.connector) is Target.STOPPED

    def _plan_restarts(self) -> None:
        for name, include_tasks, only_failed in self._restarts:
            for place in self.restart_plan(name, include_tasks, only_failed):
                self._restart_places.add(place)
        self._restarts.clear()

    def restart_plan(self, name: str, include_tasks: bool, only_failed: bool) -> list[Place]:
        places: list[Place] = [(name, None)]
        places += [(name, number) for number in range(len(self.state.tasks.get(name, ())))] * include_tasks

        def is_chosen(place: Place) -> bool:
            status = self.statuses.get(place)
            return not only_failed or (status is not None and status.state is State.FAILED)

        return [place for place in places if is_chosen(place)]

    async def _forget(self) -> None:
        for place in list(self.statuses):
            name, number = place
            is_gone = number is not None and number >= len(self.state.tasks.get(name, ()))
            if name not in self.state.connectors or is_gone:
                await self.put_status(place, None)

    async def _follow_connector(self, name: str) -> None:
        target = self.state.target(name)
        if target is Target.STARTED:
            if name not in self.running:
                await self._start_connector(name)
            return
        state = State(target.value)
        if self._state_of((name, None)) is not state:
            await self._tell((name, None), state, None, self._version(name))
        if target is Target.STOPPED and self.state.tasks.get(name):
            await self.publish_tasks(name, [])

    async def _start_connector(self, name: str) -> None:
        raw = self.state.connectors[name]
        running: RunningConnector | None = None
        try:
            redaction = self._redactions[name] = self.redaction(name, raw)
            config = dict(redaction.resolved)
            found = connector_class(self.plugins, config.get("connector.class", ""))
            running = self.running[name] = RunningConnector(name, raw, config, found)
            log.info("connector %s starts with %s", name, masked(raw, found.CONFIG))
            await self.startups.counted(running.start(self.offsets, lambda: self._reconfigure_soon(name)))
            await self._tell((name, None), State.RUNNING, None, running.version)
            await self._configure_tasks(running)
        except Exception:
            trace = self._without_secrets(name, traceback.format_exc())
            log.error("connector %s failed: %s", name, trace)
            if running is not None:
                running.failure = trace
            await self._tell((name, None), State.FAILED, trace, self._version(name))

    async def _configure_tasks(self, running: RunningConnector) -> None:
        configs = await running.task_configs()
        name = running.name
        if configs != self.state.tasks.get(name) or name in self.state.inconsistent:
            await self.publish_tasks(name, configs)

    def _reconfigure_soon(self, name: str) -> None:
        """A connector has more or less to do: called from its thread."""

        async def again() -> None:
            running = self.running.get(name)
            if running is not None and not running.failure:
                with contextlib.suppress(Refused):
                    await self._configure_tasks(running)

        if self._loop is not None:
            asyncio.run_coroutine_threadsafe(again(), self._loop)

    async def _stop_connector(self, name: str) -> None:
        running = self.running.pop(name)
        try:
            await running.stop()
        except Exception:
            log.exception("connector %s did not stop in order", name)

    async def _follow_task(self, task: TaskId, config: dict[str, str]) -> None:
        target = self.state.target(task.connector)
        running = self._tasks.get(task)
        if running is None:
            await self._start_task(task, config, target)
        elif running.target is not target and not running.has_failed:
            running.target = target
            change = self._runner.pause if target is Target.PAUSED else self._runner.resume
            await asyncio.to_thread(change, task.connector, task.task)

    async def _start_task(self, task: TaskId, config: dict[str, str], target: Target) -> None:
        running = self._tasks[task] = RunningTask(config, target)
        try:
            raw = {**self.state.connectors[task.connector], **config}
            redaction = self._redactions[task.connector] = self.redaction(task.connector, raw)
            resolved = dict(redaction.resolved)
            await self.before_task(task)
            await asyncio.to_thread(
                self._runner.start,
                task.connector,
                task.task,
                resolved,
                target.value,
                lambda state, trace: self._told(task, running, state, trace),
                reconfigure=lambda: self._reconfigure_soon(task.connector),
                used_topic=lambda topic: self._used_soon(task, topic),
            )
        except Exception:
            running.has_failed = True
            await self._tell(
                (task.connector, task.task),
                State.FAILED,
                traceback.format_exc(),
                self._version(task.connector),
            )

    def _told(self, task: TaskId, running: RunningTask, state: str, trace: str | None) -> None:
        """A task tells its state, from its own thread."""

        def follow() -> None:
            if self._tasks.get(task) is running:
                running.has_failed = State(state) is State.FAILED
                version = self._version(task.connector)
                place = (task.connector, task.task)
                telling = asyncio.ensure_future(self._tell(place, State(state), trace, version))
                self._telling.add(telling)
                telling.add_done_callback(self._telling.discard)

        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(follow)

    def _used_soon(self, task: TaskId, topic: str) -> None:
        """A task used a topic: called from its thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.used_topic, task, topic)

    async def _stop_task(self, task: TaskId) -> None:
        del self._tasks[task]
        try:
            await asyncio.to_thread(self._runner.stop, task.connector, task.task)
        except Exception:
            log.exception("task %s did not stop in order", task)

    async def _tell(self, place: Place, state: State, trace: str | None, version: str | None) -> None:
        shown = None if trace is None else self._without_secrets(place[0], trace)
        await self.put_status(place, Status(state, self.worker_id, self.generation, shown, version))

    def _without_secrets(self, name: str, text: str) -> str:
        """A trace or a message, for responses and logs."""
        redaction = self._redactions.get(name)
        return text if redaction is None else redaction.text(text)

    def _state_of(self, place: Place) -> State | None:
        found = self.statuses.get(place)
        return found.state if found is not None and found.worker_id == self.worker_id else None

    def _version(self, name: str) -> str | None:
        try:
            return self.plugins.connector(self.state.connectors[name]["connector.class"]).VERSION
        except Exception:
            return None

    # -- commands ----------------------------------------------------------------------------------

    def validated(self, config: Mapping[str, str | None]) -> Validation:
        return validate(config, self.plugins, self.worker, self.providers)

    async def put(
        self, name: str, config: Mapping[str, str | None], *, is_new: bool, target: Target | None = None
    ) -> bool:
        """Make or change a connector; True if it is new. `is_new`: refuse one that exists."""
        old = self.state.connectors.get(name, {})
        config = restored(config, old, self.shown_config(name, old))
        refuse_hidden(config, old)
        problem = (await asyncio.to_thread(self.validated, config)).refusal()
        if problem is not None:
            raise problem
        self.must_lead()
        known = name in self.state.connectors
        if is_new and known:
            raise Refused(409, f"Connector {name} already exists")
        stored = {key: value for key, value in config.items() if value is not None}
        await self.write(records.config_records(name, stored, target))
        return not known

    async def patch(self, name: str, changes: Mapping[str, str | None]) -> None:
        self.must_lead()
        found = {**self.config(name), **changes}
        await self.put(name, {key: value for key, value in found.items() if value is not None}, is_new=False)

    async def delete(self, name: str) -> None:
        self.must_lead()
        self.config(name)
        await self.write(records.removal_records(name))

    async def set_target(self, name: str, target: Target) -> None:
        self.must_lead()
        if name not in self.state.connectors:
            raise unknown(name)
        await self.write([records.target_record(name, target)])

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
        await self.settled()

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
            return await asyncio.to_thread(found.alter_offsets, dict(redaction.resolved), changes)
        except Exception as error:
            text = redaction.text(str(error)) or f"{type(error).__name__} while offsets were checked"
            raise Refused(500, text) from error

    # -- what a distributed worker does otherwise --------------------------------------------------

    def owns_connector(self, name: str) -> bool:
        return True

    def owns_task(self, task: TaskId) -> bool:
        return True

    def must_lead(self) -> None:
        """Raise Elsewhere if another worker leads."""

    def must_own(self, place: Place) -> None:
        """Raise Elsewhere if another worker runs it."""

    def on_changed(self, change: Change) -> None:
        """A record was applied."""

    async def before_task(self, task: TaskId) -> None:
        """Something to be done before a task starts."""

    async def write(self, changes: Sequence[Record]) -> None:
        for key, value in changes:
            self.applied(key, value)

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

    def health(self) -> tuple[int, str, str]:
        """The status of HTTP, a word and a text: whether this worker can do its work."""
        if self._task is None:
            return 503, "starting", "Worker is still starting up."
        if self._task.done():
            return (
                500,
                "unhealthy",
                "The worker does not follow changes of its connectors any more: restart it.",
            )
        return 200, "healthy", "Worker has completed startup and is ready to handle requests."

    async def put_status(self, place: Place, status: Status | None) -> None:
        if status is None:
            self.statuses.pop(place, None)
        else:
            self.statuses[place] = status
