"""ApiVersions: which APIs, versions and features this node serves; every client's first request."""

from __future__ import annotations

import re

from barnabas.broker.api import routes
from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.needs import NOTHING
from barnabas.broker.api.routes import handles
from barnabas.metadata import versions
from barnabas.protocol import ApiKey, ErrorCode
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

# Clients that see these APIs send metrics. They are announced only where a receiver is configured.
TELEMETRY = (ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY)
SOFTWARE_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def unsupported(_: ApiVersionsRequest, context: RequestContext) -> ApiVersionsResponse:
    """Respond to an unknown version (KIP-511): an error, and the versions of this API to use instead."""
    served = [served for served in served_apis(context) if served.api_key == ApiVersionsRequest.schema.key]
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=served)


@handles(ApiVersionsRequest, "0-4", needs=NOTHING, listeners="broker controller", fallback=unsupported)
def api_versions(request: ApiVersionsRequest, context: RequestContext) -> ApiVersionsResponse:
    if context.version >= 3:
        names = request.client_software_name, request.client_software_version
        if not all(SOFTWARE_NAME.fullmatch(name) for name in names):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        context.software_name, context.software_version = names
    return announce(context)


def served_apis(context: RequestContext) -> list[ApiVersionsResponse.ApiVersion]:
    serves_unstable = context.broker.settings["unstable.api.versions.enable"]
    return [
        ApiVersionsResponse.ApiVersion(
            api_key=endpoint.key,
            min_version=endpoint.announced_min,
            max_version=endpoint.last_version(serves_unstable),
        )
        for endpoint in routes.endpoints(context.channel.listener.kind)
        if endpoint.key not in TELEMETRY or context.broker.client_metrics.is_enabled
    ]


def announce(context: RequestContext) -> ApiVersionsResponse:
    image = context.broker.image
    finalized = dict(image.features.finalized)
    if context.broker.quorum.kraft_version > 0:  # the quorum has it, not the image
        finalized[versions.KRAFT_VERSION] = context.broker.quorum.kraft_version
    return ApiVersionsResponse(
        api_keys=served_apis(context),
        supported_features=[
            ApiVersionsResponse.SupportedFeatureKey(name=name, min_version=lowest, max_version=highest)
            for name, (lowest, highest) in versions.supported_features().items()
            # Before version 4, clients reject a response with a lowest level of 0 as malformed (KIP-1022).
            if lowest > 0 or context.version >= 4
        ],
        finalized_features_epoch=image.provenance.offset,
        finalized_features=[
            ApiVersionsResponse.FinalizedFeatureKey(
                name=name, min_version_level=level, max_version_level=level
            )
            for name, level in finalized.items()
        ],
    )
