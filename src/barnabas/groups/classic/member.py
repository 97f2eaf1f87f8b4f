"""A member of a classic group: identity, protocols, assignment, waiting requests.

Does not know: its group.
"""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.groups.basics.deadlines import Timer
from barnabas.groups.basics.outcome import Token
from barnabas.groups.basics.shared_values import SharedValues
from barnabas.protocol.log_records.consumer_offsets import GroupMetadataValue
from barnabas.protocol.messages.join_group import JoinGroupRequest

Protocols = tuple[tuple[str, bytes], ...]
"""Names with their metadata, the preferred one first."""


class ClassicMember(Timer):
    """Its deadline is the end of its session."""

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "group_id",
        "instance_id",
        "is_new",
        "join_token",
        "join_version",
        "member_id",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
        "sync_token",
    )

    def __init__(
        self,
        member_id: str,
        instance_id: str | None,
        client: tuple[str, str],
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocols: Protocols,
    ) -> None:
        super().__init__()
        self.group_id = ""  # of the group it joined
        self.member_id = member_id
        self.instance_id = instance_id
        self.client_id, self.client_host = client
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocols = protocols
        self.assignment = b""
        self.is_new = False  # joined, and has not got the result of a rebalance yet
        self.join_token: Token | None = None
        self.join_version = 0  # of the waiting request
        self.sync_token: Token | None = None

    @property
    def is_static(self) -> bool:
        return self.instance_id is not None

    @property
    def is_alive_by_waiting(self) -> bool:
        """Whether it is alive because a request of it waits: then it sends no heartbeats. A new member may
        have disconnected unnoticed, so this does not protect it."""
        return not self.is_new and (self.join_token is not None or self.sync_token is not None)

    def metadata(self, protocol: str | None) -> bytes:
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")

    def vote(self, candidates: Iterable[str]) -> str:
        return next(name for name, _ in self.protocols if name in candidates)

    def record(self, protocol: str | None, assignment: bytes) -> GroupMetadataValue.MemberMetadata:
        return GroupMetadataValue.MemberMetadata(
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout=self.rebalance_timeout_ms,
            session_timeout=self.session_timeout_ms,
            subscription=self.metadata(protocol),
            assignment=assignment,
        )


def restored(
    record: GroupMetadataValue.MemberMetadata, protocol: str | None, shared: SharedValues
) -> ClassicMember:
    """A member as the log records it: with the one protocol that the group had chosen."""
    timeout_ms = record.rebalance_timeout if record.rebalance_timeout != -1 else record.session_timeout
    member = ClassicMember(
        record.member_id,
        record.group_instance_id,
        (shared.get(record.client_id), shared.get(record.client_host)),
        shared.get(timeout_ms),
        shared.get(record.session_timeout),
        shared.get(((protocol or "", bytes(record.subscription)),)),
    )
    member.assignment = bytes(record.assignment)
    return member


def protocols_of(request: JoinGroupRequest) -> Protocols:
    """The protocols of a request; of two with the same name the first counts."""
    found: dict[str, bytes] = {}
    for protocol in request.protocols:
        found.setdefault(protocol.name, bytes(protocol.metadata))
    return tuple(found.items())
