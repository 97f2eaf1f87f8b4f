"""Delegation tokens: Create, Renew, Expire and Describe (KIP-48, KIP-373).

The controller decides on changes. A broker refuses callers that proved nothing (PLAINTEXT, TLS without a
certificate) or that logged in with a token. Any node responds to DescribeDelegationToken from its image, with
the HMACs, which it derives from `delegation.token.secret.key`.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.needs import NOTHING, Instead, Need
from barnabas.broker.api.routes import handles
from barnabas.broker.handlers.envelope import ForwardedChannel
from barnabas.broker.handlers.forwarded import to_controller
from barnabas.controller.delegation_tokens import may_renew
from barnabas.metadata.security import DelegationToken
from barnabas.metadata.steps import Steps
from barnabas.protocol import ErrorCode, Message
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
from barnabas.security.acls.vocabulary import Operation, ResourceType
from barnabas.security.delegation_tokens import token_hmac
from barnabas.security.principal import ANONYMOUS, USER, Principal, parse_principal

BOTH = "broker controller"
NO_TIME = -1
REQUESTER_SINCE = 3  # responses tell who asked for a token (KIP-373)
USERS, TOKENS = ResourceType.USER, ResourceType.DELEGATION_TOKEN
# Nobody needs a right for tokens of its own.
CREATE_FOR_OTHERS = Need(Operation.CREATE_TOKENS, USERS).asked_by_handler()
DESCRIBE_OTHERS = Need(Operation.DESCRIBE, TOKENS).or_(Instead.OWNER_DESCRIBE_TOKENS).left_out()
NOT_ALLOWED = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
Described = DescribeDelegationTokenResponse.DescribedDelegationToken
Renewer = Described.DescribedDelegationTokenRenewer


def may_ask(context: RequestContext) -> bool:
    """Whether the caller proved who it is, and not by a token. The broker has asked before the controller."""
    if context.principal.is_token:
        return False
    if isinstance(context.channel, ForwardedChannel):
        return True
    listener = context.channel.listener
    protocol = listener.endpoint.security_protocol
    return protocol != "PLAINTEXT" and (protocol != "SSL" or context.principal != ANONYMOUS)


@handles(CreateDelegationTokenRequest, "1-3", needs=CREATE_FOR_OTHERS, listeners=BOTH)
def create_token(
    request: CreateDelegationTokenRequest, context: RequestContext
) -> Message | Awaitable[Message]:
    requester = context.principal
    owner = requester
    if request.owner_principal_name:
        owner = Principal(request.owner_principal_name, request.owner_principal_type or USER)
    error = ErrorCode.NONE
    if not may_ask(context):
        error = NOT_ALLOWED
    elif owner != requester and not context.may(Operation.CREATE_TOKENS, USERS, str(owner)):
        error = ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    elif any(each.principal_type != USER for each in request.renewers):
        error = ErrorCode.INVALID_PRINCIPAL_TYPE
    if not error:
        return created(request, context)
    refused = CreateDelegationTokenResponse(
        error_code=error,
        principal_type=owner.type,
        principal_name=owner.name,
        issue_timestamp_ms=NO_TIME,
        expiry_timestamp_ms=NO_TIME,
        max_timestamp_ms=NO_TIME,
    )
    if context.version >= REQUESTER_SINCE:
        refused.token_requester_principal_type = requester.type
        refused.token_requester_principal_name = requester.name
    return refused


async def created(request: CreateDelegationTokenRequest, context: RequestContext) -> Message:
    version = context.version
    response: Any = await to_controller(request, context)
    if version < REQUESTER_SINCE:
        response.token_requester_principal_type = response.token_requester_principal_name = ""
    return response  # type: ignore[no-any-return]


@handles(RenewDelegationTokenRequest, "1-2", needs=NOTHING, listeners=BOTH)
def renew_token(
    request: RenewDelegationTokenRequest, context: RequestContext
) -> Message | Awaitable[Message]:
    if not may_ask(context):
        return RenewDelegationTokenResponse(error_code=NOT_ALLOWED, expiry_timestamp_ms=NO_TIME)
    return to_controller(request, context)


@handles(ExpireDelegationTokenRequest, "1-2", needs=NOTHING, listeners=BOTH)
def expire_token(
    request: ExpireDelegationTokenRequest, context: RequestContext
) -> Message | Awaitable[Message]:
    if not may_ask(context):
        return ExpireDelegationTokenResponse(error_code=NOT_ALLOWED, expiry_timestamp_ms=NO_TIME)
    return to_controller(request, context)


@handles(DescribeDelegationTokenRequest, "1-3", needs=DESCRIBE_OTHERS, listeners=BOTH)
def describe_tokens(
    request: DescribeDelegationTokenRequest, context: RequestContext
) -> DescribeDelegationTokenResponse | Awaitable[DescribeDelegationTokenResponse]:
    if not may_ask(context):
        return DescribeDelegationTokenResponse(error_code=NOT_ALLOWED)
    secret: Any = context.broker.settings["delegation.token.secret.key"]
    if secret is None:
        return DescribeDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    return context.broker.pieces.run(find_tokens(request, secret.value, context))


def find_tokens(
    request: DescribeDelegationTokenRequest, secret: str, context: RequestContext
) -> Steps[DescribeDelegationTokenResponse]:
    """The tokens of the owners that the request names, or all, as far as the caller may see them."""
    owners: set[str] | None = None
    if request.owners is not None:
        owners = set()
        for each in request.owners:
            owners.add(str(Principal(each.principal_name, each.principal_type)))
            yield
    found = []
    for token in list(context.broker.image.security.tokens.values()):
        parties = (token.owner, token.requester, *token.renewers)
        is_asked_for = owners is None or not owners.isdisjoint(parties)
        if is_asked_for and may_see(token, context):
            found.append(described(token, secret, context.version))
        yield
    return DescribeDelegationTokenResponse(tokens=found)


def may_see(token: DelegationToken, context: RequestContext) -> bool:
    """Whether the caller may describe a token: its own, or by a right on the token or on its owner."""
    rights = context.rights
    return (
        rights is None
        or may_renew(token, context.principal)
        or rights.allow_quietly(Operation.DESCRIBE, TOKENS, token.id)
        or rights.allow_quietly(Operation.DESCRIBE_TOKENS, USERS, token.owner)
    )


def described(token: DelegationToken, secret: str, version: int) -> Described:
    owner = parse_principal(token.owner)
    renewers = [parse_principal(each) for each in token.renewers]
    shown = Described(
        principal_type=owner.type,
        principal_name=owner.name,
        issue_timestamp=token.issue_timestamp,
        expiry_timestamp=token.expiration_timestamp,
        max_timestamp=token.max_timestamp,
        token_id=token.id,
        hmac=token_hmac(secret, token.id),
        renewers=[Renewer(principal_type=each.type, principal_name=each.name) for each in renewers],
    )
    if version >= REQUESTER_SINCE:
        requester = parse_principal(token.requester)
        shown.token_requester_principal_type = requester.type
        shown.token_requester_principal_name = requester.name
    return shown
