"""The request of a query: the options of Spark's own Kafka connector, and a few of ours.

In: options as Spark hands them over, and whether the query is a stream. Out: one frozen value. Everything
that can be known to be wrong without asking a broker is an error here: one sentence with the option's name.
Does not know: clusters, Spark.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from barnabas.client.core.topology import TopicPartition
from barnabas.spark.basics.settings import PREFIX, ClientSettings, OptionError, client_settings, flag, number
from barnabas.spark.formats.formats import MODES, SIDES, Format, format_of, mode_of
from barnabas.spark.formats.formats import OPTIONS as FORMAT_OPTIONS
from barnabas.spark.formats.registry import PREFIX as REGISTRY_PREFIX
from barnabas.spark.interceptors import NO_INTERCEPTORS, Interceptors, interceptors_of
from barnabas.spark.interceptors import OPTION as INTERCEPTORS
from barnabas.spark.interceptors import SETTINGS as INTERCEPTOR_SETTINGS
from barnabas.spark.positions import EARLIEST, LATEST, At, parse_assignment, parse_positions
from barnabas.spark.reading.columns import COLUMNS, HEADERS

STRATEGIES = ("subscribe", "subscribePattern", "assign")
SPECIAL = {"earliest": EARLIEST, "latest": LATEST}
BY_TIMESTAMP_STRATEGIES = ("error", "latest")
DURATION = re.compile(r"\s*(\d+)\s*(ms|msec|s|sec|second|m|min|minute|h|hour|d|day)s?\s*", re.IGNORECASE)
DURATION_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
SOURCE_OPTIONS = (
    *STRATEGIES,
    "startingOffsets",
    "startingOffsetsByTimestamp",
    "startingTimestamp",
    "startingOffsetsByTimestampStrategy",
    "endingOffsets",
    "endingOffsetsByTimestamp",
    "endingTimestamp",
    "failOnDataLoss",
    "failOnCorruptRecords",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "minPartitions",
    "maxRecordsPerPartition",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "groupIdPrefix",
    "includeHeaders",
    "columns",
)
OTHER_OPTIONS = ("mode", "path", "checkpointLocation", "queryName", "topic", INTERCEPTORS)


@dataclass(frozen=True, slots=True)
class SourceOptions:
    client: ClientSettings
    starting: At
    ending: At
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    assigned: tuple[TopicPartition, ...] = ()
    fails_on_data_loss: bool = True
    fails_on_corrupt_records: bool = True
    poll_timeout_ms: int = 120_000
    offset_retries: int = 3
    offset_retry_interval_ms: int = 1000
    min_partitions: int | None = None
    records_per_partition_max: int | None = None
    offsets_per_trigger_max: int | None = None
    offsets_per_trigger_min: int | None = None
    trigger_delay_max_ms: int = 15 * 60_000
    columns: tuple[str, ...] = COLUMNS
    formats: tuple[Format, ...] = ()
    mode: str = MODES[0]  # what happens to rows that cannot be decoded
    interceptors: Interceptors = NO_INTERCEPTORS


def source_options(
    given: Mapping[str, str], *, streaming: bool, checks_positions: bool = True
) -> SourceOptions:
    """`checks_positions` is False while it is not known yet whether the query is a stream."""
    options = {name.lower(): value for name, value in given.items()}
    check_names(options, (*SOURCE_OPTIONS, *OTHER_OPTIONS))
    client = client_settings(options)
    topics, pattern, assigned = subscription(options)
    return SourceOptions(
        client=client,
        starting=starting(options, streaming=streaming) if checks_positions else At("startingOffsets"),
        ending=ending(options, streaming=streaming) if checks_positions else At("endingOffsets"),
        topics=topics,
        pattern=pattern,
        assigned=assigned,
        fails_on_data_loss=flag(options.get("failondataloss", "true"), "failOnDataLoss"),
        fails_on_corrupt_records=flag(options.get("failoncorruptrecords", "true"), "failOnCorruptRecords"),
        poll_timeout_ms=whole(options, "kafkaConsumer.pollTimeoutMs", 120_000, 1),
        offset_retries=whole(options, "fetchOffset.numRetries", 3, 0),
        offset_retry_interval_ms=whole(options, "fetchOffset.retryIntervalMs", 1000, 0),
        min_partitions=maybe(options, "minPartitions"),
        records_per_partition_max=maybe(options, "maxRecordsPerPartition"),
        **trigger_limits(options),
        columns=wanted_columns(options),
        formats=formats_of(options),
        mode=mode_of(options),
        interceptors=interceptors_of(options),
    )


def formats_of(options: Mapping[str, str]) -> tuple[Format, ...]:
    found = (format_of(options, side) for side in SIDES)
    return tuple(each for each in found if each is not None)


def check_names(options: Mapping[str, str], known: tuple[str, ...]) -> None:
    names = {name.lower(): name for name in known}
    for side in ("key", "value"):
        names |= {f"{side}.{name}": f"{side}.{name}" for name in FORMAT_OPTIONS}
    for name in options:
        if name in names or name.startswith((PREFIX, REGISTRY_PREFIX, INTERCEPTOR_SETTINGS)):
            continue
        close = difflib.get_close_matches(name, names, 1)
        hint = f"did you mean {names[close[0]]}?" if close else "see the list of options in the documentation"
        raise OptionError(f"there is no option {name!r}: {hint}")


def subscription(
    options: Mapping[str, str],
) -> tuple[tuple[str, ...], str | None, tuple[TopicPartition, ...]]:
    chosen = [name for name in STRATEGIES if name.lower() in options]
    if len(chosen) != 1:
        found = f"{' and '.join(chosen)} are given" if chosen else "none is given"
        raise OptionError(f"exactly one of the options {', '.join(STRATEGIES)} says what to read: {found}")
    [name] = chosen
    text = options[name.lower()].strip()
    if not text:
        raise OptionError(f"the option {name} is empty")
    if name == "assign":
        return (), None, tuple(parse_assignment(text, name))
    if name == "subscribePattern":
        try:
            re.compile(text)
        except re.error as error:
            raise OptionError(f"the option {name} is no regular expression: {error}") from None
        return (), text, ()
    topics = tuple(dict.fromkeys(topic.strip() for topic in text.split(",") if topic.strip()))
    if not topics:
        raise OptionError(f"the option {name} names no topic")
    return topics, None, ()


def starting(options: Mapping[str, str], *, streaming: bool) -> At:
    strategy = options.get("startingoffsetsbytimestampstrategy", "error").strip().lower()
    if strategy not in BY_TIMESTAMP_STRATEGIES:
        raise OptionError(
            f"the option startingOffsetsByTimestampStrategy is {strategy!r}, it may be error or latest"
        )
    default = "latest" if streaming else "earliest"
    found = position(options, "starting", default, falls_back=strategy == "latest")
    if not streaming and has_special(found, LATEST):
        raise OptionError(
            "the option startingOffsets cannot be latest in a batch query: there would be no row"
        )
    return found


def ending(options: Mapping[str, str], *, streaming: bool) -> At:
    names = ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp")
    given = [name for name in names if name.lower() in options]
    if streaming and given:
        raise OptionError(f"the option {given[0]} is for batch queries: a stream has no end")
    found = position(options, "ending", "latest", falls_back=True)
    if has_special(found, EARLIEST):
        raise OptionError("the option endingOffsets cannot be earliest: there would be no row")
    return found


def position(options: Mapping[str, str], which: str, default: str, *, falls_back: bool) -> At:
    """Of several ways given the first counts, as in Spark's connector."""
    option = f"{which}Timestamp"
    if option.lower() in options:
        return At(option, timestamp_ms=whole(options, option, 0, 0), falls_back_to_latest=falls_back)
    option = f"{which}OffsetsByTimestamp"
    if option.lower() in options:
        times = parse_positions(options[option.lower()], option)
        if any(value < 0 for value in times.values()):
            raise OptionError(f"the option {option} has a negative timestamp")
        return At(option, timestamps_ms=tuple(sorted(times.items())), falls_back_to_latest=falls_back)
    option = f"{which}Offsets"
    text = options.get(option.lower(), default).strip()
    special = SPECIAL.get(text.lower())
    if special is not None:
        return At(option, special=special)
    if not text.startswith("{"):
        raise OptionError(
            f"the option {option} is {text!r}, it may be earliest, latest, "
            "or JSON with an offset for each partition"
        )
    offsets = parse_positions(text, option)
    low = min(offsets.values())
    if low < EARLIEST:
        raise OptionError(
            f"the option {option} has the offset {low}: only -1 (latest) and -2 (earliest) are special"
        )
    return At(option, offsets=tuple(sorted(offsets.items())))


