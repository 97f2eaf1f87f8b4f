"""Runs tools in this process: arguments in; output, errors and status out."""

import contextlib
import itertools
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest

from barnabas.cli.main import main
from both_brokers import KEEPS_ALL, SHARES_SOON, parametrize_broker

from .children import Child

_numbers = itertools.count(1)
LIBRDKAFKA = re.compile(r"%\d\|\d+\.\d+\|\w+\|.*#(producer|consumer)-\d+\|")


@dataclass(frozen=True, slots=True)
class Ran:
    output: str
    errors: str
    status: int

    @property
    def lines(self) -> list[str]:
        return self.output.splitlines()


class RunTool(Protocol):
    def __call__(self, *command: str, input: str = "") -> Ran: ...


@pytest.fixture
def run_tool(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> RunTool:
    """Run a tool by either name: `run_tool("kafka-topics", "--list")`, `run_tool("barnabas", "topics")`."""

    def run(program: str, *arguments: str, input: str = "") -> Ran:
        capfd.readouterr()
        given = tmp_path / f"input-{next(_numbers)}"
        given.write_text(input)
        with given.open() as stdin, replaced_stdin(stdin):
            status = main(arguments, program)
        captured = capfd.readouterr()
        return Ran(captured.out, without_clients(captured.err), status)

    return run


def without_clients(errors: str) -> str:
    """Standard error without the lines of clients that earlier tests left behind."""
    return "".join(line for line in errors.splitlines(keepends=True) if not LIBRDKAFKA.match(line))


@contextlib.contextmanager
def replaced_stdin(stdin: object) -> Iterator[None]:
    before, sys.stdin = sys.stdin, stdin  # type: ignore[assignment]
    try:
        yield
    finally:
        sys.stdin = before


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    parametrize_broker(metafunc)


@pytest.fixture(scope="module")
def broker(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a Barnabas broker, and with --apache also of an Apache Kafka broker."""
    if request.param == "apache":
        yield request.getfixturevalue("apache_kafka").bootstrap
        return
    from barnabas.testing import Broker

    with Broker(overrides={**KEEPS_ALL, **SHARES_SOON}) as ours:
        yield ours.bootstrap


@pytest.fixture
def fresh_name(request: pytest.FixtureRequest) -> Callable[[], str]:
    stem = re.sub(r"[^A-Za-z0-9-]+", "-", request.node.originalname)[:60]
    return lambda: f"{stem}-{next(_numbers)}"


@pytest.fixture
def children() -> Iterator[list[Child]]:
    started: list[Child] = []
    yield started
    for child in started:
        child.kill()
        child.communicate()
