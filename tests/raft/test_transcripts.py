"""Conversations of a quorum, line by line, in `transcripts/`; BARNABAS_REWRITE=1 writes what is said now.

A transcript begins with `quorum N`. Then each `> command` is followed by what it led to: roles that changed,
and messages that are on their way. Commands: `time MS`, `deliver A B` (the newest message from A to B, and
its answer back), `lose A B`, `fetch A`, `gone A` (its leader's connection broke), `append A`, `restart A`,
`resign A`, `logs`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.raft.asks import Ask, AskVote, ReplicaKey, TellBegin
from barnabas.raft.roles import Campaign, Elected, Follower
from raft.network import Network, Peer

FILES = sorted((Path(__file__).parent / "transcripts").glob("*.txt"))


def told(sender: int, ask: Ask) -> str:
    if isinstance(ask, AskVote):
        kind = "pre-vote" if ask.is_pre_vote else "vote"
        return f"{sender} -> {ask.to.id}: {kind} epoch {ask.epoch} log {ask.last_epoch}/{ask.end_offset}"
    if isinstance(ask, TellBegin):
        return f"{sender} -> {ask.to.id}: begin epoch {ask.epoch}"
    line = ", ".join(str(successor.id) for successor in ask.successors)
    return f"{sender} -> {ask.to.id}: end epoch {ask.epoch}, next {line}"


def shown(peer: Peer) -> str:
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
        self._asks = list(self.network.asks)
        self._shown = {peer.voter.id: shown(peer) for peer in self.network.peers.values()}

    def run(self, command: str) -> Iterator[str]:
        name, *given = command.split()
        numbers = [int(each) for each in given]
        network = self.network
        if name == "time":
            network.pass_time(numbers[0])
        elif name in ("deliver", "lose"):
            found = [each for each in network.asks if [each[0], each[1].to.id] == numbers][-1]
            network.asks.remove(found)
            self._asks.remove(found)
            if name == "deliver":
                network.deliver(*found, loses_answer=False)
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
            peer.member.leader_gone(peer.member.epoch, network.now_ms)
        elif name == "append":
            network.append(peer)
        elif name == "restart":
            network.restart(peer)
        elif name == "resign":
            others = [each.voter for each in network.peers.values() if each is not peer]
            peer.member.resign([ReplicaKey(each.id, each.directory_id) for each in others], network.now_ms)
            network.work(peer)
        else:
            raise ValueError(name)

    def _changes(self) -> Iterator[str]:
        for peer in self.network.peers.values():
            now = shown(peer)
            if self._shown[peer.voter.id] != now:
                self._shown[peer.voter.id] = now
                yield now
        for each in self.network.asks[len(self._asks) :]:
            yield told(*each)
        self._asks = list(self.network.asks)


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
def test_a_quorum_says_what_its_transcript_says(path: Path) -> None:
    found = replayed(path.read_text())
    if os.environ.get("BARNABAS_REWRITE") == "1":
        path.write_text(found)
    assert path.read_text() == found