def has_special(at: At, special: int) -> bool:
    return at.special == special or any(offset == special for _, offset in at.offsets or ())


def trigger_limits(options: Mapping[str, str]) -> dict[str, Any]:
    most, least = maybe(options, "maxOffsetsPerTrigger"), maybe(options, "minOffsetsPerTrigger")
    if most is not None and least is not None and least > most:
        raise OptionError(f"the option minOffsetsPerTrigger ({least}) is above maxOffsetsPerTrigger ({most})")
    return {
        "offsets_per_trigger_max": most,
        "offsets_per_trigger_min": least,
        "trigger_delay_max_ms": duration_ms(options.get("maxtriggerdelay", "15m"), "maxTriggerDelay"),
    }


def wanted_columns(options: Mapping[str, str]) -> tuple[str, ...]:
    """All columns of Spark's connector, or those that the option `columns` names, in its order."""
    with_headers = flag(options.get("includeheaders", "false"), "includeHeaders")
    available = (*COLUMNS, HEADERS) if with_headers else COLUMNS
    text = options.get("columns")
    if text is None:
        return available
    by_name = {name.lower(): name for name in (*COLUMNS, HEADERS)}
    chosen = []
    for name in (each.strip() for each in text.split(",")):
        known = by_name.get(name.lower())
        if known is None:
            raise OptionError(f"the option columns names {name!r}, there are {', '.join(by_name.values())}")
        if known in chosen:
            raise OptionError(f"the option columns names {name!r} twice")
        chosen.append(known)
    return tuple(chosen)


def duration_ms(text: str, option: str) -> int:
    match = DURATION.fullmatch(text)
    if match is None:
        raise OptionError(f"the option {option} is {text!r}, it must be a time such as 90s or 15m")
    number_text, unit = match.groups()
    scale = 1 if unit.lower().startswith("ms") else DURATION_MS[unit[0].lower()]
    return int(number_text) * scale


def whole(options: Mapping[str, str], name: str, default: int, least: int) -> int:
    lowered = name.lower()
    return number({name: options[lowered]}, name, default, least, "") if lowered in options else default


def maybe(options: Mapping[str, str], name: str) -> int | None:
    return whole(options, name, 0, 1) if name.lower() in options else None
