"""Decisions that the active controller makes by itself at intervals: leaders elected, old tokens removed.

In: the time, now and then. Out: decisions written by the host, one task at a time. Modules of these decisions
are imported on first use.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from barnabas.controller.decision import in_steps
from barnabas.protocol import KafkaError, Message

if TYPE_CHECKING:
    from barnabas.controller.context import Context
    from barnabas.decisions.awaited import AwaitedHost
    from barnabas.settings.broker import BrokerSettings

logger = logging.getLogger("barnabas.quorum.controller")
BALANCE = ("balancing", "balance_leaders", "elected %d preferred leaders")
ELECT_UNCLEAN = ("balancing", "elect_unclean_leaders", "elected %d leaders that were not in sync")
SWEEP_TOKENS = ("token_sweep", "sweep_tokens", "removed %d expired delegation tokens")
AT_ONCE_MAX = 1_000  # a decision that did so many has perhaps left some: it is made again


class PeriodicDecisions:
    def __init__(self, settings: BrokerSettings, context: Callable[[], Context]) -> None:
        self._context = context
        self._host: AwaitedHost[Message] | None = None
        self._running: asyncio.Task[None] | None = None
        self._intervals_ms: dict[tuple[str, str, str], int] = {}
        if settings["auto.leader.rebalance.enable"]:
            self._intervals_ms[BALANCE] = 1000 * settings["leader.imbalance.check.interval.seconds"]
        self._intervals_ms[ELECT_UNCLEAN] = settings["unclean.leader.election.interval.ms"]
        if settings["delegation.token.secret.key"] is not None:
            self._intervals_ms[SWEEP_TOKENS] = settings["delegation.token.expiry.check.interval.ms"]
        self._made_ms: dict[tuple[str, str, str], int] = {}

    def start(self, host: AwaitedHost[Message], now_ms: int) -> None:
        """This controller is the active one from now on."""
        self._host = host
        self._made_ms = dict.fromkeys(self._intervals_ms, now_ms)

    def renounce(self) -> None:
        """Another controller is the active one."""
        self._host = None

    def check(self, now_ms: int) -> None:
        """Make the decisions that are due, unless others are being made."""
        if self._running is not None:
            return
        due = [each for each, ms in self._intervals_ms.items() if now_ms - self._made_ms[each] >= ms]
        for each in due:
            self._made_ms[each] = now_ms
        if due:
            self._running = asyncio.get_running_loop().create_task(self._make(due))

    async def stop(self) -> None:
        if self._running is not None:
            await asyncio.wait([self._running])

    async def _make(self, due: list[tuple[str, str, str]]) -> None:
        try:
            for module, name, done in due:
                decide = in_steps(getattr(import_module(f"barnabas.controller.periodic.{module}"), name))
                while await self._once(decide, done) >= AT_ONCE_MAX:
                    pass
        except KafkaError as error:
            logger.info("a decision that is made at intervals was not made now: %s", error)
        finally:
            self._running = None

    async def _once(self, decide: Callable[..., Any], done: str) -> int:
        if self._host is None:
            return 0
        count: int = await self._host.write(lambda: decide(self._context()))
        if count:
            logger.info(done, count)
        return count
