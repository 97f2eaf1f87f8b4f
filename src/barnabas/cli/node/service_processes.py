"""`start --with registry,rest`: services as child processes of a node that is up.

In: names of services, the brokers' addresses, settings with `registry.` or `rest.` in front. Out: processes
that run beside the node. A service that fails is started again, later each time; one that was asked to stop
is not. The services are stopped before the node, so that they leave their groups.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING

from barnabas.cli.frame.parsing import UsageError
from barnabas.cli.services.starting import PARENT_VARIABLE, PROPERTIES_VARIABLE, REGISTRY, REST
from barnabas.client.core.address import parse_bootstrap

if TYPE_CHECKING:
    from barnabas.broker.node import Node

SERVICES = {each.name: each for each in (REGISTRY, REST)}
BACKOFF_S_MIN, BACKOFF_S_MAX = 1.0, 30.0
HEALTHY_S = 60.0  # a service that ran for so long starts again without waiting
POLL_S = 0.2
STOP_S = 20.0
LOOPBACK = ("localhost", "127.", "::1")

log = logging.getLogger("barnabas.services")

Overrides = dict[str, dict[str, str]]


def parse_services(text: str) -> tuple[str, ...]:
    """The names of `--with`, each once."""
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    unknown = [name for name in names if name not in SERVICES]
    if unknown or not names:
        raise UsageError(f"--with {text}: expected some of {', '.join(SERVICES)}")
    if importlib.util.find_spec("starlette") is None:  # else each process would fail again and again
        extras = ",".join(SERVICES[name].extra for name in names)
        raise UsageError(f"--with {text} needs more packages: pip install 'barnabas[{extras}]'")
    return names


def split_overrides(given: Mapping[str, str]) -> tuple[dict[str, str], Overrides]:
    """Settings of the node, and of each service."""
    node: dict[str, str] = {}
    services: Overrides = {name: {} for name in SERVICES}
    for name, value in given.items():
        prefix, _, rest = name.partition(".")
        if prefix in services and rest:
            services[prefix][rest] = value
        else:
            node[name] = value
    return node, services


def commands(
    names: Sequence[str], bootstrap: str, overrides: Overrides, log_level: str
) -> dict[str, tuple[list[str], dict[str, str]]]:
    """The command and the properties of each service. The proxy uses the registry that starts with it. Beside
    a node that only this machine reaches, the services listen on this machine only."""
    found = {}
    for name in names:
        own = dict(overrides.get(name, {}))
        if is_loopback(bootstrap):
            own.setdefault("listeners", f"http://127.0.0.1:{SERVICES[name].port}")
        if name == "rest" and "registry" in names:
            own.setdefault("schema.registry.url", registry_url(overrides.get("registry", {})))
        command = [sys.executable, "-m", "barnabas", name, "start", "--bootstrap-server", bootstrap]
        found[name] = ([*command, "--log-level", log_level], own)
    return found


def is_loopback(bootstrap: str) -> bool:
    return all(each.host.startswith(LOOPBACK) for each in parse_bootstrap(bootstrap))


def registry_url(overrides: Mapping[str, str]) -> str:
    """The first listener of the registry, as a client on this machine sees it."""
    listener = overrides.get("listeners", f"http://localhost:{REGISTRY.port}").split(",")[0].strip()
    return listener.replace("//0.0.0.0", "//localhost").replace("//[::]", "//localhost")


class ServiceProcess:
    """One service: its process, and when it starts again."""

    def __init__(self, name: str, command: Sequence[str], properties: Mapping[str, str]) -> None:
        self.name = name
        self._command = command
        self._properties = properties
        self._backoff_s = BACKOFF_S_MIN
        self._started_s = 0.0
        self._due_s: float | None = 0.0  # None: it runs, or it was asked to stop
        self.process: subprocess.Popen[bytes] | None = None

    def tick(self, now_s: float) -> None:
        """Start the process if it is due, and notice that it has ended."""
        if self.process is not None and (status := self.process.poll()) is not None:
            self._ended(status, now_s)
        if self._due_s is not None and now_s >= self._due_s:
            self._start(now_s)

    def _start(self, now_s: float) -> None:
        self._due_s = None
        self._started_s = now_s
        environ = {
            **os.environ,
            PARENT_VARIABLE: str(os.getpid()),
            PROPERTIES_VARIABLE: json.dumps(dict(self._properties)),
        }
        self.process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, env=environ)

    def _ended(self, status: int, now_s: float) -> None:
        self.process = None
        if status == 0:
            log.info("the service %s has stopped", self.name)
            return
        if now_s - self._started_s >= HEALTHY_S:
            self._backoff_s = BACKOFF_S_MIN
        log.warning(
            "the service %s ended with status %d: it starts again in %g s", self.name, status, self._backoff_s
        )
        self._due_s = now_s + self._backoff_s
        self._backoff_s = min(2 * self._backoff_s, BACKOFF_S_MAX)


class ServiceProcesses:
    """Runs services in a thread of its own, until `stop`."""

    def __init__(
        self,
        wanted: Mapping[str, tuple[Sequence[str], Mapping[str, str]]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.services = [
            ServiceProcess(name, command, properties) for name, (command, properties) in wanted.items()
        ]
        self._clock = clock
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="barnabas-services", daemon=True)

    def start(self) -> None:
        if self.services:
            self._thread.start()

    def stop(self) -> None:
        """Stop all services, the last one first. Blocks until they have ended."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
        for service in reversed(self.services):
            if service.process is not None and service.process.poll() is None:
                service.process.terminate()
        for service in reversed(self.services):
            if service.process is None:
                continue
            try:
                service.process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                service.process.kill()
                service.process.wait()

    def _run(self) -> None:
        while not self._stopping.is_set():
            for service in self.services:
                try:
                    service.tick(self._clock())
                except OSError:
                    log.exception("the service %s cannot be started", service.name)
            self._stopping.wait(POLL_S)


def run_beside(
    names: Sequence[str], overrides: Overrides, log_level: str
) -> Callable[[Node], AbstractAsyncContextManager[None]]:
    """Services that run while a node is ready."""

    @asynccontextmanager
    async def beside(node: Node) -> AsyncIterator[None]:
        services = ServiceProcesses(commands(names, node.bootstrap, overrides, log_level))
        services.start()
        try:
            yield
        finally:
            await asyncio.to_thread(services.stop)

    return beside
