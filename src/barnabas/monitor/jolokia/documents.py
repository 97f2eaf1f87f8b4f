"""Responses to Jolokia's requests, as values for JSON.

In: a request, the registry. Out: the document that Jolokia's agent would respond with: `request`, `value`,
`timestamp` and `status`, or `error` and `error_type`. A generator of steps: a read of all MBeans takes long.
Does not know: HTTP.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from barnabas.metrics.object_names import ObjectName, parse_object_name
from barnabas.monitor.jolokia import mbeans
from barnabas.monitor.jolokia.requests import (
    ILLEGAL,
    LIST,
    NO_ATTRIBUTE,
    NO_MBEAN,
    SEARCH,
    VERSION,
    JolokiaError,
    JolokiaRequest,
    joined_path,
)

if TYPE_CHECKING:
    from barnabas.metrics.registry import Registry
    from barnabas.runtime.pieces import Steps

AGENT_VERSION, PROTOCOL_VERSION = "1.7.2", "7.2"  # of the agent that responds like this
DEPTH_REACHED = 1  # stands where `maxDepth` cuts a list
WILDCARD = "*"


def document_of(
    request: JolokiaRequest, registry: Registry, product: Mapping[str, str], now_s: float
) -> Steps[Any]:
    head = {"request": echo(request)}
    try:
        value = yield from value_of(request, registry, product)
    except JolokiaError as error:
        return {**head, **refusal(error)}
    return {**head, "value": value, "status": 200, "timestamp": int(now_s)}


def refusal(error: JolokiaError) -> dict[str, Any]:
    return {
        "error_type": error.error_type,
        "error": f"{error.error_type} : {error}",
        "status": error.status,
    }


def echo(request: JolokiaRequest) -> dict[str, Any]:
    found: dict[str, Any] = {"type": request.type}
    if request.mbean:
        found["mbean"] = canonical_or_given(request)
    if request.attributes is not None:
        found["attribute"] = request.attributes[0] if request.has_one_attribute else list(request.attributes)
    if request.path:
        found["path"] = joined_path(request.path)
    return found


def canonical_or_given(request: JolokiaRequest) -> str:
    try:
        return shown(parse_object_name(request.mbean), request)
    except ValueError:
        return request.mbean


def shown(name: ObjectName, request: JolokiaRequest) -> str:
    return name.canonical if request.is_canonical else f"{name.domain}:{name.keys_text(is_sorted=False)}"


def value_of(request: JolokiaRequest, registry: Registry, product: Mapping[str, str]) -> Steps[Any]:
    if request.type == VERSION:
        return {
            "agent": AGENT_VERSION,
            "protocol": PROTOCOL_VERSION,
            "config": {"agentType": "servlet", "maxDepth": "15", "canonicalNaming": "true"},
            "info": dict(product),
        }
    if request.type == LIST:
        return (yield from listed(request, registry))
    try:
        name = parse_object_name(request.mbean)
    except ValueError as error:
        raise JolokiaError(400, ILLEGAL, f"Invalid object name. {error}") from None
    if request.type == SEARCH:
        found_names = yield from mbeans.names(registry, name)
        return sorted(shown(each, request) for each in found_names)
    found = yield from mbeans.find(registry, name)
    if not found:
        pattern = f"No MBean with pattern {request.mbean} found for reading attributes"
        raise JolokiaError(404, NO_MBEAN, pattern if name.is_pattern else request.mbean)
    if name.is_pattern:
        return inner(by_pattern(found, request), request.path)
    return inner(of_one(next(iter(found.values())), request), request.path)


def by_pattern(found: mbeans.Found, request: JolokiaRequest) -> dict[str, Any]:
    """MBeans that have one of the attributes, with those that they have."""
    values = {}
    for name, attributes in found.items():
        wanted = {
            each: plain(value)
            for each, value in attributes.items()
            if request.attributes is None or each in request.attributes
        }
        if wanted:
            values[shown(name, request)] = wanted
    if not values:
        names = ", ".join(request.attributes or ())
        raise JolokiaError(400, ILLEGAL, f"No matching attributes {names} found on MBeans {request.mbean}")
    return values


def of_one(attributes: dict[str, mbeans.Value], request: JolokiaRequest) -> Any:
    if request.attributes is None:
        return {name: plain(value) for name, value in attributes.items()}
    found: dict[str, Any] = {}
    for name in request.attributes:
        if name in attributes:
            found[name] = plain(attributes[name])
        elif request.ignores_errors and not request.has_one_attribute:
            found[name] = f"ERROR: No such attribute: {name} (class {NO_ATTRIBUTE})"
        else:
            raise JolokiaError(404, NO_ATTRIBUTE, f"No such attribute: {name}")
    return found[request.attributes[0]] if request.has_one_attribute else found


def plain(value: mbeans.Value) -> Any:
    """JSON has no numbers for these; Jolokia writes them as texts."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def inner(value: Any, path: tuple[str, ...]) -> Any:
    """The part of a value that a path names; `*` stands for every key."""
    for index, part in enumerate(path):
        if isinstance(value, dict) and part == WILDCARD:
            return {key: inner(each, path[index + 1 :]) for key, each in value.items()}
        if not isinstance(value, dict):
            return None  # a number has no parts
        if part not in value:
            raise JolokiaError(404, NO_ATTRIBUTE, f"Invalid path {joined_path(path)}: no {part} there")
        value = value[part]
    return value


def listed(request: JolokiaRequest, registry: Registry) -> Steps[Any]:
    """Domains, their MBeans, and the attributes of these; cut at `maxDepth`, below the path."""
    pattern = ObjectName(request.path[0], (), is_open=True) if request.path else None
    found = yield from mbeans.find(registry, pattern)
    if not found:
        return {}
    tree: dict[str, Any] = {}
    for name, attributes in found.items():
        tree.setdefault(name.domain, {})[name.keys_text(is_sorted=request.is_canonical)] = {
            "desc": "Information on the management interface of the MBean",
            "class": "com.yammer.metrics.reporting.JmxReporter" if "name" in dict(name.properties) else
            "org.apache.kafka.common.metrics.JmxReporter$KafkaMbean",
            "attr": mbeans.attribute_descriptions(attributes),
            "op": {},
        }  # fmt: skip
    try:
        value = inner(tree, request.path)
    except JolokiaError as error:
        raise JolokiaError(404, NO_MBEAN, str(error)) from None
    depth = request.depth_max
    return cut(value, depth) if depth else value


def cut(value: Any, depth: int) -> Any:
    if not isinstance(value, dict):
        return value
    if depth <= 0:
        return DEPTH_REACHED
    return {key: cut(each, depth - 1) for key, each in value.items()}
