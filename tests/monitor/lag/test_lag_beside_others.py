"""Burrow, kafka_exporter and kminion beside ours, on the same broker with the same groups: the same verdicts,
bodies and metrics.

Nothing here depends on how fast anybody reads: each round of commits waits until all monitors have seen the
ends of the topics, and the comparison until they have seen the last commits.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from barnabas.client.admin.group_offsets import CommittedOffset
from barnabas.client.cluster import Cluster
from barnabas.client.consumers.group_consumer import GroupConsumer, GroupConsumerSettings, OffsetReset
from barnabas.client.core.address import parse_bootstrap
from barnabas.client.core.topology import TopicPartition
from barnabas.client.groups.membership import GroupSettings
from barnabas.testing.ports import free_ports

from . import go_programs
from .conftest import World, running

pytestmark = pytest.mark.long

PATIENCE_S = 30.0
ROUNDS = 6
INTERVALS = 4
STEP = 100
RANDOM_SEED, RANDOM_GROUPS, RANDOM_ROUNDS = 1, 60, 8
MOVES = (  # of one group each
    ("forwards",),
    ("forwards", "none"),
    ("same",),
    ("same", "backwards", "forwards"),
    ("end", "none"),
    ("end", "same", "forwards"),
    ("backwards", "none", "forwards", "end"),
)
GROUPS = ("ok", "warned", "stalled", "stopped", "rewound", "partial", "live")
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]

BURROW_TOML = """
[logging]
filename="burrow.log"
level="info"
[client-profile.test]
client-id="burrow"
kafka-version="3.6.0"
[cluster.local]
class-name="kafka"
servers=["{bootstrap}"]
client-profile="test"
topic-refresh=1
offset-refresh=1
[consumer.local]
class-name="kafka"
cluster="local"
servers=["{bootstrap}"]
client-profile="test"
[httpserver.default]
address="127.0.0.1:{port}"
[storage.default]
class-name="inmemory"
intervals={intervals}
[evaluator.default]
class-name="caching"
expire-cache=1
"""


class Others:
    """The monitors of others: their addresses, and what is asked of them."""

    def __init__(self, urls: dict[str, str]) -> None:
        self.urls = urls
        self.http = httpx.AsyncClient(timeout=30)

    async def get(self, name: str, path: str) -> httpx.Response:
        return await self.http.get(self.urls[name] + path)


@contextmanager
def others(bootstrap: str, folder: Path) -> Iterator[Others]:
    burrow, exporter, minion = free_ports(3)
    (folder / "burrow.toml").write_text(
        BURROW_TOML.format(bootstrap=bootstrap, port=burrow, intervals=INTERVALS)
    )
    with ExitStack() as stack:

        def start(module: go_programs.Module, *arguments: str, **environ: str) -> None:
            command = [str(go_programs.program(module)), *arguments]
            stack.enter_context(go_programs.running(command, folder, environ))

        start(go_programs.BURROW, "--config-dir", str(folder))
        start(
            go_programs.KAFKA_EXPORTER,
            f"--kafka.server={bootstrap}",
            f"--web.listen-address=127.0.0.1:{exporter}",
            "--kafka.version=3.6.0",
            "--refresh.metadata=1s",
        )
        start(
            go_programs.KMINION,
            KAFKA_BROKERS=bootstrap,
            EXPORTER_PORT=str(minion),
            EXPORTER_HOST="127.0.0.1",
            MINION_CONSUMERGROUPS_SCRAPEMODE="offsetsTopic",
        )
        ports = {"burrow": burrow, "kafka_exporter": exporter, "kminion": minion}
        yield Others({name: f"http://127.0.0.1:{port}" for name, port in ports.items()})


async def until(what: str, differences: Callable[[], Awaitable[Any]]) -> None:
    """Wait until there are no differences; the error tells the last ones."""
    found: Any = None
    try:
        async with asyncio.timeout(PATIENCE_S):
            while found := await differences():
                await asyncio.sleep(0.1)
    except TimeoutError:
        raise AssertionError(f"not in {PATIENCE_S:g} s: {what}: {found}") from None


class Scene:
    """Topics and groups, one topic for each group, and the rounds in which they move."""

    def __init__(self, world: World, theirs: Others) -> None:
        self.world = world
        self.theirs = theirs
        self.ends = dict.fromkeys(GROUPS, 0)

    async def both(self, path: str) -> tuple[httpx.Response, httpx.Response]:
        return await self.world.http.get(path), await self.theirs.get("burrow", path)

    async def produce(self) -> None:
        for group in GROUPS:
            self.ends[group] += STEP
            await self.world.produce(group, 0, STEP)
        await until("both see the ends", self._ends_are_seen)

    async def _ends_are_seen(self) -> str:
        for group, end in self.ends.items():
            for response in await self.both(f"/v3/kafka/local/topic/{group}"):
                if response.status_code != 200 or response.json()["offsets"] != [end, 0]:
                    return f"{group} ends at {end}: {response.text}"
        return ""

    async def commit(self, group: str, offset: int) -> None:
        await self.world.commit(group, TopicPartition(group, 0), offset)
        await until(f"both see the commit of {group}", lambda: self._is_seen(group, offset))

    async def _is_seen(self, group: str, offset: int) -> str:
        for response in await self.both(f"/v3/kafka/local/consumer/{group}"):
            if response.status_code != 200:
                return response.text
            newest = response.json()["topics"][group][0]["offsets"][-1]
            if newest is None or newest["offset"] != offset:
                return response.text
        return ""

    async def play(self) -> None:
        """Rounds of records and commits; in the last round all but one group commit once more."""
        for group in GROUPS:
            await self.world.topic(group, 0, 0)
        for number in range(ROUNDS):
            await self.produce()
            await self.commit("ok", self.ends["ok"])
            await self.commit("warned", 10 + number)
            await self.commit("stalled", 5)
            await self.commit("rewound", [50, 60, 70, 80, 20, 30][number])
            await self.commit("partial", self.ends["partial"])
            if number < 2:
                await self.commit("stopped", 5 + number)


@asynccontextmanager
async def watched(broker: str, folder: Path) -> AsyncIterator[Scene]:
    """All monitors are ready, and nothing has happened yet."""
    settings = {"bootstrap.servers": broker, "intervals": str(INTERVALS), "details.refresh.seconds": "1"}
    async with running(settings, broker) as world:
        [first] = await world.topic(f"first-{folder.name}", 1)
        await world.commit("first", first, 1)  # makes the topic that Burrow reads
        follows = "/v1/clusters"  # until the topic exists, commits are asked for
        await world.until(follows, lambda body: body["clusters"][0]["commits_source"] == "topic")
        await world.until("/burrow/admin/ready", lambda body: True)
        with others(broker, folder) as theirs:

            async def are_ready() -> str:
                try:
                    burrow = await theirs.get("burrow", "/burrow/admin/ready")
                    exporter = await theirs.get("kafka_exporter", "/metrics")
                    minion = await theirs.get("kminion", "/metrics")
                except httpx.TransportError as error:
                    return str(error)
                codes = (exporter.status_code, minion.status_code)
                return "" if (burrow.text, *codes) == ("READY", 200, 200) else f"{burrow.text} {codes}"

            await until("the others are ready", are_ready)
            try:
                yield Scene(world, theirs)
            finally:
                await theirs.http.aclose()


@asynccontextmanager
async def scene(broker: str, folder: Path) -> AsyncIterator[Scene]:
    """All groups have played, and a member has joined."""
    async with watched(broker, folder) as found:
        await found.play()
        member = Live(broker)
        try:
            await member.join()
            await member.commit(30)
            await until("both see the member", partial(owner_is_seen, found, member))
            yield found
        finally:
            await member.close()


class Live:
    """A member of the group `live`, which stays."""

    def __init__(self, bootstrap: str) -> None:
        self._cluster = Cluster(parse_bootstrap(bootstrap), client_id="ann")
        settings = GroupConsumerSettings(GroupSettings("live"), OffsetReset.EARLIEST)
        self._consumer = GroupConsumer(self._cluster, settings)

    async def join(self) -> None:
        await self._consumer.unsubscribe()
        await self._consumer.subscribe(["live"])
        while not self._consumer.assignment:
            await self._consumer.poll(100)

    async def commit(self, offset: int) -> None:
        await self._consumer.commit({TopicPartition("live", 0): CommittedOffset(offset)})

    async def close(self) -> None:
        await self._consumer.close()
        await self._cluster.close()


def samples(text: str, prefix: str) -> Samples:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith(prefix) and not sample.name.endswith("_created")
    }


def own_fields_removed(body: Any) -> Any:
    """A body without what differs by nature: who answered, when commits were seen, and fields that we add."""
    if isinstance(body, dict):
        left_out = ("request", "observedAt", "lag_seconds", "lag_seconds_method")
        return {name: own_fields_removed(value) for name, value in body.items() if name not in left_out}
    if isinstance(body, list):
        return [own_fields_removed(each) for each in body]
    return body


KMINIONS_OWN = (  # a guess of the version, and what its client counts of itself
    "kminion_kafka_cluster_info",
    "kminion_kafka_requests_",
    "kminion_kafka_sent_bytes",
    "kminion_kafka_received_bytes",
)
VERDICTS = {
    "ok": ("OK", "OK"),
    "warned": ("WARN", "WARN"),
    "stalled": ("ERR", "STALL"),
    "stopped": ("ERR", "STOP"),
    "rewound": ("ERR", "REWIND"),
    "partial": ("OK", "OK"),
}


def test_everything_is_as_others_see_it(broker: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with scene(broker, tmp_path) as found:
            await compare_burrow(found)
            await compare_metrics(found)

    asyncio.run(main())


def test_random_histories_are_judged_as_burrow_judges_them(broker: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with watched(broker, tmp_path) as found:
            histories = Histories(found, Random(RANDOM_SEED))
            await histories.play()
            await histories.compare()

    asyncio.run(main())


class Histories:
    """Groups that commit at random: some rounds none, forwards, backwards, the same, and up to the end."""

    def __init__(self, scene: Scene, random: Random) -> None:
        self.scene = scene
        self.random = random
        self.ends = {f"random-{number}": 0 for number in range(RANDOM_GROUPS)}
        self.committed: dict[str, int] = {}
        self.moves = {group: self.random.choice(MOVES) for group in self.ends}
        self.seen: set[str] = set()

    async def play(self) -> None:
        world = self.scene.world
        for group in self.ends:
            await world.topic(group, 0)
        for _ in range(RANDOM_ROUNDS):
            for group in self.ends:
                count = self.random.choice((0, 1, 3, 20))
                self.ends[group] += count
                if count:
                    await world.produce(group, 0, count)
            await until("both see the ends", self._ends_differ)
            for group in self.ends:
                offset = self._next(group)
                if offset is not None:
                    self.committed[group] = offset
                    await world.commit(group, TopicPartition(group, 0), offset)
            await until("both see the commits", self._commits_differ)

    def _next(self, group: str) -> int | None:
        last, end = self.committed.get(group, 0), self.ends[group]
        move = self.random.choice(self.moves[group])
        return {
            "none": None,
            "same": last,
            "forwards": min(end, last + self.random.randint(1, 10)),
            "backwards": max(0, last - self.random.randint(1, 10)),
            "end": end,
        }[move]

    async def _ends_differ(self) -> str:
        for group, end in self.ends.items():
            for response in await self.scene.both(f"/v3/kafka/local/topic/{group}"):
                if response.status_code != 200 or response.json()["offsets"] != [end]:
                    return f"{group} ends at {end}: {response.text}"
        return ""

    async def _commits_differ(self) -> str:
        for group, offset in self.committed.items():
            for response in await self.scene.both(f"/v3/kafka/local/consumer/{group}"):
                if response.status_code != 200:
                    return response.text
                newest = response.json()["topics"][group][0]["offsets"][-1]
                if newest is None or newest["offset"] != offset:
                    return f"{group} commits {offset}: {response.text}"
        return ""

    async def compare(self) -> None:
        for group in self.committed:
            for path in ("", "/lag", "/status"):
                full = f"/v3/kafka/local/consumer/{group}{path}"
                await until(f"{full} is the same", partial(different_bodies, self.scene, full))
            ours, _ = await self.scene.both(f"/v3/kafka/local/consumer/{group}/lag")
            self.seen |= {each["status"] for each in ours.json()["status"]["partitions"]}
        assert self.seen >= {"OK", "WARN", "STOP", "STALL", "REWIND"}


async def compare_burrow(scene: Scene) -> None:
    for group, (status, partition) in VERDICTS.items():
        ours, theirs = await scene.both(f"/v3/kafka/local/consumer/{group}/lag")
        for response in (ours, theirs):
            body = response.json()["status"]
            assert (body["status"], body["partitions"][0]["status"]) == (status, partition), (group, body)
    for group in GROUPS:
        for path in ("", "/lag", "/status"):
            full = f"/v3/kafka/local/consumer/{group}{path}"
            await until(f"{full} is the same", partial(different_bodies, scene, full))
    for path in (
        "/v3/kafka",
        "/v3/kafka/local/topic/ok",
        "/v3/kafka/local/topic/ok/consumers",
        "/v3/kafka/local/topic/none",
        "/v3/kafka/none/topic",
        "/v3/kafka/none/consumer",
        "/v3/kafka/local/consumer/none",
        "/v3/kafka/local/consumer/none/lag",
        "/v3/kafka/local/consumer/none/status",
        "/v3/config/storage",
        "/v3/config/evaluator",
        "/v3/config/cluster",
        "/v3/config/consumer",
        "/v3/config/notifier",
        "/v3/config/storage/none",
        "/v3/config/storage/default",
        "/nothing",
    ):
        await until(f"{path} is the same", partial(different_bodies, scene, path))
    for path in (
        "/v3/kafka/local",
        "/v3/config",
        "/v3/config/consumer/local",
        "/v3/config/evaluator/default",
    ):
        ours, theirs = await scene.both(path)  # settings differ, their names do not
        assert names_of(ours.json()) == names_of(theirs.json()), path


async def different_bodies(scene: Scene, path: str) -> Any:
    """Both bodies, if they differ. Burrow counts silence in whole seconds, so they may for a moment."""
    ours, theirs = ((each.status_code, own_fields_removed(each.json())) for each in await scene.both(path))
    return (ours, theirs) if ours != theirs else None


async def owner_is_seen(scene: Scene, member: Live) -> str:
    for name, response in zip(
        ("ours", "Burrow"), await scene.both("/v3/kafka/local/consumer/live"), strict=True
    ):
        if response.status_code != 200 or response.json()["topics"]["live"][0]["client_id"] != "ann":
            # Burrow drops owners while its storage is busy: the member joins once more.
            await member.join()
            return f"{name}: {response.text}"
    return ""


def names_of(body: Any) -> Any:
    return {name: names_of(value) for name, value in body.items()} if isinstance(body, dict) else None


async def compare_metrics(scene: Scene) -> None:
    ours = samples((await scene.world.http.get("/metrics?dialect=burrow")).text, "burrow_")
    theirs = samples((await scene.theirs.get("burrow", "/metrics")).text, "burrow_")
    # Burrow shows its own reading of the offsets topic as a group.
    for group in (ours, theirs):
        for key in [key for key in group if is_about(key, "burrow-local", "__consumer_offsets")]:
            del group[key]
    assert ours == theirs
    for dialect, prefix, left_out in (
        ("kafka_exporter", "kafka_", ("kafka_exporter_",)),
        ("kminion", "kminion_kafka_", KMINIONS_OWN),
    ):
        await until(f"{dialect} shows the same", partial(differences, scene, dialect, prefix, left_out))


def is_about(key: tuple[str, frozenset[tuple[str, str]]], *values: str) -> bool:
    return any(value in values for _, value in key[1])


async def differences(scene: Scene, dialect: str, prefix: str, left_out: tuple[str, ...]) -> Any:
    """Samples that differ between both pages. Each page is read at its own time."""
    ours = samples((await scene.world.http.get(f"/metrics?dialect={dialect}")).text, prefix)
    theirs = samples((await scene.theirs.get(dialect, "/metrics")).text, prefix)
    for page in (ours, theirs):
        for key in [key for key in page if key[0].startswith(left_out)]:
            del page[key]
    return [
        (key, ours.get(key), theirs.get(key))
        for key in ours.keys() | theirs.keys()
        if ours.get(key) != theirs.get(key)
    ]
