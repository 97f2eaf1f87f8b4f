"""Settings of one consumer instance, as its creator gives them.

In: the body of the request. Out: `InstanceSettings`, or ApiError: 42204 for a bad setting, 422 for a field
that is not known, 400 for an unknown format. Old clients send numbers and booleans as texts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from barnabas.client.consumers.group_consumer import OffsetReset
from barnabas.rest.formats.names import DataFormat
from barnabas.rest.v2.call import BAD_REQUEST, INT_MAX, fields
from barnabas.rest.v2.media import FORMATS
from barnabas.services.errors import ApiError

INVALID_SETTING = 42204
MIN_BYTES_MAX = 10_000_000
NAME_LENGTH_MAX = 255
ANY = -1  # of fetch.min.bytes: return what is there
KNOWN = frozenset(
    {
        "id",
        "name",
        "format",
        "auto.offset.reset",
        "auto.commit.enable",
        "fetch.min.bytes",
        "responseMinBytes",
        "consumer.request.timeout.ms",
        "requestWaitMs",
    }
)


@dataclass(frozen=True, slots=True)
class InstanceSettings:
    name: str | None = None
    format: DataFormat = DataFormat.BINARY
    reset: OffsetReset | None = None  # None: the proxy's
    auto_commit: bool = False
    bytes_min: int | None = None
    timeout_ms: int | None = None


def instance_settings(body: Any) -> InstanceSettings:
    if body is None:
        return InstanceSettings()
    given = fields(body, KNOWN)
    bytes_min = first(given, "fetch.min.bytes", "responseMinBytes")
    timeout_ms = first(given, "consumer.request.timeout.ms", "requestWaitMs")
    return InstanceSettings(
        name_of(first(given, "name", "id")),
        format_of(given.get("format")),
        reset_of(given.get("auto.offset.reset")),
        flag_of(given.get("auto.commit.enable"), "auto.commit.enable"),
        None if bytes_min is None else bytes_of(bytes_min),
        None if timeout_ms is None else number_of(timeout_ms, "consumer.request.timeout.ms", 0, INT_MAX),
    )


def first(given: dict[str, Any], *names: str) -> Any:
    return next((given[name] for name in names if given.get(name) is not None), None)


def name_of(value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not 0 < len(value) <= NAME_LENGTH_MAX:
        raise invalid("name", value, f"a text of 1 to {NAME_LENGTH_MAX} characters")
    return value


def format_of(value: Any) -> DataFormat:
    if value is None:
        return DataFormat.BINARY
    found = FORMATS.get(value.lower()) if isinstance(value, str) else None
    if found is None:
        raise ApiError(
            400, BAD_REQUEST, f"Invalid format type {shown(value)}: use one of {', '.join(FORMATS)}"
        )
    return found


def reset_of(value: Any) -> OffsetReset | None:
    if value is None:
        return None
    try:
        return OffsetReset(value)
    except ValueError:
        raise invalid("auto.offset.reset", value, "earliest, latest or none") from None


def flag_of(value: Any, name: str) -> bool:
    if value is None or isinstance(value, bool):
        return bool(value)
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise invalid(name, value, "true or false")


def bytes_of(value: Any) -> int:
    number = number_of(value, "fetch.min.bytes", ANY, MIN_BYTES_MAX)
    if number == 0:
        raise invalid("fetch.min.bytes", value, f"{ANY}, or from 1 to {MIN_BYTES_MAX}")
    return number


def number_of(value: Any, name: str, smallest: int, largest: int) -> int:
    number = value
    if (
        isinstance(value, str)
        and value.lstrip("-").isascii()
        and value.lstrip("-").isdigit()
        and len(value) < 20
    ):
        number = int(value)
    if type(number) is not int or not smallest <= number <= largest:
        raise invalid(name, value, f"a whole number from {smallest} to {largest}")
    return number


def invalid(name: str, value: Any, allowed: str) -> ApiError:
    return ApiError(
        422, INVALID_SETTING, f"Invalid consumer configuration: {name} is {shown(value)}: use {allowed}"
    )


def shown(value: Any) -> str:
    return repr(value)[:100]
