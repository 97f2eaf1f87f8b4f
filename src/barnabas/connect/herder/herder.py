"""A worker: carries out what the config state says, and commands that change it.

In: records of the config topic, states of tasks. Out: running connectors and tasks, statuses. Commands become
records; applied records wake `_reconcile`, which begins to start and stop what differs from the state. Each
connector and each task has its own errand, so that one which takes long holds up no other. This class is the
standalone worker: its records stay in memory and everything is its own. `DistributedHerder` overrides methods
of `Commands`.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from barnabas.connect.config.connector_settings import common_settings
from barnabas.connect.config.secrets import Redaction, masked
from barnabas.connect.herder.commands import Commands
from barnabas.connect.herder.config_state import Change, Record
from barnabas.connect.herder.configuring import DELAY_S_MAX, FIRST_DELAY_S, Configuring
from barnabas.connect.herder.errands import in_own_thread
from barnabas.connect.herder.loggers import Loggers
from barnabas.connect.herder.running import RunningConnector, Startups
from barnabas.connect.herder.states import RunningTask, State, Status, Target, TaskId, TaskRunner
from barnabas.connect.herder.validation import connector_class
from barnabas.connect.herder.worker_state import Place
from barnabas.connect.plugins import Plugins

log = logging.getLogger("barnabas.connect")


class Herder(Commands):
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
        self._redactions: dict[str, Redaction] = {}  # by connector: what its traces must not show
        self._telling: set[asyncio.Future[None]] = set()
        self._configuring = Configuring(self._publish_changed, self._without_secrets)
        self._delays_s: dict[Place, float] = {}  # until the next attempt at what others refused
        self._delayed: set[Place] = set()
        self._grace_s = int(worker.get("task.shutdown.graceful.timeout.ms", "5000")) / 1000
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
        await self._errands.end()
        await asyncio.gather(
            *(self._stop_task(each) for each in list(self._tasks)),
            *(self._stop_connector(name) for name in list(self.running)),
        )

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                self._reconcile()
            except Exception:
                log.exception("the worker could not follow a change of its connectors; it tries again")
                await asyncio.sleep(1)
                self._wake.set()
            self._passed.set()
            self._passed = asyncio.Event()

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
        self.retry_now(changed.name)

    # -- what runs ---------------------------------------------------------------------------------

    def _reconcile(self) -> None:
        """Begin with what differs from the state. A place that is busy is interrupted if its work is
        outdated, and looked at again when it is done."""
        self._plan_restarts()
        tasks = {
            TaskId(name, number): config
            for name, configs in self.state.tasks.items()
            for number, config in enumerate(configs)
            if self.owns_task(TaskId(name, number))
        }
        for place in {**self.statuses, **dict.fromkeys(self._connector_places()), **self._task_places(tasks)}:
            if place in self._errands:
                if self._is_outdated(place, tasks):
                    self._errands.interrupt(place)
            elif place not in self._delayed:
                errand = self._errand(place, tasks)
                self._restart_places.discard(place)
                if errand is not None:
                    self._errands.begin(place, errand)
        self._restart_places = {place for place in self._restart_places if place in self._errands}

    def _connector_places(self) -> Iterator[Place]:
        for name in sorted({*self.running, *filter(self.owns_connector, self.state.connectors)}):
            yield name, None

    def _task_places(self, wanted: Mapping[TaskId, dict[str, str]]) -> dict[Place, None]:
        return {(task.connector, task.task): None for task in (*wanted, *self._tasks)}

    def _errand(
        self, place: Place, tasks: Mapping[TaskId, dict[str, str]]
    ) -> Coroutine[Any, Any, None] | None:
        """The next thing to do at a place, None if it is as it should be."""
        name, number = place
        target = self.state.target(name)
        if number is None:
            if name in self.running:
                return self._stop_connector(name) if self._is_outdated(place, tasks) else None
            if self._wants_connector(name):
                return self._follow_connector(name) if self._lags(name, target) else None
        else:
            task = TaskId(name, number)
            if (running := self._tasks.get(task)) is not None:
                if self._is_outdated(place, tasks):
                    return self._stop_task(task)
                if running.target is target or running.has_failed:
                    return None
                return self._change_target(task, running, target)
            if task in tasks and target is not Target.STOPPED:
                return self._start_task(task, tasks[task], target)
        if place in self.statuses and self._is_gone(place) and self.may_forget(place):
            return self.put_status(place, None)
        return None

    def _wants_connector(self, name: str) -> bool:
        return name in self.state.connectors and self.owns_connector(name)

    def _is_outdated(self, place: Place, tasks: Mapping[TaskId, dict[str, str]]) -> bool:
        """Whether what runs at a place must be stopped. Once the runner has begun with a task, it is stopped
        only when its start has ended."""
        name, number = place
        target = self.state.target(name)
        if number is None:
            connector = self.running.get(name)
            if connector is None:
                return False
            if not self._wants_connector(name) or target is not Target.STARTED:
                return True
            return connector.raw != self.state.connectors[name] or place in self._restart_places
        task = TaskId(name, number)
        running = self._tasks.get(task)
        if running is None or (running.is_begun and place in self._errands):
            return False
        if target is Target.STOPPED or place in self._restart_places:
            return True
        return task not in tasks or tasks[task] != running.raw

    def _lags(self, name: str, target: Target) -> bool:
        """Whether a connector that does not run has to start, or its state has to be told."""
        if target is Target.STARTED or self._state_of((name, None)) is not State(target.value):
            return True
        return target is Target.STOPPED and bool(self.state.tasks.get(name))

    def _is_gone(self, place: Place) -> bool:
        name, number = place
        if name not in self.state.connectors:
            return True
        return number is not None and number >= len(self.state.tasks.get(name, ()))

    def has_own_work_only(self) -> bool:
        """Whether everything that was given up has ended."""
        tasks = all(self.owns_task(each) for each in self._tasks)
        return tasks and all(self.owns_connector(name) for name in self.running)

    def _plan_restarts(self) -> None:
        for name, include_tasks, only_failed in self._restarts:
            for place in self.restart_plan(name, include_tasks, only_failed):
                self._restart_places.add(place)
        self._restarts.clear()

    async def _follow_connector(self, name: str) -> None:
        target = self.state.target(name)
        if target is Target.STARTED:
            await self._start_connector(name)
            return
        state = State(target.value)
        if self._state_of((name, None)) is not state:
            await self._tell((name, None), state, None, self.version(name))
        if target is Target.STOPPED and self.state.tasks.get(name):
            try:
                await self.publish_tasks(name, [])
                self._delays_s.pop((name, None), None)
            except Exception as error:
                log.warning("connector %s: its tasks are not removed yet: %s", name, error)
                self._wake_later((name, None))

    async def _start_connector(self, name: str) -> None:
        raw = self.state.connectors[name]
        running = self.running[name] = RunningConnector(name, raw)
        try:
            redaction = self._redactions[name] = self.redaction(name, raw)
            config = dict(redaction.resolved)
            found = connector_class(self.plugins, config.get("connector.class", ""))
            log.info("connector %s starts with %s", name, masked(raw, found.CONFIG))
            for setting, reason in found.CONFIG.ignored(config).items():
                log.warning("connector %s: the setting %s has no effect: %s", name, setting, reason)
            for setting, near in found.CONFIG.misspelt(config, common_settings(found.KIND).keys).items():
                log.warning("connector %s: no setting is called %s; is %s meant?", name, setting, near)
            await self.startups.counted(
                running.start(
                    found,
                    config,
                    self.offsets,
                    lambda: self._reconfigure_soon(name),
                    lambda error: self._failed_soon(running, error),
                )
            )
            configs = await running.task_configs()
        except Exception:
            await self._fail(name, running, traceback.format_exc())
            return
        await self._tell((name, None), State.RUNNING, None, self.version(name))
        if not self.publishes_here():  # a request to the leader may take long
            self._configuring.ask(running, configs)
            return
        try:
            await self._publish_changed(name, configs)
        except Exception as error:
            self._configuring.note(name, error)
            self._configuring.ask(running, delay_s=FIRST_DELAY_S)

    async def _fail(self, name: str, running: RunningConnector, trace: str) -> None:
        trace = self._without_secrets(name, trace)
        log.error("connector %s failed: %s", name, trace)
        running.failure = trace
        await self._tell((name, None), State.FAILED, trace, self.version(name))

    async def _publish_changed(self, name: str, configs: Sequence[Mapping[str, str]]) -> None:
        if configs != self.state.tasks.get(name) or name in self.state.inconsistent:
            await self.publish_tasks(name, configs)

    def _reconfigure_soon(self, name: str) -> None:
        """A connector has more or less to do: called from its thread."""

        def ask() -> None:
            running = self.running.get(name)
            if running is not None:
                self._configuring.ask(running)

        self._on_loop(ask)

    def _failed_soon(self, running: RunningConnector, error: BaseException) -> None:
        """A connector cannot go on: called from its thread."""
        trace = "".join(traceback.format_exception(error))

        def fail() -> None:
            if self.running.get(running.name) is running and not running.failure:
                self._tell_soon(self._fail(running.name, running, trace))

        self._on_loop(fail)

    def _on_loop(self, call: Callable[[], None]) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call)

    def _tell_soon(self, telling: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(telling)
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    async def _stop_connector(self, name: str) -> None:
        running = self.running.pop(name)
        self._configuring.forget(name)
        try:
            await running.stop(self._grace_s)
        except Exception:
            log.exception("connector %s did not stop in order", name)

    async def _change_target(self, task: TaskId, running: RunningTask, target: Target) -> None:
        running.target = target
        change = self._runner.pause if target is Target.PAUSED else self._runner.resume
        await in_own_thread(change, task.connector, task.task)

    async def _start_task(self, task: TaskId, config: dict[str, str], target: Target) -> None:
        running = self._tasks[task] = RunningTask(config, target)
        try:
            raw = {**self.state.connectors[task.connector], **config}
            redaction = self._redactions[task.connector] = self.redaction(task.connector, raw)
            resolved = dict(redaction.resolved)
            if not await self._is_ready(task, running):
                return
            running.is_begun = True
            await in_own_thread(
                partial(
                    self._runner.start,
                    task.connector,
                    task.task,
                    resolved,
                    target.value,
                    lambda state, trace: self._told(task, running, state, trace),
                    reconfigure=lambda: self._reconfigure_soon(task.connector),
                    used_topic=lambda topic: self._used_soon(task, topic),
                    redaction=redaction,
                )
            )
        except Exception:
            running.has_failed = True
            await self._tell(
                (task.connector, task.task),
                State.FAILED,
                traceback.format_exc(),
                self.version(task.connector),
            )

    async def _is_ready(self, task: TaskId, running: RunningTask) -> bool:
        """Do what must be done before a task starts. A refusal is of the moment: it is tried again."""
        try:
            await self.before_task(task)
        except asyncio.CancelledError:
            self._tasks.pop(task, None)
            raise
        except Exception as error:
            self._tasks.pop(task, None)
            log.warning("task %s does not start yet: %s", task, error)
            self._wake_later((task.connector, task.task))
            return False
        self._delays_s.pop((task.connector, task.task), None)
        configs = self.state.tasks.get(task.connector, ())
        if task.task < len(configs) and configs[task.task] == running.raw:
            return True
        del self._tasks[task]  # it was configured anew meanwhile
        return False

    def _wake_later(self, place: Place) -> None:
        delay_s = self._delays_s.get(place, FIRST_DELAY_S)
        self._delays_s[place] = min(2 * delay_s, DELAY_S_MAX)
        if self._loop is not None:
            self._delayed.add(place)
            self._loop.call_later(delay_s, self._try_again, place)

    def errand_ended(self, place: Place, has_failed: bool) -> None:
        if has_failed:
            self._wake_later(place)
        self.wake()

    def _try_again(self, place: Place) -> None:
        self._delayed.discard(place)
        self.wake()

    def retry_now(self, name: str | None = None) -> None:
        """Look at what differs; what others refused is tried again at once, of one connector or of all."""
        self._delayed = {each for each in self._delayed if name is not None and each[0] != name}
        self.wake()

    def _told(self, task: TaskId, running: RunningTask, state: str, trace: str | None) -> None:
        """A task tells its state, from its own thread."""

        def follow() -> None:
            if self._tasks.get(task) is running:
                running.has_failed = State(state) is State.FAILED
                version = self.version(task.connector)
                place = (task.connector, task.task)
                self._tell_soon(self._tell(place, State(state), trace, version))

        self._on_loop(follow)

    def _used_soon(self, task: TaskId, topic: str) -> None:
        """A task used a topic: called from its thread."""
        self._on_loop(lambda: self.used_topic(task, topic))

    async def _stop_task(self, task: TaskId) -> None:
        del self._tasks[task]
        try:
            await in_own_thread(self._runner.stop, task.connector, task.task)
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

    async def write(self, changes: Sequence[Record]) -> None:
        for key, value in changes:
            self.applied(key, value)

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
