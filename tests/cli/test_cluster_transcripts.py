"""Tools for clusters print the same as Kafka's tools, on clusters of three nodes of both kinds."""

import asyncio
import re
import time
from pathlib import Path

import pytest

from barnabas.client.admin.admin import Admin
from barnabas.client.cluster import Cluster
from barnabas.client.core.address import parse_bootstrap
from barnabas.client.producer import Producer
from barnabas.testing import apache
from barnabas.testing.apache_cluster import ApacheCluster
from barnabas.testing.cluster import Cluster as Nodes
from barnabas.testing.waiting import until

from .conftest import RunTool
from .transcript import JAVA_CLASSES, Step, load, normal

FOLDER = Path(__file__).parent / "cluster_transcripts"
SEGMENTS = Path(__file__).parent / "segments"
TALKS = sorted(path.stem for path in FOLDER.glob("*.txt"))
SETTLED_S = 60.0
MEGABYTE = 1 << 20
QUIET = {"auto.leader.rebalance.enable": "false"}  # no leader moves by itself
STACK = re.compile(
    r"(?m)^(Error: .*)\n(?:.+Exception.*\n|.+Error.*\n|\tat .*\n|Caused by.*\n|\t\.\.\..*\n|\n)*"
)


ISR = re.compile(r"(?<=\tIsr: )[\d,]+")
LOOKS = ("--describe", "--list")
SEEN_S = 10.0
DIR = re.compile(r'(?<=[\[,])"/[^"]*"')


@pytest.fixture(autouse=True)
def beside_the_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(SEGMENTS)


def is_no_tool(step: Step, broker: str) -> bool:
    """Steps between the tools: wait until no replica moves, write to a topic."""
    program, *arguments = step.arguments(broker)
    if program == "settled":
        asyncio.run(settle(broker))
    elif program == "fill":
        given = dict(zip(arguments[::2], arguments[1::2], strict=True))
        asyncio.run(fill(broker, given["--topic"], int(given["--megabytes"])))
    else:
        return False
    return True


async def settle(broker: str) -> None:
    async with Cluster(parse_bootstrap(broker)) as cluster:
        admin = Admin(cluster)

        async def is_settled() -> bool:
            names = [topic.name for topic in await admin.list_topics()]
            described = await admin.describe_topics(names)
            in_sync = all(set(p.isr) == set(p.replicas) for topic in described for p in topic.partitions)
            return in_sync and not await admin.reassignments()

        await until(is_settled, SETTLED_S, "the end of all moves")


async def fill(broker: str, topic: str, megabytes: int) -> None:
    async with Cluster(parse_bootstrap(broker)) as cluster, Producer(cluster) as producer:
        for _ in range(megabytes * 2):
            await producer.send(topic, bytes(MEGABYTE // 2))
        await producer.flush()


def shown(output: str, errors: str, status: int, broker: str) -> str:
    """The output without stack traces and names of log dirs; the order of in-sync replicas does not count."""
    output = ISR.sub(lambda isr: ",".join(sorted(isr[0].split(","))), output)
    return normal(DIR.sub('"<dir>"', STACK.sub(r"\1\n", output)), errors, status, broker).text()


def replay(talk: str, broker: str, run_tool: RunTool) -> None:
    for step in load(FOLDER / f"{talk}.txt"):
        if not is_no_tool(step, broker):
            printed = run(step, broker, run_tool)
            if any(look in step.command for look in LOOKS):
                # Our tools start faster than the brokers apply a change of the metadata.
                deadline = time.monotonic() + SEEN_S
                while printed != step.printed and time.monotonic() < deadline:
                    printed = run(step, broker, run_tool)
            assert step.text(printed) == step.text(step.printed)


def run(step: Step, broker: str, run_tool: RunTool) -> str:
    ran = run_tool(*step.arguments(broker), input=step.input)
    return shown(ran.output, ran.errors, ran.status, broker)


@pytest.mark.java
@pytest.mark.recorded()
@pytest.mark.timeout(300)
@pytest.mark.parametrize("talk", TALKS)
def test_our_tools_print_the_same_on_apache_kafka(talk: str, run_tool: RunTool, java: None) -> None:
    with ApacheCluster(3, overrides=QUIET) as cluster:
        replay(talk, cluster.bootstrap, run_tool)


@pytest.mark.java
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("talk", TALKS)
def test_the_transcripts_are_what_kafkas_tools_print(
    talk: str, java: None, request: pytest.FixtureRequest
) -> None:
    if not (request.config.getoption("--apache") or request.config.getoption("--record")):
        pytest.skip("--apache runs Kafka's own tools again, which takes minutes")
    path = FOLDER / f"{talk}.txt"
    steps = load(path)
    with ApacheCluster(3, overrides=QUIET) as cluster:
        broker = cluster.bootstrap
        printed = ["" if is_no_tool(step, broker) else run_java(step, broker) for step in steps]
    if request.config.getoption("--record"):
        path.write_text("\n".join(step.text(each) for step, each in zip(steps, printed, strict=True)))
    assert printed == [step.printed for step in load(path)]


def run_java(step: Step, broker: str) -> str:
    program, *arguments = step.arguments(broker)
    done = apache.tool(JAVA_CLASSES[program], *arguments, input=step.input)
    return shown(done.stdout, done.stderr, done.returncode, broker)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("talk", TALKS)
def test_our_tools_print_the_same_on_our_cluster(talk: str, run_tool: RunTool) -> None:
    with Nodes(combined=3, overrides=QUIET) as cluster:
        replay(talk, cluster.bootstrap, run_tool)
