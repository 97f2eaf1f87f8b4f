"""Commands for one connector that come at the same time: each sees what the one before has written."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from barnabas.connect.herder.config_state import Record
from barnabas.connect.herder.errors import Refused
from barnabas.connect.herder.herder import Herder
from barnabas.connect.herder.states import Target
from connect.fakes import QuietPlugins, Recorder

CONFIG = {"name": "a", "connector.class": "Quiet", "topic": "t"}


class Slow(Herder):
    """A worker whose writes take a while, as those to a topic."""

    async def write(self, changes: Sequence[Record]) -> None:
        await asyncio.sleep(0.01)
        await super().write(changes)


def running(then: Callable[[Slow], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        herder = Slow({}, "one:1", QuietPlugins(), Recorder())
        await herder.start()
        try:
            async with asyncio.timeout(30):
                await then(herder)
        finally:
            await herder.stop()

    asyncio.run(main())


def statuses(outcomes: Sequence[object]) -> list[int]:
    return sorted(each.status if isinstance(each, Refused) else 200 for each in outcomes)


def test_one_of_several_creations_wins() -> None:
    async def then(herder: Slow) -> None:
        creations = (herder.put("a", {**CONFIG, "n": str(n)}, is_new=True) for n in range(5))
        assert statuses(await asyncio.gather(*creations, return_exceptions=True)) == [200, 409, 409, 409, 409]
        removals = (herder.delete("a") for _ in range(3))
        assert statuses(await asyncio.gather(*removals, return_exceptions=True)) == [200, 404, 404]

    running(then)


def test_changes_of_several_settings_all_stay() -> None:
    async def then(herder: Slow) -> None:
        await herder.put("a", CONFIG, is_new=True)
        await asyncio.gather(*(herder.patch("a", {f"setting.{n}": str(n)}) for n in range(10)))
        assert herder.config("a") == {**CONFIG, **{f"setting.{n}": str(n) for n in range(10)}}

    running(then)


def test_a_connector_that_is_removed_while_it_is_changed_stays_removed() -> None:
    async def then(herder: Slow) -> None:
        await herder.put("a", CONFIG, is_new=True)
        outcomes = await asyncio.gather(
            herder.delete("a"), herder.patch("a", {"more": "1"}), herder.set_target("a", Target.PAUSED),
            return_exceptions=True,
        )  # fmt: skip
        assert statuses(outcomes) == [200, 404, 404]
        assert not herder.state.connectors and not herder.state.targets

    running(then)
