"""The pytest plugin: groups for workers, and results that are kept with `--keep`."""

from __future__ import annotations

import gc
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from .groups import in_order
from .kept import FOLDER, Kept
from .processor import seconds_of_tree


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("lanes")
    group.addoption("--keep", choices=("all", "failed"), help="write durations and failures, or failures")
    group.addoption("--keep-in", type=Path, default=FOLDER, help="the folder for what --keep writes")


def pytest_configure(config: pytest.Config) -> None:
    what = config.getoption("--keep")
    if what and not is_worker(config):  # a worker sees its own reports only
        config.pluginmanager.register(Keeping(what, Kept(config.getoption("--keep-in"))))
    if what == "all":
        config.pluginmanager.register(Measuring())


def is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from .scheduling import GroupScheduling

    return GroupScheduling(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if is_worker(config):
        by_id = {item.nodeid: item for item in items}
        seconds = Kept(config.getoption("--keep-in")).seconds()
        items[:] = [by_id[test_id] for test_id in in_order(by_id, seconds)]


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Any:
    """What is made while tests are read stays: looking for garbage in it took a sixth of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Thousands of tests stay until the end: the garbage collector need not look at them again and again."""
    if is_worker(session.config):
        gc.collect()
        gc.freeze()


PROCESSOR = "processor_s"  # an attribute of the last report of a file


class Measuring:
    """Measures the processor seconds that each file costs, with all processes that its tests start. What a
    file leaves running (a Spark session, say) counts for the files behind it."""

    def __init__(self) -> None:
        self._before: float | None = None
        self._is_last = False

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> Any:
        if self._before is None:
            self._before = seconds_of_tree()
        self._is_last = nextitem is None or nextitem.path != item.path
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> Any:
        report = yield
        if call.when == "teardown" and self._is_last and self._before is not None:
            now = seconds_of_tree()
            setattr(report, PROCESSOR, round(now - self._before, 2))
            self._before = now
        return report


class Keeping:
    """Keeps durations and failures ("all"), or failures alone ("failed")."""

    def __init__(self, what: str, kept: Kept) -> None:
        self._what = what
        self._kept = kept
        self._started = time.monotonic()
        self._seconds: dict[str, float] = defaultdict(float)
        self._processor: dict[str, float] = defaultdict(float)
        self._failed: dict[str, None] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid] += report.duration
        if (processor := getattr(report, PROCESSOR, None)) is not None:
            self._processor[report.nodeid.partition("::")[0]] += processor
        if report.failed:
            self._failed[report.nodeid] = None

    def pytest_sessionfinish(self) -> None:
        self._kept.save_failed(self._failed)
        if self._what == "all":
            self._kept.save_durations(time.monotonic() - self._started, self._seconds, self._processor)
