"""Endpoints under /compatibility: could this schema be registered?"""

from __future__ import annotations

from typing import Any

from barnabas.registry.api.bodies import schema_request
from barnabas.registry.api.call import Call
from barnabas.registry.api.components import NO_BODY, NORMALIZE, TYPES, failures
from barnabas.registry.state.checking import incompatibilities
from barnabas.services.errors import ApiError
from barnabas.services.openapi import Operations, Parameter
from barnabas.services.routes import Need

operations = Operations("Compatibility")
VERBOSE = Parameter("verbose", "boolean", "Say what is incompatible")
INVALID_SCHEMA = 42201


@operations.declare(
    "POST",
    "/compatibility/subjects/{subject}/versions/{version}",
    "Compare a schema with one version",
    responses={200: "CompatibilityCheckResponse"},
    query=(NORMALIZE, VERBOSE),
    request="RegisterSchemaRequest",
    errors=(*NO_BODY, *failures(40402, 42201, 42202, 42208, 42209, 50001)),
    needs=Need.READ,
    **TYPES,
)
async def compatibility_with_version(call: Call) -> dict[str, Any]:
    return await compared(call, call.version())


@operations.declare(
    "POST",
    "/compatibility/subjects/{subject}/versions",
    "Compare a schema with the versions that registering would look at",
    responses={200: "CompatibilityCheckResponse"},
    query=(NORMALIZE, VERBOSE),
    request="RegisterSchemaRequest",
    errors=(*NO_BODY, *failures(42201, 42208, 42209, 50001)),
    needs=Need.READ,
    **TYPES,
)
async def compatibility_with_all(call: Call) -> dict[str, Any]:
    return await compared(call, None)


async def compared(call: Call, number: int | None) -> dict[str, Any]:
    api, is_verbose = call.api, call.flag("verbose")
    request = schema_request(await call.body(), api.settings.schema_bytes_max)
    try:
        messages = await api.work(
            incompatibilities,
            call.subject(),
            request,
            number,
            api.state,
            api.reader,
            normalize=call.flag("normalize"),
        )
    except ApiError as error:
        if error.code != INVALID_SCHEMA or not is_verbose:
            raise
        messages = [error.message]
    found: dict[str, Any] = {"is_compatible": not messages}
    return {**found, "messages": messages} if messages and is_verbose else found
