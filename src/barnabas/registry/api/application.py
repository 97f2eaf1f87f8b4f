"""All endpoints of the registry as routes, and their description.

In: a registry. Out: routes for the frame: each endpoint, the same below `/contexts/{context}` where it has
subjects or schemas, `/openapi.json` and `/docs`.
Does not know: sockets, callers.
"""

from __future__ import annotations

from dataclasses import replace

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from barnabas.registry.api import (
    associations,
    compatibility,
    schemas,
    server,
    settings,
    subject_changes,
    subjects,
)
from barnabas.registry.api.call import as_json, bind
from barnabas.registry.api.components import SCHEMAS
from barnabas.registry.api.registry import RegistryApi
from barnabas.services.openapi import Operations, document
from barnabas.services.openapi_page import page
from barnabas.services.routes import Need, ServiceRoute

TITLE = "Schema Registry"
IN_CONTEXTS = (schemas, subjects, subject_changes, compatibility, settings)
EVERYWHERE = (*(each.operations for each in IN_CONTEXTS), server.contexts_operations)
ELSEWHERE = (server.operations, associations.operations)


def in_context(operations: Operations) -> Operations:
    """The same endpoints below a context."""
    declared = [
        replace(each, path=f"/contexts/{{context}}{each.path}", id=f"{each.id}_in_context")
        for each in operations.declared
    ]
    return Operations(f"{operations.tag} of a context", operations.path_types, declared)


PARTS = (*EVERYWHERE, *ELSEWHERE, *(in_context(each.operations) for each in IN_CONTEXTS))


def routes(api: RegistryApi) -> list[ServiceRoute]:
    bound = bind(api)
    found = [route for part in PARTS for route in part.routes(bound)]
    description = as_json(document(TITLE, api.settings.version or "1", PARTS, SCHEMAS))

    async def openapi(request: Request) -> Response:
        return Response(description, media_type="application/json")

    async def docs(request: Request) -> Response:
        return HTMLResponse(page(TITLE))

    return [
        *found,
        ServiceRoute("/openapi.json", openapi, needs=Need.READ),
        ServiceRoute("/docs", docs, needs=Need.READ),
    ]
