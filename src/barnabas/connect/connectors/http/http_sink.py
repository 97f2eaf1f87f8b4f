"""The HTTP sink: records are sent in requests, in the order of their partitions.

A request succeeds with a status of 2xx. Others, and requests without a response, are tried again with a
growing pause, at least as long as `Retry-After` asks; requests of the same batch that succeeded are not sent
again. A status that is not tried again makes its records errant. No record is skipped in silence: offsets are
committed behind records that a server took, that were reported, or that the settings tell to ignore.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from barnabas.client.core.topology import TopicPartition
from barnabas.connect.config import ConfigDef, Settings
from barnabas.connect.connectors.http.logins import login_of
from barnabas.connect.connectors.http.replacements import replaced
from barnabas.connect.connectors.http.reports import Reports
from barnabas.connect.connectors.http.sink_settings import (
    SinkPlan,
    aiven_client,
    aiven_definitions,
    aiven_login,
    aiven_plan,
    confluent_client,
    confluent_definitions,
    confluent_plan,
)
from barnabas.connect.connectors.stores.checks import errors_of
from barnabas.connect.connectors.stores.delivered import Delivered, Place
from barnabas.connect.connectors.stores.http_client import HttpClient, HttpResponse, Unreachable, shown
from barnabas.connect.connectors.stores.json_values import exact, json_bytes, numeric, text_of
from barnabas.connect.connectors.stores.left_out import tolerates_all
from barnabas.connect.connectors.stores.retries import Retries
from barnabas.connect.data import DataError, Record, Records
from barnabas.connect.plugins import ConnectError, Connector, RetriableError, SinkContext, SinkTask
from barnabas.connect.plugins.contexts import SinkOffsets

log = logging.getLogger("barnabas.connect")

NOT_KNOWN = 401  # the login is refused: no record is to blame
BODY_BYTES_MAX = 8 << 20  # of one request; a larger record goes alone


@dataclass(slots=True)
class Request:
    """One request, and the indices of its records."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    key: str = ""  # of its batch
    bodies: list[str] = field(default_factory=list)
    indices: list[int] = field(default_factory=list)
    size: int = 0

    @property
    def target(self) -> tuple[object, ...]:
        """The parts that records of one request have in common."""
        return self.method, self.url, self.headers, self.key


class Refused(ConnectError):
    """The response of a server that does not take records."""

    def __init__(self, message: str, response: HttpResponse | None) -> None:
        super().__init__(message)
        self.response = response


