"""A node as a process: loop, signals, log lines, exit status.

In: properties. Out: the exit status: 0 after a graceful stop (SIGTERM, SIGINT), 1 with one line on standard
error when the node cannot start. A second signal while stopping ends the process at once, as after a crash.
SIGUSR1 writes the state of the node to the log (see `watching`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shlex
import signal
import sys
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from barnabas.broker.log_lines import levels
from barnabas.broker.log_lines.writing import Places, writing
from barnabas.broker.metrics.watching import Watching
from barnabas.broker.node import Node, StartError
from barnabas.protocol import KafkaError
from barnabas.runtime import descriptors, garbage
from barnabas.settings import BrokerSettings, SettingsError
from barnabas.storage.files.errors import StorageError
from barnabas.storage.files.names import PROCESS_ID

log = logging.getLogger("barnabas")
LOOK_AGAIN_S = 0.05
KAFKAS_FOLDER = "-Dkafka.logs.dir="
SWITCH_INTERVAL_S = 0.0005  # how long the loop waits for a thread that computes: decision 0012

Beside = Callable[
    [Node], AbstractAsyncContextManager[None]
]  # entered when the node is ready, left before it stops


def main(
    properties: Mapping[str, str],
    *,
    format_empty: bool = False,
    on_ready: Callable[[Node], None] | None = None,
    beside: Beside | None = None,
    log_level: str = "INFO",
) -> int:
    """Run a node until a signal stops it."""
    garbage.collect_rarely()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    logging.getLogger().setLevel(log_level)
    levels.set_first_levels()
    try:
        descriptors.raise_limit()
        settings = BrokerSettings.load(properties)
        with writing(places_of(settings, os.environ)):
            for warning in settings.warnings:
                log.warning("%s", warning)
            run(serve(Node(settings, format_empty=format_empty), on_ready, beside))
    except (SettingsError, StartError, StorageError, KafkaError) as error:
        print(f"barnabas: {error}", file=sys.stderr)
        return 1
    return 0


def places_of(settings: BrokerSettings, environment: Mapping[str, str]) -> Places:
    """The folder for log lines: the setting, or the folder that Kafka's scripts would give to its JVM."""
    folder = settings["barnabas.logs.dir"]
    for word in shlex.split(environment.get("KAFKA_OPTS", "")) if folder is None else ():
        if word.startswith(KAFKAS_FOLDER):
            folder = word.removeprefix(KAFKAS_FOLDER)
    return Places(
        Path(folder) if folder else None,
        settings["barnabas.logs.format"],
        settings["barnabas.logs.file.bytes"],
        settings["barnabas.logs.files"],
    )


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    """Use uvloop if it is installed; the standard loop is slower."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(coroutine)
    else:
        uvloop.run(coroutine)


async def serve(node: Node, on_ready: Callable[[Node], None] | None, beside: Beside | None = None) -> None:
    watching = Watching(node)
    watching.start()
    try:
        await serve_watched(node, on_ready, beside or nothing_beside, watching)
    finally:
        watching.stop()


def nothing_beside(node: Node) -> AbstractAsyncContextManager[None]:
    return contextlib.nullcontext()


async def serve_watched(
    node: Node, on_ready: Callable[[Node], None] | None, beside: Beside, watching: Watching
) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()

    def stop(number: int) -> None:
        if stopping.is_set():
            os._exit(128 + number)
        log.info("stopping on %s", signal.Signals(number).name)
        stopping.set()

    failures: list[KafkaError] = []

    def failed(error: KafkaError) -> None:
        failures.append(error)
        stopping.set()

    node.on_failure = failed
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop, number)
    if not await started(node, stopping):
        if failures:
            raise failures[0]
        log.info("stopped before it was ready")
        return
    pid_file = Path(node.settings.log_dirs[0]) / PROCESS_ID
    pid_file.write_text(f"{os.getpid()}\n")
    watching.register_metrics()
    garbage.freeze_startup_objects()
    try:
        log.info("the process may have %s", descriptors.Shares.of_process())
        log.info(
            "node %d of cluster %s is ready at %s",
            node.settings.node_id,
            node.broker.cluster_id,
            node.bootstrap,
        )
        if on_ready is not None:
            on_ready(node)
        async with beside(node):
            await stopping.wait()
        if failures:
            raise failures[0]  # as after a crash: what the disk holds is not to be touched any more
        watching.stop()  # from here on nobody waits for the loop
        await node.stop()
    finally:
        with contextlib.suppress(OSError):
            pid_file.unlink()
    log.info("stopped")


async def started(node: Node, stopping: asyncio.Event) -> bool:
    """Start a node. False when it is told to stop and waits for a quorum that is not there; what it does by
    itself comes to its end first, so that folders are left in order."""
    loop = asyncio.get_running_loop()
    starting, told = loop.create_task(node.start()), loop.create_task(stopping.wait())
    await asyncio.wait([starting, told], return_when=asyncio.FIRST_COMPLETED)
    told.cancel()
    while not starting.done() and not node.is_waiting_for_quorum:
        await asyncio.wait([starting], timeout=LOOK_AGAIN_S)
    if starting.done():
        starting.result()
        return True
    starting.cancel()
    await asyncio.wait([starting])
    return False
