"""Endpoints about the server: contexts, ids, versions, and the root."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from barnabas.registry.api.call import Call
from barnabas.registry.api.components import PAGE, TYPES, WRITE_FAILURES, failures
from barnabas.registry.state import lookups
from barnabas.registry.state.commands import DeleteContext
from barnabas.services.openapi import Operations, Parameter
from barnabas.services.routes import Need

operations = Operations("Server")
contexts_operations = Operations("Contexts")


@operations.declare("GET", "/", "Says that the server is there", responses={200: "object"}, **TYPES)
async def root(call: Call) -> dict[str, Any]:
    return {}


@operations.declare(
    "POST",
    "/",
    "Says that the server is there",
    responses={200: "object"},
    request={"type": "object", "additionalProperties": {"type": "string"}},
    request_required=False,
    needs=Need.READ,
    **TYPES,
)
async def post_root(call: Call) -> dict[str, Any]:
    if await call.request.body():
        await call.body()
    return {}


@contexts_operations.declare(
    "GET",
    "/contexts",
    "Names of contexts",
    responses={200: ["string"]},
    query=(Parameter("contextPrefix", text="The beginning of the names"), *PAGE),
    errors=failures(50001),
    **TYPES,
)
async def contexts(call: Call) -> list[str]:
    found = lookups.contexts(call.api.state, call.text("contextPrefix") or "")
    return call.page().of(found, call.api.settings.subject_limit)


@contexts_operations.declare(
    "DELETE",
    "/contexts/{context}",
    "Forget a context that holds no subjects",
    responses={204: None},
    errors=(*failures(42211), *WRITE_FAILURES),
    needs=Need.ADMIN,
    **TYPES,
)
async def delete_context(call: Call) -> Response:
    reply = await call.api.submit(call.request, DeleteContext(call.context))
    return reply if isinstance(reply, Response) else Response(status_code=204)


@operations.declare(
    "GET", "/v1/metadata/id", "Ids of the clusters", responses={200: "ServerClusterId"}, **TYPES
)
async def cluster_ids(call: Call) -> dict[str, Any]:
    settings = call.api.settings
    clusters = {"kafka-cluster": settings.cluster_id, "schema-registry-cluster": settings.group_id}
    return {"scope": {"path": [], "clusters": clusters}}


@operations.declare(
    "GET", "/v1/metadata/version", "The server's version", responses={200: "ServerVersion"}, **TYPES
)
async def server_version(call: Call) -> dict[str, Any]:
    return {"version": call.api.settings.version, "commitId": ""}


@operations.declare(
    "GET", "/v1/metadata/deployment", "How the server is deployed", responses={200: "Deployment"}, **TYPES
)
async def deployment(call: Call) -> dict[str, Any]:
    return {"attributes": ["barnabas"]}
