"""Requests to Elasticsearch and OpenSearch: bulk requests and their items, indexes, mappings, data streams.

In: actions. Out: what became of each. A node that is away is passed over for the next one of
`connection.url`. Several threads may use one client. Does not know: records, retries.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any
from urllib.parse import quote

import orjson

from barnabas.connect.connectors.search.documents import Action, mapping_of
from barnabas.connect.connectors.stores.http_client import HttpClient, HttpResponse, Unreachable
from barnabas.connect.data import Schema
from barnabas.connect.plugins import ConnectError

JSON = {"content-type": "application/json"}
NDJSON = {"content-type": "application/x-ndjson"}
REASON_CHARS_MAX = 1000
AGAIN = ("cluster_block_exception", "es_rejected_execution_exception", "unavailable_shards_exception")
GONE = "index_not_found_exception"


class Fate(Enum):
    DONE = "done"
    AGAIN = "again"  # the server is busy, or an index has gone
    CONFLICT = "conflict"  # the server has this version or a newer one
    MALFORMED = "malformed"


@dataclass(frozen=True, slots=True)
class Outcome:
    fate: Fate
    reason: str = ""


DONE = Outcome(Fate.DONE)


class BusyError(Exception):
    """The server refused a request as a whole for now; `least_s` is the pause that it asks for."""

    def __init__(self, message: str, least_s: float = 0.0) -> None:
        super().__init__(message)
        self.least_s = least_s


class RefusedError(Exception):
    """The server refuses a bulk request because of what is in it: too large, or a wrong action."""


class SearchClient:
    def __init__(self, http: HttpClient, urls: Sequence[str], *, compresses: bool = False) -> None:
        self._http = http
        self._urls = urls
        self._compresses = compresses
        self._at = 0
        self._ready: dict[str, Schema | None] = {}  # targets that exist, with the schema they were mapped for

    def close(self) -> None:
        self._http.close()

    def bulk(self, actions: Sequence[Action]) -> list[Outcome]:
        """BusyError, RefusedError or ConnectError if the request fails as a whole."""
        body = b"".join(each.lines for each in actions)
        response = self._request("POST", "/_bulk", body, NDJSON)
        if response.status in (400, 413):
            raise RefusedError(f"the bulk request is answered {response.brief()}")
        if not response.is_success:
            raise ConnectError(f"the bulk request is answered {response.brief()}")
        try:
            found = orjson.loads(response.body)
            items = [next(iter(each.values())) for each in found["items"]]
        except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError, StopIteration) as error:
            raise ConnectError(f"the response to a bulk request is none: {error!r}") from error
        if len(items) != len(actions):
            raise ConnectError(f"{len(items)} responses came for {len(actions)} actions of a bulk request")
        return [self._outcome(action, item) for action, item in zip(actions, items, strict=True)]

    def _outcome(self, action: Action, item: Mapping[str, Any]) -> Outcome:
        error, status = item.get("error"), int(item.get("status", 500))
        if error is None:
            return DONE  # a document to delete that was not there included
        reason = reason_of(error)
        kind = str(error.get("type", "")) if isinstance(error, Mapping) else ""
        if kind == GONE:
            self._ready.pop(action.target, None)
            return Outcome(Fate.AGAIN, reason)
        if status == 409 and action.op == "create":
            return DONE
        if status == 409:  # without a version of ours, others wrote the document meanwhile
            return Outcome(Fate.CONFLICT if action.is_versioned else Fate.AGAIN, reason)
        if status == 429 or status >= 500 or kind in AGAIN:
            return Outcome(Fate.AGAIN, reason)
        if status in (401, 403):
            raise ConnectError(f"the server does not let the connector write to {action.target}: {reason}")
        return Outcome(Fate.MALFORMED, reason)

    def ensure_index(self, name: str, schema: Schema | None, *, compacts_maps: bool) -> None:
        """Create an index unless it exists, and add fields of the schema that its mapping lacks."""
        if name in self._ready and self._ready[name] == schema:
            return
        wanted = {} if schema is None else mapping_of(schema, compacts_maps).get("properties", {})
        path = "/" + quote(name, safe="")
        if self._request("HEAD", path).status == 404:
            made = self._request("PUT", path, orjson.dumps({"mappings": {"properties": wanted}}))
            if not (made.status == 400 and b"resource_already_exists_exception" in made.body):
                self._must(made, f"the index {name} cannot be created")
                self._ready[name] = schema
                return
        if wanted:
            found = self._must(self._request("GET", f"{path}/_mapping"), f"the mapping of {name}")
            missing = wanted
            for each in orjson.loads(found.body).values():
                missing = lacking(missing, each.get("mappings", {}).get("properties", {}))
            if missing:
                added = self._request("PUT", f"{path}/_mapping", orjson.dumps({"properties": missing}))
                self._must(added, f"the fields {', '.join(missing)} cannot be added to {name}")
        self._ready[name] = schema

    def ensure_stream(self, name: str, template: str = "") -> None:
        """Create a data stream unless it exists, and its index template where that one has a name."""
        if name in self._ready:
            return
        path = f"/_data_stream/{quote(name, safe='')}"
        if self._request("GET", path).status == 404:
            if template:
                self._ensure_template(template, name)
            made = self._request("PUT", path)
            if made.status == 400 and b"no matching index template" in made.body:
                raise ConnectError(
                    f"the data stream {name} cannot be created: no index template with data_stream matches"
                    f" it. Create one whose index_patterns match {name} (PUT /_index_template/...)"
                )
            if not (made.status == 400 and b"already_exists" in made.body):
                self._must(made, f"the data stream {name} cannot be created")
        self._ready[name] = None

    def _ensure_template(self, name: str, stream: str) -> None:
        path = f"/_index_template/{quote(name, safe='')}"
        if self._request("GET", path).status == 404:
            body = {"index_patterns": [stream], "data_stream": {}}
            made = self._request("PUT", path, orjson.dumps(body))
            self._must(made, f"the index template {name} cannot be created")

    def ensure_resource(self, name: str) -> None:
        if name in self._ready:
            return
        found = self._request("HEAD", "/" + quote(name, safe=""))
        if found.status == 404:
            raise ConnectError(
                f"there is no index, alias or data stream {name}: with external.resource.usage it must exist"
            )
        self._must(found, f"the resource {name}")
        self._ready[name] = None

    def _must(self, response: HttpResponse, what: str) -> HttpResponse:
        if not response.is_success:
            raise ConnectError(f"{what}: the server answers {response.brief()}")
        return response

    def _request(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] = JSON
    ) -> HttpResponse:
        sent = dict(headers) if body is not None else {}
        if self._compresses and body is not None:
            body, sent = gzip.compress(body, 1), {**sent, "content-encoding": "gzip"}
        first = self._at  # other threads may pass over a node meanwhile
        for tried in range(len(self._urls)):
            at = (first + tried) % len(self._urls)
            try:
                found = self._http.request(method, self._urls[at] + path, sent, body)
                break
            except Unreachable as error:
                self._at = (at + 1) % len(self._urls)
                if tried + 1 == len(self._urls):
                    raise BusyError(str(error)) from error
        if found.status in (401, 403) and b"cluster_block" not in found.body:
            raise ConnectError(
                f"the server refuses the connector: {method} {path} is answered {found.brief()}"
            )
        if found.status == 429 or found.status >= 500 or found.status == 403:
            raise BusyError(f"{method} {path} is answered {found.brief()}", found.retry_after_s())
        return found


def lacking(wanted: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a mapping that another one has not, those inside of objects too."""
    found: dict[str, Any] = {}
    for name, kind in wanted.items():
        there = known.get(name)
        if there is None:
            found[name] = kind
            continue
        inner = lacking(kind.get("properties", {}), there.get("properties", {}))
        if inner and "properties" in there:
            found[name] = {"properties": inner}
    return found


def reason_of(error: Any) -> str:
    """The type, the reason and the cause of an item's error, shortened."""
    if not isinstance(error, Mapping):
        return str(error)[:REASON_CHARS_MAX]
    text = f"{error.get('type')}: {error.get('reason')}"
    cause = error.get("caused_by")
    if isinstance(cause, Mapping):
        text += f" ({cause.get('type')}: {cause.get('reason')})"
    return text[:REASON_CHARS_MAX]
