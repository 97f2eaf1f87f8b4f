"""With messages lost, late or repeated, and with restarts, an epoch has one leader and no committed entry is
lost. When faults stop, a leader is elected. Planted bugs are detected.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.raft import member
from barnabas.raft.leader import Leader
from barnabas.raft.member import Member
from barnabas.raft.messages import VoteReceived
from raft.network import Network


@settings(max_examples=150, deadline=None)
@given(size=st.sampled_from([1, 2, 3, 3, 5]), seed=st.integers(0, 2**32))
def test_an_epoch_has_one_leader_and_committed_entries_stay(size: int, seed: int) -> None:
    network = Network(size, seed, restart_rate=(0.01, 0.1)[seed % 2])
    network.run(400)


@settings(max_examples=60, deadline=None)
@given(size=st.sampled_from([1, 3, 5]), seed=st.integers(0, 2**32))
def test_when_faults_stop_one_member_leads_and_all_follow_it(size: int, seed: int) -> None:
    network = Network(size, seed)
    network.run(300)
    for _ in range(200):
        network.run(50, faults=False)
        if network.has_leader():
            return
    roles = {peer.voter.id: peer.member.role for peer in network.peers.values()}
    pytest.fail(f"nobody leads: {roles}")


def test_histories_are_long_enough_to_have_elections_and_commits() -> None:
    networks = [Network(3, seed) for seed in range(20)]
    for network in networks:
        network.run(1500)
    assert sum(len(network.leaders) for network in networks) > 100  # elections
    assert sum(len(network.committed) for network in networks) > 300


def vote_for_short_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member, "is_up_to_date", lambda *ends: True)


def vote_for_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    def generous(self: Member, received: VoteReceived) -> bool:
        return member.is_up_to_date(
            received.last_epoch, received.end_offset, self._log.last_epoch, self._log.end_offset
        )

    monkeypatch.setattr(Member, "_grants", generous)


def commit_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def hasty(self: Leader) -> bool:
        end_offset = max(progress.end_offset for progress in self._progress.values())
        has_moved = end_offset > self.high_watermark
        self.high_watermark = end_offset
        return has_moved

    monkeypatch.setattr(Leader, "_advance", hasty)


@pytest.mark.parametrize("plant", [vote_for_short_logs, vote_for_everybody, commit_by_one])
def test_planted_bugs_are_detected(plant: object, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)  # type: ignore[operator]
    for seed in range(300):
        try:
            Network(3 + 2 * (seed % 2), seed, restart_rate=0.1).run(600)
        except AssertionError:
            return
    pytest.fail("300 histories did not show it")
