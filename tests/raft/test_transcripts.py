"""Transcripts of a quorum, command by command, in `transcripts/`. BARNABAS_REWRITE=1 writes the current
result.

A transcript begins with `quorum N`. Each `> command` is followed by its effects: changed roles, and messages
sent. Commands: `time MS`, `deliver A B` (the newest message from A to B, and its response back), `lose A B`,
`fetch A`, `gone A` (the connection to its leader broke), `append A`, `restart A`, `resign A`, `logs`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.raft.messages import Outgoing, ReplicaKey, SendBeginEpoch, SendVote
from barnabas.raft.roles import Campaign, Elected, Follower
from raft.network import Network, Peer

FILES = sorted((Path(__file__).parent / "transcripts").glob("*.txt"))


def message_text(sender: int, message: Outgoing) -> str:
    if isinstance(message, SendVote):
        kind = "pre-vote" if message.is_pre_vote else "vote"
        log = f"{message.last_epoch}/{message.end_offset}"
        return f"{sender} -> {message.to.id}: {kind} epoch {message.epoch} log {log}"
    if isinstance(message, SendBeginEpoch):
        return f"{sender} -> {message.to.id}: begin epoch {message.epoch}"
    line = ", ".join(str(successor.id) for successor in message.successors)
    return f"{sender} -> {message.to.id}: end epoch {message.epoch}, next {line}"


def role_text(peer: Peer) -> str:
    role, state = peer.member.role, peer.member.state
    text = f"{peer.voter.id} is {type(role).__name__.lower()} in epoch {state.epoch}"
    if isinstance(role, Follower):
        text += f" of {role.leader_id}"
    if isinstance(role, Campaign):
        text += f" with {sorted(role.granted)}"
    if isinstance(role, Elected):
        text += f", committed {peer.high_watermark}"
    if state.voted_id >= 0:
        text += f", voted {state.voted_id}"
    return text


class Conversation:
    def __init__(self, size: int) -> None:
        self.network = Network(size, seed=1)
        self._outgoing = list(self.network.outgoing)
        self._shown = {peer.voter.id: role_text(peer) for peer in self.network.peers.values()}

    def run(self, command: str) -> Iterator[str]:
        name, *given = command.split()
        numbers = [int(each) for each in given]
        network = self.network
        if name == "time":
            network.pass_time(numbers[0])
        elif name in ("deliver", "lose"):
            found = [each for each in network.outgoing if [each[0], each[1].to.id] == numbers][-1]
            network.outgoing.remove(found)
            self._outgoing.remove(found)
            if name == "deliver":
                network.deliver(*found, loses_response=False)
        elif name == "logs":
            for peer in network.peers.values():
                yield f"{peer.voter.id} has {peer.log.entries}, committed {peer.high_watermark}"
        else:
            self._one(name, network.peers[numbers[0]])
        network.check()
        yield from self._changes()

    def _one(self, name: str, peer: Peer) -> None:
        network = self.network
        if name == "fetch":
            network.fetch(peer, faults=False)
        elif name == "gone":
            peer.member.on_leader_unreachable(peer.member.epoch, network.now_ms)
        elif name == "append":
            network.append(peer)
        elif name == "restart":
            network.restart(peer)
        elif name == "resign":
            others = [each.voter for each in network.peers.values() if each is not peer]
            peer.member.resign([ReplicaKey(each.id, each.directory_id) for each in others], network.now_ms)
            network.carry_out(peer)
        else:
            raise ValueError(name)

    def _changes(self) -> Iterator[str]:
        for peer in self.network.peers.values():
            now = role_text(peer)
            if self._shown[peer.voter.id] != now:
                self._shown[peer.voter.id] = now
                yield now
        for each in self.network.outgoing[len(self._outgoing) :]:
            yield message_text(*each)
        self._outgoing = list(self.network.outgoing)


def replayed(text: str) -> str:
    lines = text.splitlines()
    written = []
    conversation: Conversation | None = None
    for line in lines:
        if line.startswith("quorum "):
            conversation = Conversation(int(line.split()[1]))
            written.append(line)
        elif line.startswith("> "):
            assert conversation is not None
            written.append(line)
            written += conversation.run(line[2:])
        elif line.startswith("#") or not line:
            written.append(line)
    return "\n".join(written) + "\n"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_quorum_behaves_as_its_transcript_says(path: Path) -> None:
    found = replayed(path.read_text())
    if os.environ.get("BARNABAS_REWRITE") == "1":
        path.write_text(found)
    assert path.read_text() == found
