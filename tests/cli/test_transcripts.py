"""Our tools print the recorded output of Kafka's tools, and Kafka's tools still print it."""

import asyncio
import contextlib
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path

import pytest

from barnabas.client.admin.admin import Admin
from barnabas.client.cluster import Cluster
from barnabas.client.core.address import parse_bootstrap
from barnabas.testing import Broker, apache
from barnabas.testing.waiting import until
from both_brokers import SHARES_SOON

from .conftest import RunTool
from .group_members import Members
from .open_transactions import Transactions
from .share_members import ShareMembers
from .streams_members import StreamsMembers
from .transcript import FOLDER, JAVA_CLASSES, Step, load, normal

SEGMENTS = Path(__file__).parent / "segments"
TALKS = sorted(path.stem for path in FOLDER.glob("*.txt"))


@pytest.fixture(autouse=True)
def beside_the_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(SEGMENTS)


@pytest.fixture
def empty_barnabas(talk: str) -> Iterator[str]:
    with Broker(overrides=SHARES_SOON if talk.startswith("share") else None) as broker:
        yield broker.bootstrap


@pytest.fixture
def empty_apache(apache_kafka: apache.ApacheKafka) -> str:
    asyncio.run(delete_everything(apache_kafka.bootstrap))
    return apache_kafka.bootstrap


EMPTY_TIMEOUT_S = 100.0


async def delete_everything(bootstrap: str) -> None:
    async with Cluster(parse_bootstrap(bootstrap)) as cluster:
        admin = Admin(cluster)

        async def has_no_groups() -> bool:
            groups = [listing.group_id for listing in await admin.list_groups()]
            if groups:
                await admin.delete_groups(groups)  # static members stay until their sessions expire
            return not groups

        async def has_no_topics() -> bool:
            return not await admin.list_topics()

        await until(has_no_groups, EMPTY_TIMEOUT_S, "the end of all groups")
        await admin.delete_topics([topic.name for topic in await admin.list_topics()])
        await until(has_no_topics, EMPTY_TIMEOUT_S, "the end of all topics")


def replay(talk: str, broker: str, run_tool: RunTool) -> None:
    """Runs the commands of a transcript and compares all output at the end."""
    steps = load(FOLDER / f"{talk}.txt")
    printed = []
    with clients_of(broker) as clients:
        for step in steps:
            if clients.do(step):
                printed.append("")
                continue
            ran = run_tool(*step.arguments(broker), input=step.input)
            printed.append(normal(ran.output, ran.errors, ran.status, broker).text())
    expected = [step.text(step.printed) for step in steps]
    ours = [step.text(each) for step, each in zip(steps, printed, strict=True)]
    assert ours == expected, difference(expected, ours)


class Clients:
    """Starts and stops the group members and transactions that steps of a transcript name."""

    def __init__(
        self,
        broker: str,
        members: Members,
        share_members: ShareMembers,
        streams_members: StreamsMembers,
        transactions: Transactions,
    ) -> None:
        self._broker = broker
        self._members = members
        self._share_members = share_members
        self._streams_members = streams_members
        self._transactions = transactions

    def do(self, step: Step) -> bool:
        program, *arguments = step.arguments(self._broker)
        names = [name.removeprefix("--").replace("-", "_") for name in arguments[::2]]
        given = dict(zip(names, arguments[1::2], strict=False))
        if program == "member-joins":
            self._members.join(**given)
        elif program == "share-member-joins":
            self._share_members.join(**given)
        elif program == "streams-member-joins":
            self._streams_members.join(**given)
        elif program == "members-leave":
            self._members.leave()
            self._share_members.leave()
            self._streams_members.leave()
        elif program == "transaction":
            partitions = [int(each) for each in given["partition"].split(",")]
            self._transactions.write(given["id"], given["topic"], partitions, given.get("end"))
        else:
            return False
        return True


@contextlib.contextmanager
def clients_of(broker: str) -> Iterator[Clients]:
    transactions = Transactions(broker)
    try:
        with (
            Members(broker) as members,
            ShareMembers(broker) as share_members,
            StreamsMembers(broker) as streams_members,
        ):
            yield Clients(broker, members, share_members, streams_members, transactions)
    finally:
        transactions.close()


def difference(expected: list[str], ours: list[str]) -> str:
    """The steps whose output differs."""
    pairs = [(one, other) for one, other in zip(expected, ours, strict=True) if one != other]
    lines = (unified_diff(one.splitlines(), other.splitlines(), "Kafka", "ours") for one, other in pairs)
    return "\n\n".join("\n".join(each) for each in lines)


@pytest.mark.parametrize("talk", TALKS)
def test_our_tools_print_what_kafkas_do(talk: str, empty_barnabas: str, run_tool: RunTool) -> None:
    replay(talk, empty_barnabas, run_tool)


@pytest.mark.java
@pytest.mark.recorded("topics")
@pytest.mark.parametrize("talk", TALKS)
def test_our_tools_print_the_same_on_apache_kafka(talk: str, empty_apache: str, run_tool: RunTool) -> None:
    replay(talk, empty_apache, run_tool)


@pytest.mark.java
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("talk", TALKS)
def test_the_transcripts_are_what_kafkas_tools_print(
    talk: str, empty_apache: str, request: pytest.FixtureRequest
) -> None:
    if not (request.config.getoption("--apache") or request.config.getoption("--record")):
        pytest.skip("--apache runs Kafka's own tools again, which takes minutes")
    path = FOLDER / f"{talk}.txt"
    steps = load(path)
    with clients_of(empty_apache) as clients:
        printed = ["" if clients.do(step) else run_java(step, empty_apache) for step in steps]
    if request.config.getoption("--record"):
        path.write_text("\n".join(step.text(each) for step, each in zip(steps, printed, strict=True)))
    assert printed == [step.printed for step in load(path)]


@pytest.mark.java
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("talk", TALKS)
def test_kafkas_tools_print_the_same_on_our_broker(
    talk: str, java: None, empty_barnabas: str, request: pytest.FixtureRequest
) -> None:
    if not request.config.getoption("--apache"):
        pytest.skip("--apache runs Kafka's own tools again, which takes minutes")
    steps = load(FOLDER / f"{talk}.txt")
    with clients_of(empty_barnabas) as clients:
        printed = ["" if clients.do(step) else run_java(step, empty_barnabas) for step in steps]
    expected = [step.text(step.printed) for step in steps]
    shown = [step.text(each) for step, each in zip(steps, printed, strict=True)]
    assert shown == expected, difference(expected, shown)


def run_java(step: Step, broker: str) -> str:
    program, *arguments = step.arguments(broker)
    done = apache.tool(JAVA_CLASSES[program], *arguments, input=step.input)
    return normal(done.stdout, done.stderr, done.returncode, broker).text()
