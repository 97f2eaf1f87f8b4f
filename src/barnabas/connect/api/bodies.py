"""Bodies of requests: parsed, checked, and refused with the place that is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request

from barnabas.connect.herder.states import Target
from barnabas.services.errors import ApiError
from barnabas.services.json_bodies import kind_of, read_object
from barnabas.services.negotiation import content_type

JSON = ("application/json",)


async def json_object(request: Request) -> dict[str, Any]:
    content_type(request.headers.get("content-type"), JSON)
    if not (await request.body()).strip():
        raise ApiError(400, 400, "the request has no body: send a JSON object")
    return await read_object(request)


def config_of(value: Any, where: str) -> dict[str, str | None]:
    """A configuration: texts, numbers and booleans become texts; objects and arrays are refused."""
    if not isinstance(value, dict):
        raise ApiError(400, 400, f"{where} must be a JSON object, not {kind_of(value)}")
    return {name: text_of(each, f"{where}[{name!r}]") for name, each in value.items()}


def text_of(value: Any, where: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    raise ApiError(400, 400, f"{where} must be a text, a number or a boolean, not {kind_of(value)}")


def new_connector(body: Mapping[str, Any]) -> tuple[str, dict[str, str | None], Target | None]:
    """The name, configuration and target state of POST /connectors."""
    known_fields(body, "name", "config", "initial_state")
    config = config_of(body.get("config"), "config")
    given = body.get("name", config.get("name"))
    name = (text_of(given, "name") or "").strip()
    check_name(name, config)
    state = body.get("initial_state")
    targets = {"RUNNING": Target.STARTED, "PAUSED": Target.PAUSED, "STOPPED": Target.STOPPED}
    if state is not None and str(state).upper() not in targets:
        raise ApiError(400, 400, f"initial_state must be one of {', '.join(targets)}, not {state!r}")
    return name, config, targets[str(state).upper()] if state is not None else None


def known_fields(body: Mapping[str, Any], *known: str, where: str = "") -> None:
    """Refuse fields that mean nothing: one may be a known one, written wrong."""
    unexpected = sorted(body.keys() - set(known))
    if unexpected:
        raise ApiError(400, 400, f"{where}unknown field {unexpected[0]!r}: known are {', '.join(known)}")


def check_name(name: str, config: dict[str, str | None]) -> None:
    """The name in the configuration is set, or must be the same."""
    given = config.setdefault("name", name)
    if given != name:
        raise ApiError(
            400,
            400,
            f"Connector name configuration ({given}) doesn't match connector name in the URL ({name})",
        )


def offsets_of(body: Mapping[str, Any]) -> list[tuple[dict[str, Any], dict[str, Any] | None]]:
    known_fields(body, "offsets")
    entries = body.get("offsets")
    if not isinstance(entries, list) or not entries:
        raise ApiError(400, 400, "Partitions / offsets need to be provided for an alter offsets request")
    found = []
    for index, each in enumerate(entries):
        partition = each.get("partition") if isinstance(each, dict) else None
        offset = each.get("offset") if isinstance(each, dict) else None
        if not isinstance(partition, dict) or not (offset is None or isinstance(offset, dict)):
            raise ApiError(400, 400, f"offsets[{index}] must have the objects partition and offset")
        known_fields(each, "partition", "offset", where=f"offsets[{index}]: ")
        found.append((partition, offset))
    return found
