"""Workers as services, made from Kafka's property files.

In: the properties of a worker. Out: the settings of its HTTP side, and a `Service`: plugins, a runner of
tasks, a herder, endpoints. SettingsError names a property that is missing.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from barnabas.client.cluster import Cluster
from barnabas.client.core.address import parse_bootstrap
from barnabas.client.core.errors import Unreachable
from barnabas.connect.api.between_workers import Messenger, internal_routes
from barnabas.connect.api.endpoints import Endpoints
from barnabas.connect.api.metric_names import DEFAULT, DIALECTS
from barnabas.connect.api.metrics import SETTING as DIALECT
from barnabas.connect.api.metrics import progress_route, worker_metrics
from barnabas.connect.api.service import ADMIN, NAME, service
from barnabas.connect.api.sink_offsets import SinkGroups
from barnabas.connect.config.errors import ConfigError
from barnabas.connect.config.providers import Providers
from barnabas.connect.config.worker_settings import checked_worker, without_effect
from barnabas.connect.herder.distributed.herder import DistributedHerder
from barnabas.connect.herder.errors import Refused
from barnabas.connect.herder.herder import Herder
from barnabas.connect.herder.standalone import StandaloneHerder, connector_file
from barnabas.connect.jobs.road import SparkRoad
from barnabas.connect.plugins import Plugins
from barnabas.connect.tasks.privileged import LeaderWriter, OwnOffsets
from barnabas.connect.tasks.runner import TaskRunner
from barnabas.security.clients.client_security import client_security, client_tls
from barnabas.services.app import Service
from barnabas.services.settings.loading import from_file, table_of
from barnabas.services.settings.service_settings import ServiceSettings
from barnabas.settings.errors import SettingsError

log = logging.getLogger("barnabas.connect")

BASIC_AUTH = "BasicAuthSecurityRestExtension"
HTTPS, ADMIN_HTTPS = "listeners.https.", "admin.listeners.https."
ANY_HOST = ("0.0.0.0", "::", "")


def worker_properties(
    path: Path, overrides: Mapping[str, str] | None = None, *, is_distributed: bool
) -> dict[str, str]:
    """The properties of a file and those that win over them, with the values of config providers;
    SettingsError names everything that is wrong."""
    found = {**from_file(path), **(overrides or {})}
    found = Providers(found).resolve(found)
    try:
        return checked_worker(found, is_distributed=is_distributed)
    except ConfigError as error:
        lines = error.message.splitlines()
        head = f"{path} has {len(lines)} errors:\n" if len(lines) > 1 else ""
        raise SettingsError(head + error.message, name=next(iter(error.errors))) from None


def warn(worker: Mapping[str, str], *, is_distributed: bool) -> None:
    dialect = worker.get(DIALECT) or DEFAULT
    if dialect not in DIALECTS:
        raise SettingsError(f"{DIALECT} is {dialect!r}; known: {', '.join(DIALECTS)}")
    for name, reason in without_effect(worker, is_distributed=is_distributed).items():
        log.warning("the worker's setting %s has no effect: %s", name, reason)


def http_settings(worker: Mapping[str, str]) -> ServiceSettings:
    """The settings of the HTTP side in the names of the frame."""
    table = table_of("connect")
    given = {**worker, **{n.removeprefix(HTTPS): text for n, text in worker.items() if n.startswith(HTTPS)}}
    if "ssl.client.auth" in given:
        given["ssl.client.authentication"] = given.pop("ssl.client.auth")
    if BASIC_AUTH in worker.get("rest.extension.classes", ""):
        given |= {"authentication.method": "BASIC", "authentication.realm": "KafkaConnect"}
    given.setdefault("barnabas.http.request.timeout.ms", "90000")
    found = ServiceSettings(table, {name: text for name, text in given.items() if name in table.rows})
    if admin := worker.get(ADMIN, "").strip():
        own = {n.removeprefix(ADMIN_HTTPS): text for n, text in worker.items() if n.startswith(ADMIN_HTTPS)}
        shared = {name: text for name, text in found.given.items() if not (own and name.startswith("ssl."))}
        if "ssl.client.auth" in own:
            own["ssl.client.authentication"] = own.pop("ssl.client.auth")
        found.beside = ServiceSettings(table, {**shared, **own, "listeners": admin})
    return found


def advertised_url(worker: Mapping[str, str], settings: ServiceSettings) -> str:
    """This worker as others reach it."""
    wanted = worker.get("rest.advertised.listener", "").lower()
    listener = next((each for each in settings.listeners if each.scheme == wanted), settings.listeners[0])
    host = worker.get("rest.advertised.host.name") or listener.host
    host = socket.gethostname() if host in ANY_HOST else host
    return f"{listener.scheme}://{host}:{worker.get('rest.advertised.port') or listener.port}/"


def runner_of(worker: Mapping[str, str], plugins: Plugins) -> TaskRunner:
    return TaskRunner(worker, plugins, SparkRoad(worker))


def plugins_of(worker: Mapping[str, str]) -> Plugins:
    return Plugins(worker.get("plugin.path", "").split(","))


def cluster_of(worker: Mapping[str, str]) -> Cluster:
    return Cluster(
        parse_bootstrap(worker["bootstrap.servers"]),
        client_id=worker.get("client.id") or "connect",
        security=client_security(worker),
        waits_for_bootstrap=True,
    )


async def reach(cluster: Cluster) -> None:
    """Wait for brokers that start at the same time as the worker."""
    try:
        await cluster.refresh()
    except Unreachable as error:
        log.warning("%s: the worker tries again for a minute (bootstrap.servers)", error)
        await cluster.retrying(cluster.refresh)


Make = Callable[[ServiceSettings], Service]


def standalone(worker: Mapping[str, str], files: Sequence[Path]) -> Make:
    """The maker of a single worker with the connectors of these files."""

    def make(settings: ServiceSettings) -> Service:
        warn(worker, is_distributed=False)
        plugins = plugins_of(worker)
        url = advertised_url(worker, settings)
        runner = runner_of(worker, plugins)
        herder = StandaloneHerder(worker, url.split("://")[1].rstrip("/"), plugins, runner)
        cluster = cluster_of(worker)

        async def start() -> None:
            await reach(cluster)
            await herder.start()
            for path in files:
                try:
                    name, config, target = connector_file(path)
                    await herder.put(name, config, is_new=True, target=target)
                except (OSError, ValueError, Refused) as error:
                    reason = (isinstance(error, OSError) and error.strerror) or error
                    raise SettingsError(f"{path}: {reason}") from None

        async def stop() -> None:
            await herder.stop()
            await asyncio.to_thread(runner.close)
            await cluster.close()

        return service(
            endpoints(worker, herder, cluster),
            start,
            stop,
            more=(progress_route(runner),),
            metrics=worker_metrics(NAME, herder, runner, cluster),
        )

    return make


def distributed(worker: Mapping[str, str]) -> Make:
    """The maker of a worker of a cluster."""

    def make(settings: ServiceSettings) -> Service:
        warn(worker, is_distributed=True)
        plugins = plugins_of(worker)
        url = advertised_url(worker, settings)
        messenger = Messenger(client_tls(worker) if url.startswith("https") else None)
        cluster = cluster_of(worker)
        runner = runner_of(worker, plugins)
        leading = None
        if LeaderWriter.is_wanted(worker):
            leading = LeaderWriter(worker, worker["config.storage.topic"])
        herder = DistributedHerder(
            worker, url, plugins, runner, cluster, messenger.send, OwnOffsets(worker), leading
        )

        async def start() -> None:
            await reach(cluster)
            await herder.start()

        async def stop() -> None:
            await herder.stop()
            await asyncio.to_thread(runner.close)
            await messenger.close()
            await cluster.close()

        more = (*internal_routes(herder, worker), progress_route(runner))
        metrics = worker_metrics(NAME, herder, runner, cluster)
        return service(endpoints(worker, herder, cluster), start, stop, messenger.forward, more, metrics)

    return make


def endpoints(worker: Mapping[str, str], herder: Herder, cluster: Cluster) -> Endpoints:
    return Endpoints(
        herder,
        lambda: cluster.topology.cluster_id or "",
        SinkGroups(cluster),
    )
