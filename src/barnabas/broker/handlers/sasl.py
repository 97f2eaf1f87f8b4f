"""SaslHandshake and SaslAuthenticate on a connection that is past its login, or that needs none.

The login itself is not here: until it is complete, `wire.login` serves its requests. Afterwards a
SaslHandshake begins a re-authentication (KIP-368) if the session has a limit. All else gets
ILLEGAL_SASL_STATE.
"""

from __future__ import annotations

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.needs import NOTHING
from barnabas.broker.api.routes import handles
from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

BOTH = "broker controller"


@handles(SaslHandshakeRequest, "0-1", needs=NOTHING, listeners=BOTH)
def sasl_handshake(request: SaslHandshakeRequest, context: RequestContext) -> SaslHandshakeResponse | None:
    channel = context.channel
    login = channel.login
    if login is None or not login.may_begin_again():
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    login.begin_again()
    route = channel.route
    assert route is not None  # of this request
    return login.handshake(request, route)


@handles(SaslAuthenticateRequest, "0-2", needs=NOTHING, listeners=BOTH)
def sasl_authenticate(request: SaslAuthenticateRequest, context: RequestContext) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    )
