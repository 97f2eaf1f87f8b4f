"""Diagnostics of a node: its state on SIGUSR1, slow callbacks, unexpected errors."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.runtime.loop_watch import LoopWatch
from barnabas.testing import Broker
from barnabas.testing.ports import free_ports
from barnabas.testing.waiting import wait_until

from .conversation import Conversation

NODE = """
import asyncio, json, sys, time
from barnabas.broker.process import main

def hold_the_loop():
    time.sleep(0.5)

def on_ready(node):
    print("ready", flush=True)
    asyncio.get_running_loop().call_later(0.3, hold_the_loop)

sys.exit(main(json.loads(sys.argv[1]), format_empty=True, on_ready=on_ready))
"""


def page(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        return str(answer.read().decode())


def scraped(port: int) -> dict[str, float]:
    lines = [line.rpartition(" ") for line in page(port).splitlines() if line[0] != "#"]
    return {name: float(value) for name, _, value in lines}


def test_a_signal_shows_the_state_of_a_node_and_changes_nothing() -> None:
    with Broker(in_process=False) as broker, Conversation(broker) as talk:
        for _ in range(2):
            talk.ask(MetadataRequest(topics=[]), 12)
            os.kill(broker.pid, signal.SIGUSR1)
            wait_until(lambda: "end of the state" in broker.log_text)
        text = broker.log_text
        for wanted in (
            r"loop: .* ms late now",
            r"tick: ",
            r"purgatory: ",
            r"metadata log: ",
            r"listener PLAINTEXT: 1 connections",
            r"connection from 127\.0\.0\.1: last request METADATA",
            r"tasks: \d+",
            r"1 x Quorum\._follow",
            r"most recent call first",  # stacks of threads
            r"concurrent/futures/thread\.py",
        ):
            assert re.search(wanted, text), wanted
        talk.ask(MetadataRequest(topics=[]), 12)


def test_a_callback_that_blocks_the_loop_is_logged(tmp_path: Path) -> None:
    [metrics_port] = free_ports(1)
    broker = Broker(tmp_path / "data", overrides={"barnabas.metrics.port": metrics_port})
    with (tmp_path / "log").open("wb") as log:
        child = subprocess.Popen(
            [sys.executable, "-c", NODE, json.dumps(broker.properties)], stdout=subprocess.PIPE, stderr=log
        )
        try:
            assert child.stdout is not None and b"ready" in child.stdout.readline()
            found = re.compile(r"the event loop was blocked for (\d+) ms.* seen in hold_the_loop")
            wait_until(lambda: found.search((tmp_path / "log").read_text()), 30)
            match = found.search((tmp_path / "log").read_text())
            assert match is not None and int(match[1]) >= 200
            shown = scraped(metrics_port)
            assert shown["barnabas_server_eventloop_slowcallbacks_total"] >= 1
            assert shown["barnabas_server_eventloop_lagmaxms"] >= 200
            assert shown["barnabas_server_eventloop_lagms"] >= 0
            child.send_signal(signal.SIGTERM)
            assert child.wait(30) == 0
        finally:
            child.kill()
            child.communicate()


def test_an_exception_in_a_callback_is_counted_and_the_node_continues() -> None:
    [metrics_port] = free_ports(1)
    with Broker(overrides={"barnabas.metrics.port": metrics_port}) as broker, Conversation(broker) as talk:
        name = "barnabas_node_unexpectederrors"
        before = scraped(metrics_port)[name]

        def fails() -> None:
            raise ZeroDivisionError("planted")

        loop = broker._runner._loop  # type: ignore[union-attr]
        loop.call_soon_threadsafe(fails)
        wait_until(lambda: scraped(metrics_port)[name] == before + 1)
        labels = r'doing="the event loop:",error="ZeroDivisionError",place="test_watching.py:\d+"'
        assert re.search(rf"\nbarnabas_node_unexpectederrorplaces\{{{labels}\}} 1\n", page(metrics_port))
        talk.ask(MetadataRequest(topics=[]), 12)


def test_an_idle_loop_has_no_lag() -> None:
    async def main() -> int:
        watch = LoopWatch(asyncio.get_running_loop())
        watch.logs_slow_callbacks = True
        watch.start()
        await asyncio.sleep(0)
        watch.stop()
        return watch.slow_count

    assert asyncio.run(main()) == 0
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
