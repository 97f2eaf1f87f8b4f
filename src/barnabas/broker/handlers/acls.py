"""CreateAcls, DeleteAcls and DescribeAcls: the controller decides on changes; this node's image is described.

Versions 1-3 of all three, on both kinds of listeners. Without an authorizer the responses say
SECURITY_DISABLED. A field with the code 0 closes the connection, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.needs import alter_cluster, describe_cluster
from barnabas.broker.api.routes import handles
from barnabas.broker.handlers.forwarded import BOTH, to_controller
from barnabas.protocol import ApiKey, ErrorCode, KafkaError, Message, ProtocolError
from barnabas.protocol.apis import response_class

NO_AUTHORIZER = KafkaError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")


@handles(ApiKey.CREATE_ACLS, "1-3", needs=alter_cluster, listeners=BOTH)
def create_acls(request: Any, context: RequestContext) -> Message | Awaitable[Message]:
    return change_acls(request, context)


@handles(ApiKey.DELETE_ACLS, "1-3", needs=alter_cluster, listeners=BOTH)
def delete_acls(request: Any, context: RequestContext) -> Message | Awaitable[Message]:
    return change_acls(request, context)


def change_acls(request: Any, context: RequestContext) -> Message | Awaitable[Message]:
    from barnabas.controller.acls import refused_acls

    if context.broker.access is None:
        return refused_acls(request, NO_AUTHORIZER)
    check_codes(request)
    return to_controller(request, context)


@handles(ApiKey.DESCRIBE_ACLS, "1-3", needs=describe_cluster, listeners=BOTH)
def describe_acls(request: Any, context: RequestContext) -> Message | Awaitable[Message]:
    if context.broker.access is None:
        response: Any = response_class(ApiKey.DESCRIBE_ACLS)
        return response(  # type: ignore[no-any-return]
            error_code=NO_AUTHORIZER.code, error_message="No Authorizer is configured on the broker"
        )
    from barnabas.controller import acls  # rarely needed

    check_codes(request)
    return context.broker.pieces.run(acls.describe_acls(context.broker.image.security, request))


def check_codes(request: Any) -> None:
    from barnabas.controller.acls import unknown_fields

    for name in unknown_fields(request):
        raise ProtocolError(name, "0 is no code that an ACL or a filter may have")
