"""Access control and credentials: ACLs, SCRAM credentials, delegation tokens.

In: AccessControlEntry, RemoveAccessControlEntry, UserScramCredential, DelegationToken records and their
removals. Out: maps by id, by (user, mechanism), by token id.
Does not know: matching of ACLs, authentication exchanges, token secrets (derived from the cluster's secret
key).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.metadata.changes import MapChanges
from barnabas.protocol.log_records.metadata import (
    AccessControlEntryRecord,
    DelegationTokenRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)


class AccessControlEntry(NamedTuple):
    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int


class ScramUser(NamedTuple):
    name: str
    mechanism: int  # 1 SCRAM-SHA-256, 2 SCRAM-SHA-512


class ScramCredential(NamedTuple):
    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int


@dataclass(frozen=True, slots=True)
class DelegationToken:
    id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_timestamp: int
    max_timestamp: int
    expiration_timestamp: int


@dataclass(frozen=True, slots=True)
class SecurityImage:
    acls: Mapping[bytes, AccessControlEntry] = field(default_factory=dict)
    scram: Mapping[ScramUser, ScramCredential] = field(default_factory=dict)
    tokens: Mapping[str, DelegationToken] = field(default_factory=dict)


class SecurityDelta:
    __slots__ = ("acls", "image", "scram", "tokens")

    def __init__(self, image: SecurityImage) -> None:
        self.image = image
        self.acls: MapChanges[bytes, AccessControlEntry] = MapChanges(image.acls)
        self.scram: MapChanges[ScramUser, ScramCredential] = MapChanges(image.scram)
        self.tokens: MapChanges[str, DelegationToken] = MapChanges(image.tokens)

    def replay_acl(self, record: AccessControlEntryRecord) -> None:
        entry = AccessControlEntry(
            record.resource_type,
            record.resource_name,
            record.pattern_type,
            record.principal,
            record.host,
            record.operation,
            record.permission_type,
        )
        self.acls.set(record.id, entry)

    def replay_remove_acl(self, record: RemoveAccessControlEntryRecord) -> None:
        self.acls.remove(record.id)

    def replay_scram(self, record: UserScramCredentialRecord) -> None:
        credential = ScramCredential(record.salt, record.stored_key, record.server_key, record.iterations)
        self.scram.set(ScramUser(record.name, record.mechanism), credential)

    def replay_remove_scram(self, record: RemoveUserScramCredentialRecord) -> None:
        self.scram.remove(ScramUser(record.name, record.mechanism))

    def replay_token(self, record: DelegationTokenRecord) -> None:
        token = DelegationToken(
            record.token_id,
            record.owner,
            record.requester,
            tuple(record.renewers),
            record.issue_timestamp,
            record.max_timestamp,
            record.expiration_timestamp,
        )
        self.tokens.set(record.token_id, token)

    def replay_remove_token(self, record: RemoveDelegationTokenRecord) -> None:
        self.tokens.remove(record.token_id)

    def apply(self) -> SecurityImage:
        return SecurityImage(self.acls.apply(), self.scram.apply(), self.tokens.apply())
