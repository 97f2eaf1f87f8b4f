"""POST /ksql: statements that are no SELECT. POST /ksql/terminate: the end of the whole cluster."""

from __future__ import annotations

import re

from starlette.requests import Request
from starlette.responses import Response

from barnabas.services.errors import ApiError
from barnabas.services.exchange import exchange_of
from barnabas.sql.server.commands.statuses import Status
from barnabas.sql.server.rest.bodies import asked, body_of, json_response
from barnabas.sql.server.statements.changing import terminate_cluster
from barnabas.sql.server.statements.errors import COMMAND_BEHIND, NOT_FOUND, bad_request
from barnabas.sql.server.statements.request import run_request
from barnabas.sql.server.statements.session import Server, Session


class StatementEndpoints:
    def __init__(self, server: Server) -> None:
        self._server = server

    async def run(self, request: Request) -> Response:
        given = await asked(request)
        await self.wait_for(given.sequence_number)
        extend = exchange_of(request.scope).extend
        entities = await run_request(given.session(self._server), given.text, extend)
        return json_response(entities, request)

    async def wait_for(self, number: int | None) -> None:
        """Wait until the command of this number is carried out here."""
        if number is None or number < 0:
            return
        server = self._server
        if not await server.runner.statuses.wait(number, server.settings.response_timeout_s):
            raise ApiError(
                503,
                COMMAND_BEHIND,
                "Timed out while waiting for a previous command to execute. "
                f"Command sequence number: {number}",
            )

    async def terminate(self, request: Request) -> Response:
        names = (await body_of(request)).get("deleteTopicList", [])
        if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
            raise bad_request('"deleteTopicList" must be an array of texts')
        for each in names:
            try:
                re.compile(each)
            except re.error as error:
                raise bad_request(f"Invalid pattern: {each}: {error}") from None
        return json_response(await terminate_cluster(Session(self._server), names), request)

    async def statuses(self, request: Request) -> Response:
        found = {name: str(each.state) for name, each in self._server.runner.statuses.by_id.items()}
        return json_response({"commandStatuses": found}, request)

    async def status(self, request: Request) -> Response:
        given = request.path_params
        kind, name, action = given["entity"], given["name"], given["action"]
        known = self._server.runner.statuses.by_id
        found: Status | None = None
        for text in (f"{kind}/{name}/{action}", f"{kind}/`{name}`/{action}"):
            found = found or known.get(text)
        if found is None:
            raise ApiError(404, NOT_FOUND, "Command not found")
        return json_response(found.to_json(), request)
