"""Sources of the tool `lag`: brokers, or a lag service.

In: a cluster client, or the URL of a service. Out: `Look`s: groups with their lag, and forecasts where they
are asked for. Both stand on the same core (`barnabas.monitor.lag`). Does not know: how lag is shown.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import quote, urlencode

from barnabas.cli.frame.parsing import ToolError
from barnabas.cli.frame.service_requests import ask_service
from barnabas.client.admin.admin import Admin
from barnabas.client.core.cluster import ClusterCore
from barnabas.client.core.topology import TopicPartition
from barnabas.metadata.steps import at_once
from barnabas.monitor.lag.cluster_lag import ClusterLag
from barnabas.monitor.lag.forecast import Forecast, Outlook, RetentionRisk
from barnabas.monitor.lag.group_forecasts import forecasts_of
from barnabas.monitor.lag.group_lag import GroupLag, from_json, lags_of
from barnabas.monitor.lag_service.cluster_details import ClusterDetails
from barnabas.monitor.lag_service.protocol_reader import ProtocolReader, read_starts

GROUPS_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Look:
    groups: list[GroupLag]
    forecasts: dict[str, Forecast] = field(default_factory=dict)


class LagSource(Protocol):
    async def look(self, groups: Sequence[str] | None) -> Look: ...


class BrokerLag:
    """Asks the brokers at each look. Forecasts need several looks: they compare them."""

    def __init__(self, cluster: ClusterCore, *, with_forecasts: bool = False) -> None:
        self._lag = ClusterLag("")
        self._admin = Admin(cluster)
        self._reader = ProtocolReader(self._admin, self._lag)
        self._with_forecasts = with_forecasts

    async def look(self, groups: Sequence[str] | None) -> Look:
        now_ms = int(time.time() * 1000)
        lag = self._lag
        await self._reader.read(groups, now_ms)
        found = lags_of(lag, now_ms, groups)
        if not self._with_forecasts:
            return Look(found)
        places = [
            TopicPartition(topic.name, index)
            for topic in lag.topics.values()
            for index in range(len(topic.partitions))
        ]
        await read_starts(self._admin, lag, places)
        for topic in lag.topics.values():
            topic.is_known = True
        if all(topic.retention_ms is None for topic in lag.topics.values()):
            await ClusterDetails(self._admin, lag).read_settings()
        forecasts = {}
        for each in found:
            whole = at_once(forecasts_of(lag, lag.groups[each.group_id], now_ms)).whole
            if whole is not None:
                forecasts[each.group_id] = whole
        at_once(lag.sample(now_ms))
        return Look(found, forecasts)


class ServiceLag:
    """Asks a lag service. Without the name of a cluster, the service must watch only one."""

    def __init__(self, url: str, cluster: str | None, *, with_forecasts: bool = False) -> None:
        self._url = url.rstrip("/")
        self._cluster = cluster
        self._with_forecasts = with_forecasts

    async def look(self, groups: Sequence[str] | None) -> Look:
        base = f"/v1/clusters/{quote(await self._name(), safe='')}/groups"
        query = [("limit", str(GROUPS_MAX)), *(("group", each) for each in groups or ())]
        response = await self._get(f"{base}?{urlencode(query)}")
        try:
            found = [from_json(each) for each in response["groups"]]
        except (KeyError, TypeError):
            raise ToolError(f"{self._url} is no lag service: its response has another form") from None
        missing = set(groups or ()) - {each.group_id for each in found}
        if missing:
            raise ToolError(f"Group {min(missing)} not found.")
        forecasts = {}
        if self._with_forecasts:
            for each in found:
                body = await self._get(f"{base}/{quote(each.group_id, safe='')}/forecast")
                if body["forecast"] is not None:
                    forecasts[each.group_id] = forecast_of(body["forecast"])
        return Look(found, forecasts)

    async def _name(self) -> str:
        if self._cluster is None:
            known = [each["cluster"] for each in (await self._get("/v1/clusters"))["clusters"]]
            if len(known) != 1:
                raise ToolError(f"the service watches {', '.join(known)}: choose one with --cluster")
            self._cluster = known[0]
        return self._cluster

    async def _get(self, path: str) -> Any:
        return await asyncio.to_thread(ask_service, self._url, path, "lag service")


def forecast_of(body: dict[str, Any]) -> Forecast:
    return Forecast(
        Outlook(body["outlook"]),
        body["caught_up_in_seconds"],
        body["caught_up_reason"],
        RetentionRisk(body["retention"]),
        body["overtaken_in_seconds"],
        body["overtaken_reason"],
        body["consumed_per_second"],
        body["produced_per_second"],
        body["confidence"],
    )
