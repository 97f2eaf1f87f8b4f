"""The sink of Elasticsearch and OpenSearch: records become documents by bulk requests.

Requests are under way side by side, those of one document one after the other. Ids are keys, with offsets as
external versions, or topic, partition and offset: both are written once, however often they come. A document
that the server refuses is reported alone; others of its request are written. Does not know: topics,
converters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

from barnabas.client.core.topology import TopicPartition
from barnabas.connect.config import ConfigDef
from barnabas.connect.connectors.search.documents import Action, action_of
from barnabas.connect.connectors.search.flights import Flights, places_of
from barnabas.connect.connectors.search.search_client import (
    BusyError,
    Fate,
    Outcome,
    RefusedError,
    SearchClient,
)
from barnabas.connect.connectors.search.search_settings import (
    SearchPlan,
    client_of,
    definitions,
    login_of,
    plan_of,
)
from barnabas.connect.connectors.stores.checks import errors_of
from barnabas.connect.connectors.stores.delivered import Delivered, Place
from barnabas.connect.connectors.stores.left_out import leave_out, tolerates_all
from barnabas.connect.connectors.stores.retries import Pauses, Retries
from barnabas.connect.data import DataError, Records
from barnabas.connect.plugins import ConnectError, Connector, RetriableError, SinkContext, SinkTask

SETTING_OF = {  # that leaves records out, by the reason
    "conflict": "behavior.on.version.conflict",
    "malformed": "behavior.on.malformed.documents",
}

Spot = tuple[Place, int]
Work = list[tuple[Spot, Action]]
Outcomes = list[tuple[Spot, Outcome]]


class SearchSinkTask(SinkTask):
    def start(self, context: SinkContext) -> None:
        super().start(context)
        self._plan = plan_of(context.settings)
        self._client = SearchClient(
            client_of(context.settings),
            self._plan.urls,
            compresses=context.settings.flag("connection.compression"),
        )
        self._flights: Flights[Work, Outcomes] = Flights(
            self._plan.in_flight,
            self._sent,
            lambda work: places_of(action for _, action in work),
            lambda found: all(outcome.fate is not Fate.AGAIN for _, outcome in found),
        )
        self._retries = Retries(context, self._plan.retries_max, Pauses(self._plan.backoff_ms))
        self._tolerates = tolerates_all(context)
        # Records of the batch that comes again which need no other try, and why where they were refused.
        self._settled: dict[Spot, tuple[str, Exception] | None] = {}

    def open(self, partitions: Iterable[TopicPartition]) -> None:
        self._settled.clear()

    def put(self, records: Records) -> None:
        spots = Delivered().places(records)
        work: Work = []
        for spot, row in zip(spots, records.rows(), strict=True):
            if spot in self._settled:
                continue
            try:
                target = self._plan.resource_of(row.topic or "")
                action = action_of(row, self._plan, target)
            except DataError as error:
                self._settled[spot] = ("invalid", error)
                continue
            if action is not None:
                work.append((spot, action))
        try:
            for target in dict.fromkeys(action.target for _, action in work):
                self._ensure(target, records)
            self._write(work)
        except BusyError as busy:
            raise self._again(str(busy), busy.least_s) from busy
        self._retries.succeeded()
        settled, self._settled = self._settled, {}
        for index, spot in enumerate(spots):
            refused = settled.get(spot)
            if refused is not None:
                self._failed(records, index, *refused)

    def _ensure(self, target: str, records: Records) -> None:
        plan = self._plan
        if plan.needs_resource:
            self._client.ensure_resource(target)
        elif plan.is_stream:
            self._client.ensure_stream(target, plan.template)
        else:
            topics = records.topics.unique().to_pylist()
            is_ignored = all(plan.ignores_schema_of(topic) for topic in topics)
            schema = None if is_ignored else records.values.schema
            self._client.ensure_index(target, schema, compacts_maps=plan.compacts_maps)

    def _write(self, work: Work) -> None:
        """All bulk requests. BusyError or ConnectError if some of the work is left to do."""
        again: list[str] = []
        is_progress = False
        for outcomes in self._flights.run(bulks(work, self._plan)):
            for spot, outcome in outcomes:
                if outcome.fate is Fate.AGAIN:
                    again.append(outcome.reason)
                else:
                    self._settled[spot] = refusal(outcome)
                    is_progress = True
            if is_progress:
                self._retries.succeeded()
        if again:
            raise BusyError(f"the server takes {len(again)} of {len(work)} documents later: {again[0]}")

    def _sent(self, work: Work) -> Outcomes:
        """One bulk request; halves of it where the server refuses the whole for what is in it."""
        try:
            outcomes = self._client.bulk([action for _, action in work])
        except RefusedError as error:
            if len(work) > 1:
                middle = len(work) // 2
                first, rest = self._sent(work[:middle]), work[middle:]
                try:
                    return first + self._sent(rest)
                except BusyError as busy:  # what became of the first half must not be lost
                    return first + [(spot, Outcome(Fate.AGAIN, str(busy))) for spot, _ in rest]
            outcomes = [Outcome(Fate.MALFORMED, str(error))]
        return [(spot, outcome) for (spot, _), outcome in zip(work, outcomes, strict=True)]

    def _again(self, why: str, least_s: float) -> ConnectError:
        error = self._retries.failed(why)
        if isinstance(error, RetriableError) and least_s * 1000 > self._retries.pause_ms:
            self.context.retry_after_ms(int(least_s * 1000))
        return error

    def _failed(self, records: Records, index: int, kind: str, error: Exception) -> None:
        plan = self._plan
        behavior = {"conflict": plan.conflicts, "malformed": plan.malformed}.get(
            kind, "warn" if plan.drops_invalid else "fail"
        )
        if behavior in ("fail", "report") or (self._tolerates and kind != "conflict"):
            self.context.errant(records, [index], error)
        elif behavior == "warn":
            leave_out(self.context, records, index, error, SETTING_OF.get(kind, "drop.invalid.message"))

    def stop(self) -> None:
        if getattr(self, "_client", None) is not None:
            self._flights.close()
            self._client.close()


def refusal(outcome: Outcome) -> tuple[str, Exception] | None:
    if outcome.fate is Fate.DONE:
        return None
    return outcome.fate.value, ConnectError(f"the server refuses the document: {outcome.reason}")


def bulks(work: Work, plan: SearchPlan) -> Iterator[Work]:
    """Parts of the work that fit into one request. Writes without versions need their order also where the
    server takes one of two and not the other: an id is at most once in a request then."""
    part: Work = []
    size = 0
    seen: set[tuple[str, str | None]] = set()
    for spot, action in work:
        is_full = len(part) >= plan.batch_size or 0 < plan.batch_bytes < size + len(action.lines)
        place = (action.target, action.id)
        is_twice = not action.is_versioned and action.id is not None and place in seen
        if part and (is_full or is_twice):
            yield part
            part, size, seen = [], 0, set()
        part.append((spot, action))
        size += len(action.lines)
        seen.add(place)
    if part:
        yield part


class ElasticsearchSinkConnector(Connector):
    """Confluent's defaults."""

    KIND = "sink"
    JAVA_NAMES: ClassVar[tuple[str, ...]] = ("io.confluent.connect.elasticsearch.ElasticsearchSinkConnector",)
    CONFIG: ClassVar[ConfigDef] = definitions("fail")
    task = SearchSinkTask

    def check(self, config: Mapping[str, str]) -> dict[str, list[str]]:
        checks: list[Any] = [plan_of, login_of]
        return errors_of(self.CONFIG, config, *checks)


class OpenSearchSinkConnector(ElasticsearchSinkConnector):
    """Aiven's defaults."""

    JAVA_NAMES: ClassVar[tuple[str, ...]] = ("io.aiven.kafka.connect.opensearch.OpensearchSinkConnector",)
    CONFIG: ClassVar[ConfigDef] = definitions("ignore")
