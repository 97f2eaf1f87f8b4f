"""The space of log directories and the end of certificates are shown; a disk that hangs holds nothing up."""

import asyncio
import threading
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from barnabas.broker.metrics import Metrics
from barnabas.broker.metrics.parts.space_gauges import LOOK_EVERY_S, SpaceGauges, certificates, spaces
from barnabas.runtime.threads import Threads
from barnabas.security.tls.certificates import issue, new_authority

from .test_metrics import scrape, value

DIRS = [
    SimpleNamespace(path=path, absolute_path=f"/{path}", failure=failure)
    for path, failure in (("a", None), ("b", None), ("c", OSError("broken")))
]


def test_a_directory_that_cannot_be_looked_at_has_no_space() -> None:
    def space(path: str) -> tuple[int, int]:
        if path == "b":
            raise OSError("gone")
        return 100, 40

    assert spaces(DIRS, space) == [((("logDirectory", "/a"),), (100, 40))]  # type: ignore[arg-type]


def test_the_end_of_the_certificate_in_use_shows_by_listener() -> None:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    issued = issue(new_authority("CN=authority", now), "CN=node-1,O=Rig", now, hosts=["localhost"], days=30)
    keys = SimpleNamespace(certificate=issued.certificate)
    listeners: list[Any] = [
        SimpleNamespace(name="PLAIN", tls=None),
        SimpleNamespace(name="SECURE", tls=SimpleNamespace(loaded=SimpleNamespace(key_store=keys))),
    ]
    [(tags, ends_s)] = certificates(listeners)
    assert tags == (("listener", "SECURE"), ("subject", "CN=node-1,O=Rig"))
    assert ends_s == issued.certificate.not_valid_after_utc.timestamp()


def test_a_disk_that_hangs_holds_one_thread_and_no_scrape() -> None:
    looks, may_answer = [], threading.Event()

    def space(path: str) -> tuple[int, int]:
        looks.append(path)
        may_answer.wait(30)
        return 100, 40

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        now_s = [0.0]
        reads = Threads(loop, 1)
        metrics = Metrics()
        broker: Any = SimpleNamespace(
            metrics=metrics,
            loop=SimpleNamespace(time=lambda: now_s[0]),
            threads=SimpleNamespace(reads=reads),
            log_dirs=SimpleNamespace(
                dirs=DIRS[:1], context=SimpleNamespace(disk=SimpleNamespace(space=space))
            ),
        )
        gauges = SpaceGauges(broker, [])
        gauges.look()
        now_s[0] += LOOK_EVERY_S
        gauges.look()  # the first one still hangs
        assert not any("log_directory" in name for name, _ in scrape(metrics))
        may_answer.set()
        while gauges._looking is not None:
            await asyncio.sleep(0)
        gauges.look()
        while gauges._looking is not None:
            await asyncio.sleep(0)
        samples = scrape(metrics)
        assert value(samples, "barnabas_log_directory_total_bytes", logDirectory="/a") == 100
        assert value(samples, "barnabas_log_directory_usable_bytes", logDirectory="/a") == 40
        gauges.look()  # it is too early
        assert looks == ["a", "a"]
        reads.close()

    asyncio.run(scenario())
