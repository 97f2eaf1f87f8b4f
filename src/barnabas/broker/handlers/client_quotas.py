"""AlterClientQuotas and DescribeClientQuotas: limits of users, client ids and addresses.

The controller decides on changes. The broker resolves host names first, since that may take time. An entity
whose host name does not resolve is refused; the others are passed on.
"""

from __future__ import annotations

import asyncio
import socket

from barnabas.broker.api import needs
from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.routes import handles
from barnabas.broker.handlers.forwarded import to_controller
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
)
from barnabas.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

IP = "ip"
EntryResult = AlterClientQuotasResponse.EntryData


@handles(DescribeClientQuotasRequest, "0-1", needs=needs.describe_cluster_configs)
def describe_client_quotas(
    request: DescribeClientQuotasRequest, context: RequestContext
) -> DescribeClientQuotasResponse:
    from barnabas.controller import quotas  # rarely needed

    try:
        return quotas.describe_client_quotas(context.broker.image.quotas, request)
    except KafkaError as error:
        return DescribeClientQuotasResponse(error_code=error.code, error_message=error.message, entries=None)


@handles(AlterClientQuotasRequest, "0-1", needs=needs.alter_cluster_configs, listeners="broker controller")
async def alter_client_quotas(
    request: AlterClientQuotasRequest, context: RequestContext
) -> AlterClientQuotasResponse:
    refused, known = [], []
    for entry in request.entries:
        parts = entry.entity
        host = parts[0].entity_name if len(parts) == 1 and parts[0].entity_type == IP else None
        if host and not await resolves(host):
            refused.append(
                EntryResult(
                    error_code=ErrorCode.INVALID_REQUEST,
                    error_message=f"{host} is not a valid IP or resolvable host.",
                    entity=[EntryResult.EntityData(entity_type=IP, entity_name=host)],
                )
            )
        else:
            known.append(entry)
    request.entries = known
    response: AlterClientQuotasResponse = await to_controller(request, context)
    response.entries += refused
    return response


async def resolves(host: str) -> bool:
    try:
        await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return False
    return True
