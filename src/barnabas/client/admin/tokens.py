"""Delegation tokens: create, describe, renew and expire them.

In: a Cluster whose connections are authenticated, principals, periods. Out: tokens and expiry times. The HMAC
of a token is a password: whoever prints a `DelegationToken` by accident does not see it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from barnabas.client.admin.part import AdminPart
from barnabas.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from barnabas.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from barnabas.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from barnabas.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from barnabas.security.principal import Principal


@dataclass(frozen=True, slots=True)
class DelegationToken:
    token_id: str
    hmac: bytes = field(repr=False)
    owner: Principal
    requester: Principal
    renewers: tuple[Principal, ...]
    issue_ms: int
    expiry_ms: int
    max_ms: int


class TokenAdmin(AdminPart):
    async def create_token(
        self,
        renewers: Iterable[Principal] = (),
        *,
        owner: Principal | None = None,
        max_lifetime_ms: int = -1,
    ) -> DelegationToken:
        """A new token of the caller, or of `owner`; a negative lifetime is the broker's longest."""
        named = tuple(renewers)
        request = CreateDelegationTokenRequest(
            owner_principal_type=None if owner is None else owner.type,
            owner_principal_name=None if owner is None else owner.name,
            renewers=[
                CreateDelegationTokenRequest.CreatableRenewers(
                    principal_type=each.type, principal_name=each.name
                )
                for each in named
            ],
            max_lifetime_ms=max_lifetime_ms,
        )
        made = await self.ask(request, CreateDelegationTokenResponse)
        holder = Principal(made.principal_name, made.principal_type)
        requester = Principal(made.token_requester_principal_name, made.token_requester_principal_type)
        return DelegationToken(
            made.token_id,
            bytes(made.hmac),
            holder,
            requester if requester.name else holder,
            named,
            made.issue_timestamp_ms,
            made.expiry_timestamp_ms,
            made.max_timestamp_ms,
        )

    async def describe_tokens(self, owners: Sequence[Principal] | None = None) -> list[DelegationToken]:
        """The tokens of these owners that the caller may see; None: of all owners."""
        nested = DescribeDelegationTokenRequest.DescribeDelegationTokenOwner
        request = DescribeDelegationTokenRequest(
            owners=None
            if owners is None
            else [nested(principal_type=each.type, principal_name=each.name) for each in owners]
        )
        response = await self.ask(request, DescribeDelegationTokenResponse)
        return [
            DelegationToken(
                each.token_id,
                bytes(each.hmac),
                Principal(each.principal_name, each.principal_type),
                Principal(each.token_requester_principal_name, each.token_requester_principal_type),
                tuple(Principal(some.principal_name, some.principal_type) for some in each.renewers),
                each.issue_timestamp,
                each.expiry_timestamp,
                each.max_timestamp,
            )
            for each in response.tokens
        ]

    async def renew_token(self, hmac: bytes, period_ms: int = -1) -> int:
        """Let a token live longer. Returns its new expiry time; a negative period is the broker's default."""
        request = RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms)
        return (await self.ask(request, RenewDelegationTokenResponse)).expiry_timestamp_ms

    async def expire_token(self, hmac: bytes, period_ms: int = -1) -> int:
        """Let a token end after a period, or now if it is negative. Returns the time of its end."""
        request = ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)
        return (await self.ask(request, ExpireDelegationTokenResponse)).expiry_timestamp_ms