class HttpSinkTask(SinkTask):
    def start(self, context: SinkContext) -> None:
        super().start(context)
        self._plan = self.plan_of(context.settings)
        self._client = self.client_of(context.settings)
        self._retries = Retries(context, self._plan.retries_max, self._plan.pauses)
        self._reports = Reports.of(context)
        self._delivered = Delivered()
        self._ends = self._plan.on_error == "fail" and not tolerates_all(context)
        # Records of the batch that were refused, while later ones are tried again.
        self._refused: dict[tuple[Place, int], Exception] = {}
        self._not_before = 0.0

    def plan_of(self, settings: Settings) -> SinkPlan:
        return confluent_plan(settings)

    def client_of(self, settings: Settings) -> HttpClient:
        return confluent_client(settings)

    def open(self, partitions: Iterable[TopicPartition]) -> None:
        self._delivered.clear()
        self._refused.clear()

    def put(self, records: Records) -> None:
        wait_s = self._not_before - time.monotonic()
        if wait_s > 0:
            self.context.retry_after_ms(min(int(wait_s * 1000) + 1, 60_000))
            raise RetriableError(f"the server asked to wait; {wait_s:.0f} seconds are left")
        places = self._delivered.places(records)
        rows = list(records.rows())
        for request in self._requests(rows, places):
            if self._ends:  # the task fails: what is behind a refused record is not sent
                self._report(records, rows, places[: request.indices[0]])
            error = self._send(request, rows)
            for index in request.indices:
                self._delivered.add(*places[index])
                if error is not None:
                    self._refused[places[index]] = error
        self._retries.succeeded()
        self._delivered.clear()
        self._report(records, rows, places)

    def _report(self, records: Records, rows: list[Record], places: list[tuple[Place, int]]) -> None:
        """Report what was refused among the first records."""
        refused = [(i, self._refused.pop(place)) for i, place in enumerate(places) if place in self._refused]
        for index, error in refused:
            self._failed(records, rows, index, error)

    def _requests(self, rows: list[Record], places: list[tuple[Place, int]]) -> list[Request]:
        found: list[Request] = []
        for index, row in enumerate(rows):
            if self._delivered.holds(*places[index]):
                continue
            try:
                made = self._request(row)
            except DataError as error:
                self._refused[places[index]] = error
                continue
            if made is None:
                continue
            request, body = made
            last = found[-1] if found else None
            if last is None or not self._fits(last, request, body):
                found.append(request)
                last = request
            last.bodies.append(body)
            last.indices.append(index)
            last.size += len(body)
        return found

    def _fits(self, last: Request, request: Request, body: str) -> bool:
        return (
            len(last.indices) < self._plan.batch_size
            and last.size + len(body) <= BODY_BYTES_MAX
            and last.target == request.target
            and request.method != "DELETE"
        )

    def _request(self, row: Record) -> tuple[Request, str] | None:
        plan = self._plan
        method = plan.method
        if row.value is None:
            if plan.nulls in ("ignore", "log"):
                if plan.nulls == "log":
                    log.warning(
                        "task %s-%d leaves out %s-%s offset %s with the key %.100r: it has no value"
                        " (behavior.on.null.values)",
                        self.context.connector, self.context.task, row.topic, row.partition, row.offset,
                        row.key,
                    )  # fmt: skip
                return None
            if plan.nulls == "fail":
                raise DataError("the record has no value, and behavior.on.null.values=fail")
            method = "DELETE"
        headers = tuple((name, template.of(row)) for name, template in plan.headers)
        if any("\n" in value or "\r" in value for _, value in headers):
            raise DataError("a header of the request would hold the end of a line")
        request = Request(method, plan.url.of(row), headers, plan.batch_key.of(row))
        return request, "" if row.value is None else self._body(row)

    def _body(self, row: Record) -> str:
        plan = self._plan
        decimals = numeric if plan.decimals == "numeric" else exact
        if plan.body is not None:
            body = plan.body.of(row)
        elif plan.as_json:
            body = json_bytes(row.value, decimals).decode()
        else:
            body = text_of(row.value, decimals)
        return replaced(body, plan.replacements, row)

    def _send(self, request: Request, rows: list[Record]) -> Exception | None:
        """Send one request. Out: None if the server took it, the error if it refuses the records for good."""
        plan, response = self._plan, None
        text = plan.prefix + plan.separator.join(request.bodies) + plan.suffix
        body = None if request.method == "DELETE" else text.encode("utf-8", "surrogatepass")
        try:
            response = self._client.request(request.method, request.url, dict(request.headers), body)
        except Unreachable as error:
            why = str(error)
            self._try_again(why, 0.0)
        else:
            if response.is_success:
                self._reports.success(rows, request.indices, response)
                return None
            why = f"{request.method} {shown(request.url)} is answered {response.brief()}"
            if plan.retried(response.status):
                self._try_again(why, response.retry_after_s())
            elif response.status == NOT_KNOWN and plan.on_error == "fail":
                raise ConnectError(f"the server refuses the connector, not the records: {why}")
        count = len(request.indices)
        return Refused(why if count == 1 else f"{why} (a request of {count} records)", response)

    def _try_again(self, why: str, least_s: float) -> None:
        """Raise the error that brings the records again, or the one that ends the task; return where
        `behavior.on.error` tells to go on without them."""
        error = self._retries.failed(why)
        if isinstance(error, RetriableError):
            if least_s > self._retries.pause_ms / 1000:
                self._not_before = time.monotonic() + least_s
                self.context.retry_after_ms(min(int(least_s * 1000) + 1, 60_000))
            raise error
        if self._plan.on_error == "fail":
            raise error
        self._retries.succeeded()

    def _failed(self, records: Records, rows: list[Record], index: int, error: Exception) -> None:
        self._reports.failure(rows[index], error, error.response if isinstance(error, Refused) else None)
        if self._plan.on_error == "fail":
            self._reports.flush()  # the task may end with the next line
            self.context.errant(records, [index], error)
        elif self._plan.on_error == "log":
            row = rows[index]
            log.error(
                "task %s-%d leaves %s-%s offset %s behind (behavior.on.error=log): %s",
                self.context.connector, self.context.task, row.topic, row.partition, row.offset, error,
            )  # fmt: skip

    def flush(self, offsets: SinkOffsets) -> SinkOffsets | None:
        self._reports.flush()
        return None

    def stop(self) -> None:
        if getattr(self, "_client", None) is not None:
            self._client.close()


class AivenHttpSinkTask(HttpSinkTask):
    def plan_of(self, settings: Settings) -> SinkPlan:
        return aiven_plan(settings)

    def client_of(self, settings: Settings) -> HttpClient:
        return aiven_client(settings)


class HttpSinkConnector(Connector):
    KIND = "sink"
    JAVA_NAMES: ClassVar[tuple[str, ...]] = ("io.confluent.connect.http.HttpSinkConnector",)
    CONFIG: ClassVar[ConfigDef] = confluent_definitions()
    task = HttpSinkTask

    def check(self, config: Mapping[str, str]) -> dict[str, list[str]]:
        return errors_of(self.CONFIG, config, confluent_plan, login_of)


class AivenHttpSinkConnector(Connector):
    KIND = "sink"
    JAVA_NAMES: ClassVar[tuple[str, ...]] = ("io.aiven.kafka.connect.http.HttpSinkConnector",)
    CONFIG: ClassVar[ConfigDef] = aiven_definitions()
    task = AivenHttpSinkTask

    def check(self, config: Mapping[str, str]) -> dict[str, list[str]]:
        return errors_of(self.CONFIG, config, aiven_plan, aiven_login)
