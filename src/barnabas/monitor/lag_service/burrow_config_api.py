"""The endpoints of Burrow's API that tell its configuration and change the level of its log.

In: `Watches`. Out: routes. Modules are told in Burrow's words: each cluster is a cluster module and a
consumer module, there is one storage and one evaluator module, and no notifier. Secrets are left out. Does
not know: groups.
"""

from __future__ import annotations

import logging
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from barnabas.monitor.lag_service.burrow_api import CLUSTER, refusal, respond
from barnabas.monitor.lag_service.cluster_watch import WatchSettings
from barnabas.monitor.lag_service.watches import Watches
from barnabas.services.errors import ApiError
from barnabas.services.json_bodies import read_object
from barnabas.services.routes import Need, ServiceRoute

DEFAULT = "default"
LEVELS = {
    "debug": logging.DEBUG,
    "trace": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "warn": logging.WARNING,
    "error": logging.ERROR,
    "fatal": logging.CRITICAL,
}
NAMES = {
    logging.DEBUG: "debug",
    logging.INFO: "info",
    logging.WARNING: "warn",
    logging.ERROR: "error",
    logging.CRITICAL: "fatal",
}

log = logging.getLogger("barnabas")


class BurrowConfigApi:
    def __init__(self, watches: Watches) -> None:
        self._watches = watches

    def routes(self) -> list[ServiceRoute]:
        def get(path: str, endpoint: Any) -> ServiceRoute:
            return ServiceRoute(path, endpoint, needs=Need.READ)

        return [
            get("/v3/config", self._main),
            get("/v3/config/{kind}", self._modules),
            get("/v3/config/{kind}/{cluster}", self._module),
            get(CLUSTER, self._cluster),
            get("/v3/admin/loglevel", self._level),
            ServiceRoute("/v3/admin/loglevel", self._set_level, needs=Need.ADMIN, methods=["POST"]),
        ]

    async def _main(self, request: Request) -> Response:
        empty = {"pidfile": "", "stdout-logfile": "", "access-control-allow-origin": ""}
        logging_part = {
            "filename": "",
            "max-size": 0,
            "max-backups": 0,
            "max-age": 0,
            "use-local-time": False,
            "use-compression": False,
            "level": level_name(),
        }
        zookeeper: dict[str, Any] = {"servers": [], "timeout": 0, "root-path": ""}
        address = "{}:{}".format(*request.scope["server"]) if request.scope.get("server") else ""
        body = {
            "general": empty,
            "logging": logging_part,
            "zookeeper": zookeeper,
            "httpserver": {DEFAULT: {"address": address, "tls": "", "timeout": 300}},
        }
        return respond(request, "main config returned", body)

    async def _modules(self, request: Request) -> Response:
        kind = request.path_params["kind"]
        names = {
            "storage": [DEFAULT],
            "evaluator": [DEFAULT],
            "cluster": sorted(self._watches.by_name),
            "consumer": sorted(self._watches.by_name),
            "notifier": [],
        }.get(kind)
        if names is None:
            raise ApiError(404, 404, "invalid request type")
        return respond(request, "module list returned", {"coordinator": kind, "modules": names})

    async def _module(self, request: Request) -> Response:
        kind, name = request.path_params["kind"], request.path_params["cluster"]
        watch = self._watches.by_name.get(name)
        module: dict[str, Any] | None = None
        if kind == "cluster":
            return await self._cluster(request)
        if kind == "consumer" and watch is not None:
            module = consumer_module(watch.settings)
        elif kind == "storage" and name == DEFAULT:
            module = storage_module(next(iter(self._watches.by_name.values())).settings)
        elif kind == "evaluator" and name == DEFAULT:
            module = {"class-name": "caching", "expire-cache": 0}
        elif kind not in ("storage", "evaluator", "consumer", "notifier"):
            raise ApiError(404, 404, "invalid request type")
        if module is None:
            return refusal(request, f"{kind} module not found")
        return respond(request, f"{kind} module detail returned", {"module": module})

    async def _cluster(self, request: Request) -> Response:
        watch = self._watches.by_name.get(request.path_params["cluster"])
        if watch is None:
            return refusal(request, "cluster module not found")
        settings = watch.settings
        module = {
            "class-name": "kafka",
            "servers": servers(settings),
            "client-profile": profile(settings),
            "topic-refresh": round(settings.topic_refresh_s),
            "offset-refresh": round(settings.offset_refresh_s),
        }
        return respond(request, "cluster module detail returned", {"module": module})

    async def _level(self, request: Request) -> Response:
        return respond(request, "log level returned", {"level": level_name()})

    async def _set_level(self, request: Request) -> Response:
        try:
            level = (await read_object(request)).get("level", "")
        except ApiError:
            return refusal(request, "could not decode message body", 400)
        found = LEVELS.get(level.lower()) if isinstance(level, str) else None
        if found is None:
            return refusal(request, "unknown log level", 404)
        log.setLevel(found)
        return respond(request, "set log level")


def level_name() -> str:
    return NAMES.get(log.getEffectiveLevel(), "info")


def servers(settings: WatchSettings) -> list[str]:
    return [str(address) for address in settings.bootstrap]


def profile(settings: WatchSettings) -> dict[str, Any]:
    has_tls, has_sasl = settings.security.tls is not None, bool(settings.security.mechanism)
    tls = {"name": settings.name, "noverify": False, "certfile": "", "keyfile": "", "cafile": ""}
    sasl = {"name": settings.name, "handshake-first": True, "username": ""}
    return {
        "name": settings.name,
        "client-id": settings.client_id,
        "kafka-version": "",
        "tls": tls if has_tls else None,
        "sasl": sasl if has_sasl else None,
    }


def storage_module(settings: WatchSettings) -> dict[str, Any]:
    rules = settings.rules
    return {
        "class-name": "inmemory",
        "intervals": rules.intervals,
        "min-distance": rules.min_distance_ms // 1000,
        "group-allowlist": rules.group_allowed.pattern if rules.group_allowed is not None else "",
        "expire-group": rules.expire_group_ms // 1000,
    }


def consumer_module(settings: WatchSettings) -> dict[str, Any]:
    allowed = settings.rules.group_allowed
    return {
        "class-name": "kafka",
        "cluster": settings.name,
        "servers": servers(settings),
        "group-allowlist": allowed.pattern if allowed is not None else "",
        "zookeeper-path": "",
        "zookeeper-timeout": 0,
        "client-profile": profile(settings),
        "offsets-topic": settings.offsets_topic,
        "start-latest": settings.from_latest,
    }


def burrow_error(error: ApiError) -> object:
    """The JSON of an error that no endpoint made: unknown paths, callers without rights, limits."""
    message = "invalid request type" if error.status == 404 else error.message
    return {"error": True, "message": message, "result": {}}
