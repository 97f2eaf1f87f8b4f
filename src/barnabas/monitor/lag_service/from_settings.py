"""The lag service made from its settings.

In: `ServiceSettings` of the service `lag`. Out: a `Service`. SettingsError names a setting that is wrong.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping

from barnabas.client.core.address import parse_bootstrap
from barnabas.monitor.lag.cluster_lag import LagRules
from barnabas.monitor.lag_service.cluster_watch import WatchSettings
from barnabas.monitor.lag_service.metrics_api import Dialects
from barnabas.monitor.lag_service.probe import ProbeSettings
from barnabas.monitor.lag_service.service import LagOptions, lag_service
from barnabas.security.clients.client_security import client_security, ignored_properties
from barnabas.security.errors import SecuritySettingsError
from barnabas.services.app import Service
from barnabas.services.settings.client_properties import BOOTSTRAP
from barnabas.services.settings.service_settings import ServiceSettings
from barnabas.settings import SettingsError

CLIENT_ID = "barnabas-lag"

log = logging.getLogger("barnabas.lag")


def service(settings: ServiceSettings) -> Service:
    watches = [watch_settings(settings, name, each) for name, each in clusters(settings).items()]
    return lag_service(
        watches,
        LagOptions(
            dialects=Dialects(
                tuple(each for each in settings["metrics.dialects"] if each != "none"),
                settings["kminion.prefix"],
            ),
            probe=probe_settings(settings) if settings["probe.enabled"] else None,
        ),
    )


def clusters(settings: ServiceSettings) -> dict[str, dict[str, str]]:
    """The properties of each cluster's client, by the cluster's name."""
    found: dict[str, dict[str, str]] = {}
    properties = settings.below("cluster.")
    # A name of a cluster may have dots: it ends where the name of its first property begins.
    names = [key.removesuffix(f".{BOOTSTRAP}") for key in properties if key.endswith(f".{BOOTSTRAP}")]
    for name in names:
        prefix = f"{name}."
        found[name] = {
            key.removeprefix(prefix): value for key, value in properties.items() if key.startswith(prefix)
        }
    for key in properties:
        if not any(key.startswith(f"{name}.") for name in names):
            raise SettingsError(
                f"cluster.{key} belongs to no cluster: set cluster.NAME.bootstrap.servers",
                name=f"cluster.{key}",
            )
    if not found:
        if not settings["bootstrap.servers"]:
            raise SettingsError(
                "no cluster is named: set bootstrap.servers or cluster.NAME.bootstrap.servers", name=BOOTSTRAP
            )
        found[settings["cluster.name"]] = {BOOTSTRAP: ",".join(settings["bootstrap.servers"])}
    return found


def watch_settings(settings: ServiceSettings, name: str, properties: Mapping[str, str]) -> WatchSettings:
    try:
        bootstrap = parse_bootstrap(properties[BOOTSTRAP])
    except ValueError as error:
        raise SettingsError(f"cluster.{name}.{BOOTSTRAP}: {error}", name=BOOTSTRAP) from None
    try:
        security = client_security(properties)
    except SecuritySettingsError as error:
        raise SettingsError(f"cluster.{name}: {error}", name=f"cluster.{name}") from None
    for text in ignored_properties(properties):
        log.warning("cluster.%s: the property %s", name, text)
    return WatchSettings(
        name=name,
        bootstrap=tuple(bootstrap),
        security=security,
        client_id=properties.get("client.id", CLIENT_ID),
        rules=rules(settings),
        source=settings["commits.source"],
        from_latest=settings["start.latest"],
        offsets_topic=settings["offsets.topic"],
        topic_refresh_s=settings["topic.refresh.seconds"],
        offset_refresh_s=settings["offset.refresh.seconds"],
        start_refresh_s=settings["start.refresh.seconds"],
        groups_refresh_s=settings["groups.refresh.seconds"],
        commits_poll_s=settings["commits.poll.seconds"],
        details_refresh_s=settings["details.refresh.seconds"],
        history_interval_s=settings["history.interval.seconds"],
        lookups_max=settings["exact.lookups.max"],
    )


def rules(settings: ServiceSettings) -> LagRules:
    return LagRules(
        intervals=settings["intervals"],
        min_distance_ms=settings["min.distance.seconds"] * 1000,
        expire_group_ms=settings["expire.group.seconds"] * 1000,
        allowed_lag=settings["allowed.lag"],
        minimum_complete=settings["minimum.complete"],
        group_allowed=pattern(settings, "group.allowlist"),
        group_denied=pattern(settings, "group.denylist"),
        topic_denied=pattern(settings, "topic.denylist"),
        history_points=settings["history.points"],
    )


def pattern(settings: ServiceSettings, name: str) -> re.Pattern[str] | None:
    text = settings[name]
    if not text:
        return None
    try:
        return re.compile(text)
    except re.error as error:
        raise SettingsError(f"{name} is no regular expression: {error}", name=name) from None


def probe_settings(settings: ServiceSettings) -> ProbeSettings:
    return ProbeSettings(
        topic=settings["probe.topic"],
        interval_s=settings["probe.interval.ms"] / 1000,
        roundtrip_s=settings["probe.roundtrip.ms"] / 1000,
        ack_s=settings["probe.ack.ms"] / 1000,
        replication_factor=settings["probe.replication.factor"],
    )
