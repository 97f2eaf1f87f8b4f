"""Delegation tokens: created, renewed, expired (KIP-48, KIP-373, KIP-900).

In: the request, the caller's principal, the image, the wall clock. Out: a record of the token, or of its
removal. A token is named by its HMAC, which nobody can make without `delegation.token.secret.key`.
Does not know: who may ask at all (brokers check), logins with a token.
"""

from __future__ import annotations

import hmac

from barnabas.controller.context import Context
from barnabas.controller.decision import Decision
from barnabas.metadata.security import DelegationToken
from barnabas.metadata.versions import DELEGATION_TOKENS
from barnabas.protocol import ErrorCode, uuid
from barnabas.protocol.log_records.metadata import DelegationTokenRecord, RemoveDelegationTokenRecord
from barnabas.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from barnabas.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from barnabas.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from barnabas.security.delegation_tokens import token_hmac
from barnabas.security.principal import USER, Principal


def create_token(
    context: Context, request: CreateDelegationTokenRequest
) -> Decision[CreateDelegationTokenResponse]:
    requester = context.principal
    owner = requester
    if request.owner_principal_name:
        owner = Principal(request.owner_principal_name, request.owner_principal_type or USER)
    response = CreateDelegationTokenResponse(
        principal_type=owner.type,
        principal_name=owner.name,
        token_requester_principal_type=requester.type,
        token_requester_principal_name=requester.name,
    )
    response.error_code = error = _switched_off(context)
    if not error and any(each.principal_type != USER for each in request.renewers):
        response.error_code = error = ErrorCode.INVALID_PRINCIPAL_TYPE
    if error:
        return Decision(response)
    settings, now_ms = context.settings, context.wall_ms
    lifetime_ms: int = settings["delegation.token.max.lifetime.ms"]
    if request.max_lifetime_ms > 0:
        lifetime_ms = min(lifetime_ms, request.max_lifetime_ms)
    response.issue_timestamp_ms = now_ms
    response.max_timestamp_ms = now_ms + lifetime_ms
    expiry_ms = now_ms + settings["delegation.token.expiry.time.ms"]
    response.expiry_timestamp_ms = min(response.max_timestamp_ms, expiry_ms)
    response.token_id = uuid.to_text(context.new_uuid())
    response.hmac = token_hmac(_secret(context), response.token_id)
    record = DelegationTokenRecord(
        owner=str(owner),
        requester=str(requester),
        renewers=[f"{each.principal_type}:{each.principal_name}" for each in request.renewers],
        issue_timestamp=now_ms,
        max_timestamp=response.max_timestamp_ms,
        expiration_timestamp=response.expiry_timestamp_ms,
        token_id=response.token_id,
    )
    return Decision(response, [record])


def renew_token(
    context: Context, request: RenewDelegationTokenRequest
) -> Decision[RenewDelegationTokenResponse]:
    error, token = _found(context, bytes(request.hmac))
    if token is None:
        return Decision(RenewDelegationTokenResponse(error_code=error))
    if is_expired(token, context.wall_ms):
        return Decision(RenewDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_EXPIRED))
    if not may_renew(token, context.principal):
        return Decision(RenewDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH))
    period_ms: int = context.settings["delegation.token.expiry.time.ms"]
    if request.renew_period_ms > 0:
        period_ms = min(period_ms, request.renew_period_ms)
    expiry_ms = min(token.max_timestamp, context.wall_ms + period_ms)
    return Decision(RenewDelegationTokenResponse(expiry_timestamp_ms=expiry_ms), [_changed(token, expiry_ms)])


def expire_token(
    context: Context, request: ExpireDelegationTokenRequest
) -> Decision[ExpireDelegationTokenResponse]:
    error, token = _found(context, bytes(request.hmac))
    if token is None:
        return Decision(ExpireDelegationTokenResponse(error_code=error))
    if not may_renew(token, context.principal):
        return Decision(ExpireDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH))
    now_ms = context.wall_ms
    if request.expiry_time_period_ms < 0:
        removal = RemoveDelegationTokenRecord(token_id=token.id)
        return Decision(ExpireDelegationTokenResponse(expiry_timestamp_ms=now_ms), [removal])
    if is_expired(token, now_ms):
        return Decision(ExpireDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_EXPIRED))
    expiry_ms = min(token.max_timestamp, now_ms + request.expiry_time_period_ms)
    return Decision(
        ExpireDelegationTokenResponse(expiry_timestamp_ms=expiry_ms), [_changed(token, expiry_ms)]
    )


def may_renew(token: DelegationToken, principal: Principal) -> bool:
    """Whether the principal is the token's owner, its requester or one of its renewers."""
    return str(principal) in (token.owner, token.requester, *token.renewers)


def _switched_off(context: Context) -> ErrorCode:
    if context.settings["delegation.token.secret.key"] is None:
        return ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    return ErrorCode.NONE if context.level >= DELEGATION_TOKENS else ErrorCode.UNSUPPORTED_VERSION


def _secret(context: Context) -> str:
    secret: str = context.settings["delegation.token.secret.key"].value
    return secret


def _found(context: Context, wanted: bytes) -> tuple[ErrorCode, DelegationToken | None]:
    """The token with this HMAC, or the error."""
    error = _switched_off(context)
    if error:
        return error, None
    secret = _secret(context)
    for token in context.image.security.tokens.values():
        if hmac.compare_digest(token_hmac(secret, token.id), wanted):
            return ErrorCode.NONE, token
    return ErrorCode.DELEGATION_TOKEN_NOT_FOUND, None


def is_expired(token: DelegationToken, now_ms: int) -> bool:
    return token.max_timestamp < now_ms or token.expiration_timestamp < now_ms


def _changed(token: DelegationToken, expiry_ms: int) -> DelegationTokenRecord:
    """A renewal is the token's record again."""
    return DelegationTokenRecord(
        owner=token.owner,
        requester=token.requester,
        renewers=list(token.renewers),
        issue_timestamp=token.issue_timestamp,
        max_timestamp=token.max_timestamp,
        expiration_timestamp=expiry_ms,
        token_id=token.id,
    )
