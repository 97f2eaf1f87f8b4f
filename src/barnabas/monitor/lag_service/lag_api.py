"""Our own API of the lag service: groups with their lag in records and in time, histories and forecasts.

GET /v1/clusters                                  the clusters, and what fails to be read of them
GET /v1/clusters/C/groups?group=G&limit=N         groups with their partitions, those furthest behind first
GET /v1/clusters/C/groups/G                       one group: status, partitions, forecast
GET /v1/clusters/C/groups/G/history               committed offsets, ends and lag of each partition over time
GET /v1/clusters/C/groups/G/forecast              when it is caught up, when retention overtakes it, and why

In: `Watches`. Out: routes. Does not know: Burrow's API.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from barnabas.metadata.steps import Steps
from barnabas.monitor.lag.cluster_lag import ClusterLag
from barnabas.monitor.lag.forecast import Forecast
from barnabas.monitor.lag.group_forecasts import GroupForecast, forecasts_of
from barnabas.monitor.lag.group_lag import known
from barnabas.monitor.lag.groups import Group, GroupPartition
from barnabas.monitor.lag.statuses import GroupStatus, status_of, time_lag
from barnabas.monitor.lag.topics import UNKNOWN
from barnabas.monitor.lag_service.cluster_watch import ClusterWatch
from barnabas.monitor.lag_service.watches import Watches
from barnabas.services.errors import ApiError
from barnabas.services.routes import Need, ServiceRoute

LIMIT, LIMIT_MAX = 1_000, 10_000
GROUPS_A_STEP = 20
Json = dict[str, Any]


class LagApi:
    def __init__(self, watches: Watches) -> None:
        self._watches = watches

    def routes(self) -> list[ServiceRoute]:
        base = "/v1/clusters/{cluster}/groups"
        endpoints = {
            "/v1/clusters": self._clusters,
            base: self._groups,
            f"{base}/{{group}}": self._group,
            f"{base}/{{group}}/history": self._history,
            f"{base}/{{group}}/forecast": self._forecast,
        }
        return [ServiceRoute(path, endpoint, needs=Need.READ) for path, endpoint in endpoints.items()]

    async def _clusters(self, request: Request) -> Response:
        return JSONResponse({"clusters": [cluster_json(each) for each in self._watches.by_name.values()]})

    async def _groups(self, request: Request) -> Response:
        watch = self._watch(request)
        asked = request.query_params.getlist("group")
        limit = number(request, "limit", LIMIT, LIMIT_MAX)
        now_ms = self._watches.now_ms()
        steps = largest_groups(watch.lag, asked, limit, now_ms)
        return JSONResponse({"groups": await self._watches.in_pieces(steps)})

    async def _group(self, request: Request) -> Response:
        lag, group = self._found(request)
        now_ms = self._watches.now_ms()
        status = await self._watches.in_pieces(status_of(lag, group, now_ms))
        forecasts = await self._watches.in_pieces(forecasts_of(lag, group, now_ms))
        return JSONResponse(
            {
                **group_json(group, now_ms),
                **status_json(status),
                "forecast": forecast_json(forecasts.whole),
            }
        )

    async def _history(self, request: Request) -> Response:
        lag, group = self._found(request)
        return JSONResponse(
            {
                "group": group.group_id,
                "times_ms": list(lag.sampled_ms),
                "partitions": [
                    history_json(lag, topic, index, place) for topic, index, place in group.partitions()
                ],
            }
        )

    async def _forecast(self, request: Request) -> Response:
        lag, group = self._found(request)
        found = await self._watches.in_pieces(forecasts_of(lag, group, self._watches.now_ms()))
        return JSONResponse({"group": group.group_id, **forecasts_json(found)})

    def _watch(self, request: Request) -> ClusterWatch:
        name = request.path_params["cluster"]
        watch = self._watches.by_name.get(name)
        if watch is None:
            raise ApiError(404, 40401, f"the cluster {name!r} is not watched: /v1/clusters lists them")
        return watch

    def _found(self, request: Request) -> tuple[ClusterLag, Group]:
        lag = self._watch(request).lag
        name = request.path_params["group"]
        group = lag.groups.get(name)
        if group is None:
            raise ApiError(404, 40402, f"the group {name!r} is not known in the cluster {lag.name!r}")
        return lag, group


def number(request: Request, name: str, default: int, largest: int) -> int:
    text = request.query_params.get(name, str(default))
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= largest):
        raise ApiError(400, 40001, f"{name} is {text!r}: give a number from 1 to {largest}")
    return int(text)


def cluster_json(watch: ClusterWatch) -> Json:
    lag = watch.lag
    return {
        "cluster": lag.name,
        "cluster_id": lag.cluster_id,
        "brokers": len(lag.brokers),
        "topics": sum(1 for topic in lag.topics.values() if topic.is_known),
        "groups": len(lag.groups),
        "commits_source": watch.source,
        "records_read": watch.records.records_read,
        "not_ready": watch.why_not_ready(),
        "problems": dict(watch.jobs.problems),
    }


def largest_groups(lag: ClusterLag, asked: Sequence[str], limit: int, now_ms: int) -> Steps[list[Json]]:
    """The groups that are asked for, or those furthest behind."""
    chosen = (
        [lag.groups[each] for each in asked if each in lag.groups] if asked else list(lag.groups.values())
    )
    behind: list[tuple[int, str, Group]] = []
    for index, group in enumerate(chosen):
        behind.append((-group.lag, group.group_id, group))
        if not index % GROUPS_A_STEP:
            yield
    behind.sort(key=lambda each: each[:2])
    found = []
    for _, _, group in behind[:limit]:
        found.append(group_json(group, now_ms))
        yield
    return found


def group_json(group: Group, now_ms: int) -> Json:
    partitions = [partition_json(topic, index, place, now_ms) for topic, index, place in group.partitions()]
    return {
        "group": group.group_id,
        "type": group.kind,
        "state": group.state,
        "members": len(group.members),
        "lag": sum(each["lag"] or 0 for each in partitions),
        "last_commit_ms": known(group.last_commit_ms),
        "partitions": partitions,
    }


def partition_json(topic: str, index: int, place: GroupPartition, now_ms: int) -> Json:
    time = time_lag(place, now_ms)
    owner = place.owner
    return {
        "topic": topic,
        "partition": index,
        "committed": known(place.committed),
        "start": known(place.offsets.start),
        "end": known(place.offsets.end),
        "lag": place.lag,
        "lag_seconds": time.seconds,
        "lag_seconds_method": time.method.value,
        "member_id": owner.member_id if owner is not None else "",
        "client_id": owner.client_id if owner is not None else "",
        "host": owner.host if owner is not None else "",
    }


def status_json(status: GroupStatus) -> Json:
    return {
        "status": status.status.name,
        "complete": status.complete,
        "lag_seconds": status.seconds,
        "statuses": [
            {"topic": each.topic, "partition": each.partition, "status": each.status.name}
            for each in status.partitions
        ],
    }


def history_json(lag: ClusterLag, topic: str, index: int, place: GroupPartition) -> Json:
    """Series are as long as `times_ms`: null before the partition was known."""
    length = len(lag.sampled_ms)
    committed = padded(place.committed_seen, length)
    ends = padded(place.offsets.ends_seen, length)
    return {
        "topic": topic,
        "partition": index,
        "committed": committed,
        "start": padded(place.offsets.starts_seen, length),
        "end": ends,
        "lag": [
            None if at is None or end is None else max(0, end - at)
            for at, end in zip(committed, ends, strict=True)
        ],
    }


def padded(series: Sequence[int], length: int) -> list[int | None]:
    newest = [None if each == UNKNOWN else each for each in series][-length:] if length else []
    return [None] * (length - len(newest)) + newest


def forecast_json(forecast: Forecast | None) -> Json | None:
    if forecast is None:
        return None
    return {
        "outlook": forecast.outlook.value,
        "caught_up_in_seconds": forecast.caught_up_s,
        "caught_up_reason": forecast.caught_up_reason,
        "retention": forecast.danger.value,
        "overtaken_in_seconds": forecast.overtaken_s,
        "overtaken_reason": forecast.overtaken_reason,
        "consumed_per_second": forecast.consumed_per_s,
        "produced_per_second": forecast.produced_per_s,
        "confidence": forecast.confidence,
        "trust": forecast.trust,
    }


def forecasts_json(found: GroupForecast) -> Json:
    return {
        "forecast": forecast_json(found.whole),
        "partitions": [
            {"topic": topic, "partition": index, **(forecast_json(each) or {})}
            for topic, index, each in found.partitions
        ],
    }
