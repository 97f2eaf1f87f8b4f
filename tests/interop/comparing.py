"""Running a scenario and telling where two transcripts part."""

from __future__ import annotations

import json
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from .deliberate import reason
from .scenarios import everything
from .talk import PASSWORDS, Talk

RECORDED = Path(__file__).with_name("recorded")
SHOWN = 12
CONFIGURED = {
    "auto.create.topics.enable": "false",
    "compression.type": "gzip",
    "delete.topic.enable": "false",
    "fetch.max.bytes": "4000",
    "group.consumer.assignors": "range",
    "group.consumer.max.size": "2",
    "group.consumer.migration.policy": "disabled",
    "group.max.session.timeout.ms": "20000",
    "group.max.size": "2",
    "group.min.session.timeout.ms": "1000",
    "group.share.max.share.sessions": "2",
    "group.share.max.size": "2",
    "group.share.min.record.lock.duration.ms": "1000",
    "log.message.timestamp.type": "LogAppendTime",
    "log.retention.hours": "5",
    "log.segment.bytes": "2000000",
    "max.request.partition.size.limit": "2",
    "message.max.bytes": "2000",
    "num.partitions": "3",
    "offset.metadata.max.bytes": "10",
    "socket.request.max.bytes": "500000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
    "transaction.max.timeout.ms": "20000",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "200",
    "transaction.two.phase.commit.enable": "true",
    "transactional.id.expiration.ms": "5000",
    "unstable.api.versions.enable": "true",
}
"""Settings of the node that the scenarios `configured.*` and `group_configured.*` talk to."""

USERS = " ".join(f'user_{name}="{password}"' for name, password in PASSWORDS.items())
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
AUTHORIZED = {
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.plaintext.plain.sasl.jaas.config": f"{MODULE} "
    f'required username="admin" password="{PASSWORDS["admin"]}" {USERS};',
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin;User:ANONYMOUS",
}
"""Settings of the node that the scenarios `authorized.*` talk to: users log in, and ACLs decide."""

Transcript = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Ports:
    """Where the nodes of the scenarios listen: an ordinary one, its controller, one with `CONFIGURED`, one
    with `AUTHORIZED`."""

    broker: int
    controller: int
    configured: int
    authorized: int

    def of(self, name: str) -> int:
        port: int = getattr(self, role_of(name))
        return port


def role_of(name: str) -> str:
    """Which of the ports a scenario talks to."""
    module = name.partition(".")[0]
    if module.startswith("authorized"):
        return "authorized"
    if module.endswith("configured"):
        return "configured"
    return "controller" if module == "controller" else "broker"


def converse(port: int, name: str) -> Transcript:
    """The transcript of one scenario with the broker at `port`."""
    talk = Talk(port, name.replace("_", "-")[:120])
    try:
        everything()[name](talk)
    finally:
        talk.close()
    return json.loads(json.dumps(talk.transcript))  # as it will be read back


class Conversations:
    """With one broker, one after the other, beside those with another broker: half of the time they wait."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._pool = ThreadPoolExecutor(1)
        self._begun: dict[str, Future[Transcript]] = {}

    def begin(self, name: str) -> None:
        self._begun[name] = self._pool.submit(converse, self._ports.of(name), name)

    def transcript(self, name: str) -> Transcript:
        """Of a conversation that may have begun already."""
        if name not in self._begun:
            self.begin(name)
        return self._begun.pop(name).result()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(cancel_futures=True)


def recorded(name: str) -> Transcript:
    return json.loads((RECORDED / f"{name}.json").read_text())


def record(name: str, transcript: Transcript) -> None:
    """One line an answer: small files, and diffs that show which answer changed."""
    lines = ",\n".join(json.dumps(entry) for entry in transcript)
    (RECORDED / f"{name}.json").write_text(f"[\n{lines}\n]\n")


def differences(name: str, reference: Transcript, ours: Transcript) -> str:
    """What differs in a scenario, the reference's answer first; empty when nothing does."""
    found = []
    for expected, got in zip(reference, ours, strict=False):
        if expected["request"] != got["request"]:
            found.append(f"the conversations part: {expected['request']!r} and {got['request']!r}")
            break
        parted = paths("", expected["answer"], got["answer"])
        if parted and reason(name, expected["request"]) is None:
            parts = "\n".join(f"    {line}" for line in parted[:SHOWN])
            found.append(f"  {expected['request']}\n{parts}")
    if len(reference) != len(ours) and not (found and found[-1].startswith("the conv")):
        found.append(f"{len(reference)} answers in the reference, {len(ours)} here")
    more = len(found) - SHOWN
    return "\n".join(found[:SHOWN]) + (f"\n  ... and {more} more" if more > 0 else "")


def paths(where: str, reference: Any, ours: Any) -> list[str]:
    """The places inside an answer that differ."""
    if isinstance(reference, dict) and isinstance(ours, dict):
        names = [*reference, *(name for name in ours if name not in reference)]
        return [
            line
            for name in names
            for line in paths(f"{where}.{name}", reference.get(name, "<absent>"), ours.get(name, "<absent>"))
        ]
    if isinstance(reference, list) and isinstance(ours, list) and len(reference) == len(ours):
        return [
            line
            for n, (left, right) in enumerate(zip(reference, ours, strict=True))
            for line in paths(f"{where}[{n}]", left, right)
        ]
    if reference == ours or (reference is None and ours == "<words>"):
        return []  # saying more about an error than the reference is no difference
    return [f"{where}: Apache Kafka {short(reference)}, ours {short(ours)}"]


def short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 400 else f"{text[:400]}..."
