"""Endpoints of the REST API, each a function of a worker and a request."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from barnabas.connect.api.bodies import check_name, config_of, json_object, new_connector, offsets_of
from barnabas.connect.api.sink_offsets import SinkGroups
from barnabas.connect.config import ConfigDef
from barnabas.connect.config.connector_settings import common_settings
from barnabas.connect.herder.errors import Refused
from barnabas.connect.herder.herder import Herder
from barnabas.connect.herder.loggers import LEVELS
from barnabas.connect.herder.states import Target
from barnabas.connect.herder.validation import key_body
from barnabas.connect.plugins import CONNECTORS
from barnabas.connect.plugins.errors import ConnectError
from barnabas.connect.plugins.known import APACHE_VERSION, Known
from barnabas.connect.plugins.versions import mismatch
from barnabas.services.errors import ApiError

Endpoint = Callable[[Request], Awaitable[Response]]
TASK = re.compile(r"[+-]?[0-9]{1,10}")


class Endpoints:
    """The API of one worker."""

    def __init__(self, herder: Herder, cluster_id: Callable[[], str], groups: SinkGroups) -> None:
        self.herder = herder
        self._cluster_id = cluster_id
        self._groups = groups

    def table(self) -> list[tuple[str, str, Endpoint]]:
        """Method, path and function of each endpoint."""
        one = "/connectors/{name}"
        return [
            ("GET", "/", self.root),
            ("GET", "/health", self.health),
            ("GET", "/connectors", self.connectors),
            ("POST", "/connectors", self.create),
            ("GET", one, self.info),
            ("DELETE", one, self.delete),
            ("GET", f"{one}/config", self.config),
            ("PUT", f"{one}/config", self.put_config),
            ("PATCH", f"{one}/config", self.patch_config),
            ("GET", f"{one}/status", self.status),
            ("GET", f"{one}/tasks", self.tasks),
            ("GET", f"{one}/tasks/{{task}}/status", self.task_status),
            ("POST", f"{one}/tasks/{{task}}/restart", self.restart_task),
            ("POST", f"{one}/restart", self.restart),
            ("PUT", f"{one}/pause", self.pause),
            ("PUT", f"{one}/resume", self.resume),
            ("PUT", f"{one}/stop", self.stop),
            ("GET", f"{one}/topics", self.topics),
            ("PUT", f"{one}/topics/reset", self.reset_topics),
            ("GET", f"{one}/offsets", self.offsets),
            ("PATCH", f"{one}/offsets", self.alter_offsets),
            ("DELETE", f"{one}/offsets", self.reset_offsets),
            ("GET", "/connector-plugins", self.plugins),
            ("GET", "/connector-plugins/{plugin}/config", self.plugin_config),
            ("PUT", "/connector-plugins/{plugin}/config/validate", self.validate),
        ]

    def admin_table(self) -> list[tuple[str, str, Endpoint]]:
        """The same of endpoints that `admin.listeners` moves to sockets of their own, or removes."""
        return [
            ("GET", "/admin/loggers", self.loggers),
            ("GET", "/admin/loggers/{logger}", self.logger),
            ("PUT", "/admin/loggers/{logger}", self.set_logger),
        ]

    # -- the worker --------------------------------------------------------------------------------

    async def root(self, request: Request) -> Response:
        return JSONResponse(
            {"version": APACHE_VERSION, "commit": "barnabas", "kafka_cluster_id": self._cluster_id()}
        )

    async def health(self, request: Request) -> Response:
        code, word, message = self.herder.health()
        return JSONResponse({"status": word, "message": message}, code)

    # -- connectors --------------------------------------------------------------------------------

    async def connectors(self, request: Request) -> Response:
        names = list(self.herder.state.connectors)
        wanted = request.query_params.getlist("expand")
        if not wanted:
            return JSONResponse(names)
        found: dict[str, dict[str, Any]] = {name: {} for name in names}
        for name, entry in found.items():
            for part, read in (("info", self.herder.info), ("status", self.herder.status)):
                if part in wanted:
                    try:
                        entry[part] = read(name)
                    except Refused:  # removed, or not started yet
                        continue
        return JSONResponse(found)

    async def create(self, request: Request) -> Response:
        name, config, target = new_connector(await json_object(request))
        await self.herder.put(name, config, is_new=True, target=target)
        return JSONResponse(self.herder.info(name), 201, headers={"location": place_of(request, name)})

    async def info(self, request: Request) -> Response:
        return JSONResponse(self.herder.info(name_of(request)))

    async def delete(self, request: Request) -> Response:
        await self.herder.delete(name_of(request))
        return Response(status_code=204)

    async def config(self, request: Request) -> Response:
        name = name_of(request)
        return JSONResponse(self.herder.shown_config(name, self.herder.config(name)))

    async def put_config(self, request: Request) -> Response:
        name = name_of(request)
        config = config_of(await json_object(request), "the configuration")
        check_name(name, config)
        is_new = await self.herder.put(name, config, is_new=False)
        headers = {"location": place_of(request, name)} if is_new else {}
        return JSONResponse(self.herder.info(name), 201 if is_new else 200, headers=headers)

    async def patch_config(self, request: Request) -> Response:
        name = name_of(request)
        await self.herder.patch(name, config_of(await json_object(request), "the configuration"))
        return JSONResponse(self.herder.info(name))

    async def status(self, request: Request) -> Response:
        return JSONResponse(self.herder.status(name_of(request)))

    async def tasks(self, request: Request) -> Response:
        return JSONResponse(self.herder.tasks(name_of(request)))

    async def task_status(self, request: Request) -> Response:
        return JSONResponse(self.herder.task_status(name_of(request), task_of(request)))

    async def restart_task(self, request: Request) -> Response:
        await self.herder.restart_here(name_of(request), task_of(request))
        return Response(status_code=204)

    async def restart(self, request: Request) -> Response:
        name = name_of(request)
        include, only = (
            request.query_params.get(each, "").lower() == "true" for each in ("includeTasks", "onlyFailed")
        )
        if not include and not only:
            await self.herder.restart_here(name, None)
            return Response(status_code=204)
        return JSONResponse(await self.herder.restart(name, include, only), 202)

    async def pause(self, request: Request) -> Response:
        await self.herder.set_target(name_of(request), Target.PAUSED)
        return Response(status_code=202)

    async def resume(self, request: Request) -> Response:
        await self.herder.set_target(name_of(request), Target.STARTED)
        return Response(status_code=202)

    async def stop(self, request: Request) -> Response:
        await self.herder.set_target(name_of(request), Target.STOPPED)
        return Response(status_code=204)

    # -- topics and offsets ------------------------------------------------------------------------

    async def topics(self, request: Request) -> Response:
        self._check_tracking("topic.tracking.enable", "Topic tracking is disabled.")
        name = name_of(request)
        return JSONResponse({name: {"topics": list(self.herder.topics.get(name, ()))}})

    async def reset_topics(self, request: Request) -> Response:
        self._check_tracking("topic.tracking.enable", "Topic tracking is disabled.")
        self._check_tracking("topic.tracking.allow.reset", "Topic tracking reset is disabled.")
        await self.herder.reset_topics(name_of(request))
        return Response(status_code=202)

    def _check_tracking(self, setting: str, message: str) -> None:
        if self.herder.worker.get(setting, "true").lower() == "false":
            raise ApiError(403, 403, message)

    async def offsets(self, request: Request) -> Response:
        name = name_of(request)
        config = self.herder.config(name)
        if self.herder.kind(name) == "sink":
            pairs = await self._groups.read(name, config)
        else:
            pairs = (await self.herder.offsets_of(name)).of(name)
        return JSONResponse({"offsets": [{"partition": each, "offset": offset} for each, offset in pairs]})

    async def alter_offsets(self, request: Request) -> Response:
        name = name_of(request)
        pairs = offsets_of(await json_object(request))
        return await self._change_offsets(name, pairs)

    async def reset_offsets(self, request: Request) -> Response:
        return await self._change_offsets(name_of(request), None)

    async def _change_offsets(self, name: str, pairs: list[tuple[Any, Any]] | None) -> Response:
        self.herder.config(name)
        if self.herder.kind(name) == "sink":
            message = await self._groups.change(self.herder, name, pairs)
        else:
            message = await self.herder.alter_offsets(name, pairs)
        return JSONResponse({"message": message})

    # -- plugins -----------------------------------------------------------------------------------

    async def plugins(self, request: Request) -> Response:
        everything = request.query_params.get("connectorsOnly", "true").lower() == "false"
        known = self.herder.plugins.list() if everything else self.herder.plugins.list(CONNECTORS)
        return JSONResponse(
            [{"class": each.name, "type": str(each.kind), "version": each.version} for each in known]
        )

    async def plugin_config(self, request: Request) -> Response:
        plugin = request.path_params["plugin"]
        for known in self.herder.plugins.list():
            if plugin in known.spellings():
                check_version(known, request.query_params.get("version"))
                try:
                    definition = known.load().CONFIG
                except ConnectError as error:
                    raise ApiError(500, 500, str(error)) from None
                common = common_settings(str(known.kind)) if known.kind in CONNECTORS else ConfigDef()
                found = [key_body(key) for key in (*definition, *common)]
                for each in found:
                    if each["name"] == "connector.plugin.version":
                        each["default_value"] = known.version
                return JSONResponse(found)
        raise ApiError(404, 404, f"Unknown plugin {plugin}.")

    async def validate(self, request: Request) -> Response:
        plugin = request.path_params["plugin"]
        config = config_of(await json_object(request), "the configuration")
        given = config.get("connector.class")
        if given is not None and not is_same_plugin(plugin, given):
            raise ApiError(400, 400, f"Included connector type {given} does not match request type {plugin}")
        return JSONResponse(self.herder.validated(self.herder.as_stored(config)).body())

    # -- loggers -----------------------------------------------------------------------------------

    async def loggers(self, request: Request) -> Response:
        return JSONResponse(self.herder.loggers.everything())

    async def logger(self, request: Request) -> Response:
        name = request.path_params["logger"]
        if not self.herder.loggers.knows(name):
            raise ApiError(404, 404, f"Logger {name} not found.")
        return JSONResponse(self.herder.loggers.shown(name))

    async def set_logger(self, request: Request) -> Response:
        name = request.path_params["logger"]
        level = (await json_object(request)).get("level")
        if level is None:
            raise ApiError(400, 400, "Desired 'level' parameter was not specified in request.")
        if str(level).upper() not in LEVELS:
            raise ApiError(404, 404, f"invalid log level '{level}'.")
        if request.query_params.get("scope", "worker").lower() == "cluster":
            await self.herder.write([(f"logger-cluster-{name}", {"level": str(level).upper()})])
            return Response(status_code=204)
        return JSONResponse(self.herder.loggers.set(name, str(level)))


def name_of(request: Request) -> str:
    return str(request.path_params["name"])


def place_of(request: Request, name: str) -> str:
    """The URL of a connector, at the address that the caller used."""
    return f"{str(request.base_url).rstrip('/')}/connectors/{quote(name, safe='')}"


def task_of(request: Request) -> int:
    """The number of a task. What is no number of 32 bits is no path at all."""
    text = str(request.path_params["task"])
    if not TASK.fullmatch(text) or not -(2**31) <= int(text) < 2**31:
        raise ApiError(404, 404, "HTTP 404 Not Found")
    return int(text)


def check_version(known: Known, wanted: str | None) -> None:
    try:
        problem = mismatch(known.name, known.version, wanted)
    except ValueError:
        problem = f"Invalid version specification: {wanted}"
    if problem is not None:
        raise ApiError(400, 400, problem)


def is_same_plugin(plugin: str, given: str) -> bool:
    return any(
        name.endswith(plugin) for name in (given, f"{given}Connector", given.removesuffix("Connector"))
    )
