"""Tools of security print the same as Kafka's tools, on secured nodes of both kinds."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from barnabas.testing import apache
from barnabas.testing.ports import free_ports
from security.secured_broker import LOGIN, SETTINGS, USERS, SecuredBroker

from .conftest import RunTool
from .test_transcripts import difference
from .transcript import JAVA_CLASSES, Step, load, normal

FOLDER = Path(__file__).parent / "secured_transcripts"
TALKS = sorted(path.stem for path in FOLDER.glob("*.txt"))
TOKEN = re.compile(r"^\S{22} (\S{88}) ", re.MULTILINE)
MOMENTS = (
    (re.compile(r"(?<=tokenId : )\S{22}|^\S{22}(?= \S{88} )", re.MULTILINE), "<id>"),
    (re.compile(r"\S{86}=="), "<hmac>"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d"), "<date>"),
    (re.compile(r"(?m) +$"), ""),
)
STACK = re.compile(r"(?m)^(\tat .*|Caused by: .*|\t\.\.\. \d+ more|[a-z][\w.$]+(Exception|Error): .*)\n")
FAILED = "Error while executing ACL command: "
BLOCK = re.compile(r"(?ms)^(?:Adding|Current) ACLs for resource .*?\n\n|^Acl \(.*?\n")
ANY_ORDER = re.compile(r"(?<=only supports operations \[)[^\]]*")


@dataclass(frozen=True)
class Node:
    broker: str
    controller: str
    sasl: str

    def arguments(self, step: Step, hmac: str) -> list[str]:
        names = {"$CONTROLLER": self.controller, "$SASL": self.sasl, "$HMAC": hmac}
        found = step.arguments(self.broker)
        for name, value in names.items():
            found = [each.replace(name, value) for each in found]
        return found


@pytest.fixture(scope="module")
def apache_node(java: None) -> Iterator[Node]:
    kafka = apache.ApacheKafka(heap="512M")
    [port] = free_ports(1)
    listeners = {
        "PLAINTEXT": kafka.port,
        "CONTROLLER": kafka.controller_port,
        "SASL_PLAINTEXT": port,
    }
    kafka.override(
        SETTINGS | {"listeners": ",".join(f"{name}://127.0.0.1:{at}" for name, at in listeners.items())}
    )
    with kafka:
        yield Node(kafka.bootstrap, f"127.0.0.1:{kafka.controller_port}", f"127.0.0.1:{port}")


@pytest.fixture(scope="module")
def our_node() -> Iterator[Node]:
    with SecuredBroker() as broker:
        yield Node(broker.bootstrap, broker.controller, f"127.0.0.1:{broker.sasl_port}")


@pytest.fixture(autouse=True)
def beside_the_properties(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, word in USERS.items():
        (tmp_path / f"{name}.properties").write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
            f'sasl.jaas.config={LOGIN} username="{name}" password="{word}";\n'
        )
    (tmp_path / "plain.properties").write_text("")
    monkeypatch.chdir(tmp_path)


def shown(output: str, errors: str, status: int, node: Node) -> str:
    """The output without stack traces and chance; blocks of ACLs and their lines sorted, as Kafka prints
    them in an arbitrary order."""
    output = STACK.sub("", output)
    for pattern, text in MOMENTS:
        output = pattern.sub(text, output)
    if FAILED in output:
        output, failed, reason = output.partition(FAILED)
        errors = failed + reason.rstrip("\n") + "\n" + errors
    blocks = sorted(in_order(block) for block in BLOCK.findall(output))
    rest = BLOCK.sub("", output)
    if status:  # Kafka prints its help after the first line
        rest = rest.rstrip("\n") + "\n" if rest.strip() else ""
    errors = ANY_ORDER.sub(lambda match: ", ".join(sorted(match[0].split(", "))), errors)
    for address, name in ((node.controller, "$CONTROLLER"), (node.sasl, "$SASL")):
        errors = errors.replace(address, name)
    return normal(rest + "".join(blocks), errors, status, node.broker).text().rstrip()


def in_order(block: str) -> str:
    head, *lines = block.rstrip("\n").split("\n")
    return "\n".join([head, *sorted(line.lstrip() for line in lines)]) + "\n"


def replay(talk: str, node: Node, run_tool: RunTool) -> None:
    steps = load(FOLDER / f"{talk}.txt")
    printed = []
    hmac = ""
    for step in steps:
        ran = run_tool(*node.arguments(step, hmac), input=step.input)
        hmac = next(iter(TOKEN.findall(ran.output)), hmac)
        printed.append(shown(ran.output, ran.errors, ran.status, node))
    expected = [step.text(step.printed) for step in steps]
    ours = [step.text(each) for step, each in zip(steps, printed, strict=True)]
    assert ours == expected, difference(expected, ours)


@pytest.mark.parametrize("talk", TALKS)
def test_our_tools_print_what_kafkas_do(talk: str, our_node: Node, run_tool: RunTool) -> None:
    replay(talk, our_node, run_tool)


@pytest.mark.java
@pytest.mark.recorded()
@pytest.mark.parametrize("talk", TALKS)
def test_our_tools_print_the_same_on_apache_kafka(talk: str, apache_node: Node, run_tool: RunTool) -> None:
    replay(talk, apache_node, run_tool)


@pytest.mark.java
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("talk", TALKS)
def test_the_transcripts_are_what_kafkas_tools_print(
    talk: str, apache_node: Node, request: pytest.FixtureRequest
) -> None:
    if not (request.config.getoption("--apache") or request.config.getoption("--record")):
        pytest.skip("--apache runs Kafka's own tools again, which takes minutes")
    path = FOLDER / f"{talk}.txt"
    steps = load(path)
    printed = run_java(steps, apache_node)
    if request.config.getoption("--record"):
        path.write_text("\n".join(step.text(each) for step, each in zip(steps, printed, strict=True)))
    assert printed == [step.printed for step in load(path)]


@pytest.mark.java
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("talk", TALKS)
def test_kafkas_tools_print_the_same_on_our_broker(
    talk: str, java: None, our_node: Node, request: pytest.FixtureRequest
) -> None:
    if not request.config.getoption("--apache"):
        pytest.skip("--apache runs Kafka's own tools again, which takes minutes")
    steps = load(FOLDER / f"{talk}.txt")
    expected = [step.text(step.printed) for step in steps]
    found = [step.text(each) for step, each in zip(steps, run_java(steps, our_node), strict=True)]
    assert found == expected, difference(expected, found)


def run_java(steps: list[Step], node: Node) -> list[str]:
    printed = []
    hmac = ""
    for step in steps:
        program, *arguments = node.arguments(step, hmac)
        done = apache.tool(JAVA_CLASSES[program], *arguments, input=step.input)
        hmac = next(iter(TOKEN.findall(done.stdout)), hmac)
        printed.append(shown(done.stdout, done.stderr, done.returncode, node))
    return printed


@pytest.mark.parametrize(("answer", "is_removed"), [("n", False), ("", False), ("Y", True)])
def test_removing_asks_first(answer: str, is_removed: bool, our_node: Node, run_tool: RunTool) -> None:
    acls = ("kafka-acls", "--bootstrap-server", our_node.broker, "--topic", "asked")
    run_tool(*acls, "--add", "--allow-principal", "User:ann", "--operation", "Read")
    asked = run_tool(*acls, "--remove", input=f"{answer}\n")
    assert asked.output.startswith("Are you sure you want to delete all ACLs for resource filter `")
    assert bool(run_tool(*acls, "--list").output) is not is_removed
