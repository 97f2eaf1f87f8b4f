"""Tests run with a changed module: do they notice?

In: the name of a module, its changed syntax tree, paths of tests. Out: whether a test failed. Each trial is a
forked child of this process, which has loaded pytest already; the module is loaded from the changed tree when
the tests import it. A child that takes too long counts as noticed: the bug made it hang.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import io
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Sequence
from types import CodeType, ModuleType

import hypothesis
import pytest

import barnabas.metadata.image
import barnabas.protocol.apis
import barnabas.settings  # noqa: F401  children find loaded what no target is in

TRIAL_CPU_S_MAX = 20  # a loop without an end; the tests of a module take three
TRIAL_S_MAX = 300.0  # a wait without an end, on a machine that is busy
QUICK = "quick"
# The same examples each time, and no search for a smaller one: that one failed is enough.
hypothesis.settings.register_profile(
    QUICK,
    database=None,
    deadline=None,
    derandomize=True,
    phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate),
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)


class Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds one module, and loads it from other code. A pytest plugin too: conftests come after it."""

    def __init__(self, name: str, code: CodeType) -> None:
        self._name, self._code = name, code

    @pytest.hookimpl(tryfirst=True)
    def pytest_load_initial_conftests(self) -> None:
        if self._name in sys.modules:
            raise RuntimeError(f"{self._name} is loaded already: its tests would run it as it is")
        sys.meta_path.insert(0, self)

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self) -> None:
        hypothesis.settings.load_profile(QUICK)

    def find_spec(
        self, name: str, path: object, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        return importlib.util.spec_from_loader(name, self) if name == self._name else None

    def exec_module(self, module: ModuleType) -> None:
        exec(self._code, module.__dict__)


def is_noticed(name: str, tree: ast.Module, tests: Sequence[str]) -> bool:
    """Whether one of the tests fails when the module is this."""
    code = compile(tree, f"<a mutant of {name}>", "exec")
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        status = 1
        with contextlib.suppress(BaseException):
            os.setpgid(0, 0)
            os.close(reading)
            resource.setrlimit(resource.RLIMIT_CPU, (TRIAL_CPU_S_MAX, TRIAL_CPU_S_MAX))
            status = run_tests(name, code, tests)
        os._exit(status)
    os.close(writing)  # the child's end of the pipe closes when it ends
    try:
        return wait_for(child, reading) != 0
    finally:
        os.close(reading)


def run_tests(name: str, code: CodeType, tests: Sequence[str]) -> int:
    # Without what makes a failure readable: whether there is one is all that counts.
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    options = ["-x", "-q", "--assert=plain", "-o", "addopts=", "-p", "pytest_timeout"]
    options += ["-p", "no:cacheprovider"]
    with open(os.devnull, "w") as nowhere:  # noqa: PTH123
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            return int(pytest.main([*options, *tests], plugins=[Changed(name, code)]))


def wait_for(child: int, reading: int) -> int:
    deadline = time.monotonic() + TRIAL_S_MAX
    while not select.select([reading], [], [], max(0.0, deadline - time.monotonic()))[0]:
        if time.monotonic() >= deadline:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            break
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
