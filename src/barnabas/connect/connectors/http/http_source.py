"""The HTTP source: pages of an API become records, from the offset that is stored.

`http.offset.mode` says how the next request is found: a number that grows with the records
(SIMPLE_INCREMENTING), a part of the last record (CHAINING), a cursor in the response (CURSOR_PAGINATION), an
address in the header Link or in the response (LINK_PAGINATION), or pages of a snapshot that begins again
(SNAPSHOT_PAGINATION). Offsets: `{"url": address}` -> `{"offset": text}`, with the index of the record in its
page where a page repeats.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import orjson

from barnabas.connect.config import ConfigDef, ConfigError, Settings
from barnabas.connect.connectors.http.logins import login_of
from barnabas.connect.connectors.http.paging import Page, Place, Plan, new_rows, next_place, page_of
from barnabas.connect.connectors.http.source_settings import (
    ENTITY,
    NUMBER,
    SHARE,
    apis_of,
    client_of,
    definitions,
    plan_of,
)
from barnabas.connect.connectors.stores.checks import errors_of
from barnabas.connect.connectors.stores.http_client import Unreachable, shown
from barnabas.connect.connectors.stores.json_values import text_of
from barnabas.connect.data import STRING, Column, Records
from barnabas.connect.plugins import ConnectError, Connector, RetriableError, SourceContext, SourceTask

log = logging.getLogger("barnabas.connect")


class ApiReader:
    """One API: where it is read, and when it is asked next."""

    def __init__(self, settings: Settings, context: SourceContext) -> None:
        self._plan: Plan = plan_of(settings)
        self._client = client_of(settings)
        self._partition = {"url": self._plan.url}
        if entity := settings.raw.get(ENTITY):
            self._partition["entity"] = entity
        stored = context.offsets.read([self._partition])[0]
        self._place = Place(self._plan.first) if stored is None else Place.of_offset(stored)
        self._has_read = stored is not None
        self.not_before = 0.0  # the time of the next request
        if self._plan.mode == "SIMPLE_INCREMENTING" and self._plan.is_fixed:
            log.warning(
                "%s-%d reads all records of %s again and again: no request holds ${offset}",
                context.connector, context.task, shown(self._plan.url),
            )  # fmt: skip
        self._failures = 0

    def read(self) -> Records | None:
        """The records of the next page."""
        try:
            page = self._page()
        except RetriableError:
            raise
        except ConnectError as error:
            if not self._plan.goes_on:
                raise
            log.error("an API is asked again in %.0f s: %s", self._plan.interval_s, error)
            self._failures = 0
            self.not_before = time.monotonic() + self._plan.interval_s
            return None
        if page is None:
            return None
        following, is_last = next_place(self._plan, self._place, page)
        if is_last:
            self.not_before = time.monotonic() + self._plan.interval_s
        # The record at the initial offset was not read before, whether the API repeats records or not.
        rows = new_rows(self._plan, self._place, page) if self._has_read else page.rows
        self._has_read = self._has_read or bool(rows)
        self._place = following
        return self._records(rows, following) if rows else None

    def _page(self) -> Page | None:
        plan = self._plan
        url, params, body = plan.request(self._place)
        try:
            response = self._client.request(plan.method, url, dict(plan.headers), body, params)
        except Unreachable as error:
            raise self._failed(str(error), 0.0) from error
        if response.status in (204, 304):
            self.not_before = time.monotonic() + plan.interval_s
            return None
        if not response.is_success:
            why = f"{plan.method} {shown(url)} is answered {response.brief()}"
            if plan.retried(response.status):
                raise self._failed(why, response.retry_after_s())
            raise ConnectError(why)
        try:
            body = response.json_bytes()
            document = orjson.loads(body) if body.strip() else []
        except orjson.JSONDecodeError as error:
            why = f"the response of {shown(url)} is no JSON: {error}"
            raise self._failed(why, 0.0) from error
        self._failures = 0
        return page_of(plan, document, response.headers.get("link", ""), url)

    def _failed(self, why: str, least_s: float) -> ConnectError:
        self._failures += 1
        if 0 <= self._plan.retries_max < self._failures:
            return ConnectError(f"{why}; gave up after {self._plan.retries_max} retries")
        pause_s = self._plan.pauses.after(self._failures) / 1000
        self.not_before = time.monotonic() + max(pause_s, least_s)
        return RetriableError(why)

    def _records(self, rows: Sequence[Any], place: Place) -> Records:
        keys = None
        if self._plan.key is not None:
            keys = Column.of([None if (k := self._plan.key.of(row)) is None else text_of(k) for row in rows],
                             STRING.as_optional())  # fmt: skip
        if self._plan.as_text:
            values = Column.of([orjson.dumps(row).decode() for row in rows], STRING)
        else:
            values = Column.of(rows)
        return Records.of(
            self._plan.topic, values, keys, positions=[(dict(self._partition), place.as_offset())]
        )

    def close(self) -> None:
        self._client.close()


class HttpSourceTask(SourceTask):
    """Reads its APIs in turn, each when it is due."""

    def start(self, context: SourceContext) -> None:
        super().start(context)
        self._readers: list[ApiReader] = []
        for config in apis_of(context.config):
            self._readers.append(ApiReader(HttpSourceConnector.CONFIG.parse(config), context))

    def poll(self) -> Records | None:
        due = min(self._readers, key=lambda each: each.not_before)
        wait_s = due.not_before - time.monotonic()
        if wait_s > 0:
            self.context.stopping.wait(min(wait_s, self.context.poll_seconds))
            if time.monotonic() < due.not_before:
                return None
        self._readers.remove(due)
        self._readers.append(due)  # the others come first
        return due.read()

    def stop(self) -> None:
        for each in getattr(self, "_readers", ()):
            each.close()


class HttpSourceConnector(Connector):
    KIND = "source"
    JAVA_NAMES: ClassVar[tuple[str, ...]] = ("io.confluent.connect.http.HttpSourceConnector",)
    CONFIG: ClassVar[ConfigDef] = definitions()
    task = HttpSourceTask

    def check(self, config: Mapping[str, str]) -> dict[str, list[str]]:
        try:
            apis = apis_of(config)
        except ConnectError as error:
            return {str(error).split()[0].rstrip(":"): [str(error)]}
        found: dict[str, list[str]] = {}
        for each in apis:
            prefix = f"api{each[NUMBER]}." if NUMBER in each else ""
            errors = errors_of(self.CONFIG, each, plan_of, login_of)
            try:
                self.CONFIG.parse(each)
            except ConfigError as error:  # values of this API alone: others are reported by name already
                errors = {name: texts for name, texts in error.errors.items() if f"{prefix}{name}" in config}
                errors = errors if prefix else {}
            for name, texts in errors.items():
                own = f"{prefix}{name}"
                found.setdefault(own if own in config else name, []).extend(texts)
        return found

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """The APIs, shared among the tasks."""
        config = dict(self.context.config)
        numbers = [each[NUMBER] for each in apis_of(config) if NUMBER in each]
        shares = [numbers[start::max_tasks] for start in range(min(max_tasks, len(numbers)))]
        return [{**config, SHARE: ",".join(share)} for share in shares] or [config]

    def alter_offsets(self, config: Mapping[str, str], offsets: Sequence[tuple[Any, Any]]) -> bool:
        for partition, offset in offsets:
            if not isinstance(partition, Mapping) or not isinstance(partition.get("url"), str):
                raise ConnectError(
                    f'a partition of this source looks like {{"url": address}}, not {partition!r}'
                )
            if offset is not None:
                Place.of_offset(offset)
        return True

    def exactly_once_support(self, config: Mapping[str, str]) -> bool:
        """A page that is read again gives the same records only where its place names it."""
        plans = [plan_of(self.CONFIG.parse(each)) for each in apis_of(config)]
        return not any(
            each.mode == "SNAPSHOT_PAGINATION" or (each.mode == "SIMPLE_INCREMENTING" and each.is_fixed)
            for each in plans
        )
