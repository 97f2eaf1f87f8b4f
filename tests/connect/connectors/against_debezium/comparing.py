"""Two lists of events side by side: what differs, apart from values of the moment."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from connect.connectors.against_debezium.running import Event

MOMENT = {"ts_ms", "ts_us", "ts_ns"}  # of the connector's clock
OF_SERVER = {"lsn", "txId", "sequence", "xmin", "lsn_commit", "pos", "gtid", "thread", "server_id", "query"}
Topics = dict[str, list[Any]]


def topics_of(events: Iterable[Event], *, is_recorded: bool = False) -> Topics:
    """Events by topic, with values of the moment hidden."""
    found: Topics = {}
    for each in events:
        if is_setting_up(each):
            continue
        read = [None if part is None else json.loads(part) for part in (each.key, each.value)]
        if is_recorded and each.topic.endswith(".transaction"):
            read[0]["payload"]["id"] = "any"
        headers = [[name, None if value is None else json.loads(value)] for name, value in each.headers]
        if read[1] and (ddl := (read[1].get("payload") or {}).get("ddl", "")).startswith("DROP"):
            read[1]["payload"]["ddl"] = re.sub(r"DROP TABLE \S*?(\w+)`?( /\*.*)?$", r"DROP \1", ddl)
        shown = {
            "key": read[0],
            "value": hidden(read[1], is_recorded=is_recorded),
            "headers": [[name, "any" if name.endswith(".runId") else value] for name, value in headers],
        }
        found.setdefault(each.topic, []).append(shown)
    return found


SETTING_UP = ("SET ", "DROP ", "CREATE DATABASE", "USE ")


def is_setting_up(event: Event) -> bool:
    """Whether this is a statement of Debezium's snapshot other than CREATE TABLE."""
    payload = json.loads(event.value or b"{}").get("payload") or {}
    if "ddl" not in payload or payload["source"]["snapshot"] == "false":
        return False
    return payload["ddl"].startswith(SETTING_UP) or not payload["source"]["db"].endswith(
        payload["source"]["name"]
    )


def hidden(value: Any, *, is_recorded: bool) -> Any:
    """A value without those of the moment."""
    if not isinstance(value, dict) or not isinstance(value.get("payload"), dict):
        return value
    payload = dict(value["payload"])
    for name in MOMENT & payload.keys():
        payload[name] = kind_of(payload[name])
    for each in payload.get("data_collections") or ():
        each["data_collection"] = re.sub(r".*LogicalDecodingMessageId@.*", "message", each["data_collection"])
    if payload.get("data_collections"):
        payload["data_collections"].sort(key=lambda each: each["data_collection"])  # Java's has no order
    source = payload.get("source")
    if isinstance(source, dict):
        source = dict(source)
        source["version"] = "any"
        is_streamed = str(source.get("snapshot")) == "false" and (payload.get("op") != "m" or source["txId"])
        shown = set() if is_streamed and not is_recorded else MOMENT | OF_SERVER
        for name in shown & source.keys():
            source[name] = kind_of(source[name])
        payload["source"] = source
    if is_recorded:
        for holder in (payload, payload.get("transaction")):
            if isinstance(holder, dict) and isinstance(holder.get("id"), str):
                server = re.sub(r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "server", holder["id"])
                holder["id"] = re.sub(r"\d+", "0", server)
    return {**value, "payload": payload}


def kind_of(value: Any) -> str | None:
    return None if value is None else type(value).__name__


def differences(theirs: Topics, own: Topics) -> list[str]:
    """Each place where events differ, as a line of text."""
    found = []
    for topic in sorted(theirs.keys() | own.keys()):
        if topic not in own or topic not in theirs:
            side = "only Debezium has" if topic not in own else "only ours has"
            found.append(f"{side} the topic {topic}")
            continue
        pairs = [theirs[topic], own[topic]]
        if len(pairs[0]) != len(pairs[1]):
            kinds = [[op_of(each) for each in side] for side in pairs]
            found.append(f"{topic}: {len(pairs[0])} events in place of {len(pairs[1])}: {kinds}")
        seen: set[str] = set()
        for place, (one, other) in enumerate(zip(*pairs, strict=False)):
            for path, left, right in unlike(one, other, ""):
                line = f"{path}: {short(left)} here {short(right)}"
                if line not in seen:
                    seen.add(line)
                    found.append(f"{topic} {place} {op_of(one)} {line}")
    return found


def op_of(event: Mapping[str, Any]) -> str:
    payload = (event.get("value") or {}).get("payload")
    return str(payload.get("op", payload.get("status", "-"))) if isinstance(payload, dict) else "null"


def short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text if len(text) < 260 else text[:260] + "…"


def unlike(left: Any, right: Any, path: str) -> Iterable[tuple[str, Any, Any]]:
    if isinstance(left, dict) and isinstance(right, dict):
        if path.endswith(".schema") or "field" in left:
            left, right = by_name(left), by_name(right)
        for name in [*left, *(each for each in right if each not in left)]:
            if name not in left or name not in right:
                yield f"{path}.{name}", left.get(name, "(none)"), right.get(name, "(none)")
            else:
                yield from unlike(left[name], right[name], f"{path}.{name}")
        if list(left) != list(right) and set(left) == set(right) and "payload" in path:
            yield f"{path} order", list(left), list(right)
    elif isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        for place, pair in enumerate(zip(left, right, strict=True)):
            yield from unlike(*pair, f"{path}[{place}]")
    elif left != right or isinstance(left, bool) is not isinstance(right, bool):
        yield path, left, right


def by_name(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema whose fields are named, so that one field more does not shift the others."""
    fields = schema.get("fields")
    if not isinstance(fields, list):
        return schema
    named = {str(each["field"]): by_name(each) for each in fields}
    return {**schema, "fields": named, "order": list(named)}
