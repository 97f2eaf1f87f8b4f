"""The voters of the quorum, their addresses, and the offset of the record that named them.

In: `controller.quorum.voters`, or KRaftVersionRecord and VotersRecord from the log and snapshots (KIP-853).
Out: the set in force, and the records that describe it. A set from the configuration has no directory ids.
Does not know: who is alive, elections.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.protocol import NULL_UUID, Message
from barnabas.protocol.messages.kraft_version_record import KRaftVersionRecord
from barnabas.protocol.messages.voters_record import VotersRecord

KRAFT_VERSION_MAX = 1
BOOTSTRAP_OFFSET = -1  # of voters from formatting or the configuration, which are not in the log


class VoterEndpoint(NamedTuple):
    name: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Voter:
    id: int
    directory_id: bytes = NULL_UUID  # unknown for static voters
    endpoints: tuple[VoterEndpoint, ...] = ()
    kraft_versions: tuple[int, int] = (0, KRAFT_VERSION_MAX)


@dataclass(frozen=True, slots=True)
class VoterSet:
    voters: Mapping[int, Voter] = field(default_factory=dict)

    @classmethod
    def of(cls, voters: Iterable[Voter]) -> VoterSet:
        return cls({voter.id: voter for voter in voters})

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(self.voters)

    @property
    def majority(self) -> int:
        return len(self.voters) // 2 + 1

    def is_voter(self, node_id: int, directory_id: bytes) -> bool:
        voter = self.voters.get(node_id)
        return voter is not None and voter.directory_id in (NULL_UUID, directory_id)

    def is_sole(self, node_id: int, directory_id: bytes) -> bool:
        return len(self.voters) == 1 and self.is_voter(node_id, directory_id)

    def with_voter(self, voter: Voter) -> VoterSet:
        return VoterSet({**self.voters, voter.id: voter})

    def to_record(self) -> VotersRecord:
        return VotersRecord(
            version=0,
            voters=[
                VotersRecord.Voter(
                    voter_id=voter.id,
                    voter_directory_id=voter.directory_id,
                    endpoints=[
                        VotersRecord.Voter.Endpoint(name=each.name, host=each.host, port=each.port)
                        for each in voter.endpoints
                    ],
                    kraft_version_feature=VotersRecord.Voter.KRaftVersionFeature(
                        min_supported_version=voter.kraft_versions[0],
                        max_supported_version=voter.kraft_versions[1],
                    ),
                )
                for voter in self.voters.values()
            ],
        )


@dataclass(frozen=True, slots=True)
class Membership:
    """The kraft.version and voters in force, and the offset of the record that named the voters."""

    kraft_version: int = 0
    voters: VoterSet = VoterSet()
    offset: int = BOOTSTRAP_OFFSET

    def replay(self, message: Message, offset: int) -> Membership:
        """The membership after a control record. Records of other types change nothing."""
        if isinstance(message, KRaftVersionRecord):
            return Membership(message.kraft_version, self.voters, self.offset)
        if isinstance(message, VotersRecord):
            return Membership(self.kraft_version, _voter_set(message), offset)
        return self

    def control_records(self) -> list[Message]:
        """The records of the quorum in a snapshot; none while voters are static."""
        if self.kraft_version == 0:
            return []
        version = KRaftVersionRecord(version=0, kraft_version=self.kraft_version)
        return [version, self.voters.to_record()]


def _voter_set(record: VotersRecord) -> VoterSet:
    return VoterSet.of(
        Voter(
            id=voter.voter_id,
            directory_id=voter.voter_directory_id,
            endpoints=tuple(VoterEndpoint(each.name, each.host, each.port) for each in voter.endpoints),
            kraft_versions=(
                voter.kraft_version_feature.min_supported_version,
                voter.kraft_version_feature.max_supported_version,
            ),
        )
        for voter in record.voters
    )
