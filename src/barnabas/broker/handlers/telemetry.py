"""GetTelemetrySubscriptions and PushTelemetry: clients push the metrics of their subscriptions (KIP-714)."""

from __future__ import annotations

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.needs import NOTHING
from barnabas.broker.api.routes import handles
from barnabas.protocol import KafkaError
from barnabas.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from barnabas.protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse


@handles(GetTelemetrySubscriptionsRequest, "0-0", needs=NOTHING)
def get_telemetry_subscriptions(
    request: GetTelemetrySubscriptionsRequest, context: RequestContext
) -> GetTelemetrySubscriptionsResponse:
    try:
        return context.broker.client_metrics.telemetry().subscribe(request.client_instance_id, context)
    except KafkaError as error:
        return GetTelemetrySubscriptionsResponse(error_code=error.code)


@handles(PushTelemetryRequest, "0-0", needs=NOTHING)
async def push_telemetry(request: PushTelemetryRequest, context: RequestContext) -> PushTelemetryResponse:
    try:
        await context.broker.client_metrics.telemetry().push(request, context)
    except KafkaError as error:
        return PushTelemetryResponse(error_code=error.code)
    return PushTelemetryResponse()
