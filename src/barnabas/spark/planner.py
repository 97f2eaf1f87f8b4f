"""The input of a query: partitions and offsets, asked from the cluster while the query is planned.

In: the query's options. Out: partitions, where they begin and end, ranges for tasks. Questions that fail for
reasons that pass are asked again (`fetchOffset.*`). Lost offsets are reported as Spark's connector does: an
error, or a warning when the query says so. Does not know: Spark, records.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from barnabas.client.blocking import run
from barnabas.client.core.cluster import MISSING_TOPIC
from barnabas.client.core.errors import BootstrapError, NoTopic, Unreachable
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import KafkaError
from barnabas.spark.basics.cluster import WorkerCluster, shared_cluster
from barnabas.spark.basics.settings import OptionError
from barnabas.spark.options import SourceOptions
from barnabas.spark.planning import split
from barnabas.spark.positions import EARLIEST, LATEST, At, Offsets
from barnabas.spark.reading.fetcher import DataLoss, OffsetRange

log = logging.getLogger("barnabas.spark")
Result = TypeVar("Result")


class Planner:
    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._topic_ids: dict[str, bytes] = {}

    @property
    def _cluster(self) -> WorkerCluster:
        return shared_cluster(self._options.client)

    def places(self) -> list[TopicPartition]:
        """The partitions that the query reads now."""
        return self._ask(self._find_places)

    def _find_places(self) -> list[TopicPartition]:
        options = self._options
        if options.pattern is not None:
            pattern = re.compile(options.pattern)
            known = run(self._cluster.topics(None))
            topics = {name: topic for name, topic in known.items() if pattern.fullmatch(name)}
        else:
            names = options.topics or sorted({place.topic for place in options.assigned})
            try:
                topics = run(self._cluster.topics(names))
            except NoTopic as error:
                option = "subscribe" if options.topics else "assign"
                text = f"the option {option} names topic {error.name}: there is no such topic"
                raise KafkaError(error.code, text) from None
        self._topic_ids = {name: topic.topic_id for name, topic in topics.items()}
        if options.assigned:
            for place in options.assigned:
                if place.partition not in topics[place.topic].partitions:
                    count = len(topics[place.topic].partitions)
                    raise OptionError(
                        f"the option assign names {place}, topic {place.topic} has {count} partitions"
                    )
            return list(options.assigned)
        return sorted(
            TopicPartition(name, index) for name, topic in topics.items() for index in topic.partitions
        )

    def earliest(self, places: Iterable[TopicPartition]) -> Offsets:
        wanted = dict.fromkeys(places, EARLIEST)
        return self._ask(lambda: self._cluster.offsets(wanted)) if wanted else {}

    def latest(self, places: Iterable[TopicPartition]) -> Offsets:
        wanted = dict.fromkeys(places, LATEST)
        return self._ask(lambda: self._cluster.offsets(wanted)) if wanted else {}

    def resolve(self, at: At, places: list[TopicPartition]) -> Offsets:
        """The offsets that an option means, one for each partition."""
        if at.special is not None:
            return self.earliest(places) if at.special == EARLIEST else self.latest(places)
        if at.timestamp_ms is not None:
            return self._by_time(at, dict.fromkeys(places, at.timestamp_ms))
        if at.timestamps_ms is not None:
            times = dict(at.timestamps_ms)
            self._check_same(at.option, places, times)
            return self._by_time(at, times)
        offsets = dict(at.offsets or ())
        self._check_same(at.option, places, offsets)
        specials = {place: offset for place, offset in offsets.items() if offset < 0}
        if specials:
            offsets |= self._ask(lambda: self._cluster.offsets(specials))
        return offsets

    def at_time(self, places: Iterable[TopicPartition], timestamp_ms: int) -> Offsets:
        """The first offset with this timestamp or a later one; the end of a partition that has none."""
        wanted = dict.fromkeys(places, timestamp_ms)
        found = self._ask(lambda: self._cluster.offsets(wanted)) if wanted else {}
        return found | self.latest([place for place, offset in found.items() if offset < 0])

    def _by_time(self, at: At, times: Mapping[TopicPartition, int]) -> Offsets:
        found = self._ask(lambda: self._cluster.offsets(times))
        missing = [place for place, offset in found.items() if offset < 0]
        if missing and not at.falls_back_to_latest:
            place = missing[0]
            raise OptionError(
                f"the option {at.option}: {place} has no record with a timestamp of {times[place]} or later "
                "(startingOffsetsByTimestampStrategy=latest would begin at its end)"
            )
        return found | self.latest(missing)

    def _check_same(
        self, option: str, places: list[TopicPartition], given: Mapping[TopicPartition, int]
    ) -> None:
        missing, unknown = sorted(set(places) - set(given)), sorted(set(given) - set(places))
        if missing or unknown:
            which = f"{missing[0]} is missing" if missing else f"{unknown[0]} is not read by this query"
            raise OptionError(f"the option {option} must name each partition that is read once: {which}")

    def check_bounds(self, option: str, offsets: Offsets) -> None:
        """An offset that is given must lie in the log, its end included."""
        earliest, latest = self.earliest(offsets), self.latest(offsets)
        for place, offset in offsets.items():
            if not earliest[place] <= offset <= latest[place]:
                self.lose(
                    f"the option {option} has offset {offset} for {place}, which has offsets "
                    f"{earliest[place]} to {latest[place]}"
                )

    def check_order(self, start: Offsets, end: Offsets) -> None:
        """A batch ends where it begins, or behind."""
        options = self._options
        for place in sorted(start):
            if start[place] > end[place] and options.fails_on_data_loss:
                raise OptionError(
                    f"the option {options.ending.option} has offset {end[place]} for {place}, "
                    f"before the beginning at {start[place]} ({options.starting.option})"
                )

    # -- ranges ----------------------------------------------------------------------------------

    def ranges(self, start: Offsets, end: Offsets) -> list[OffsetRange]:
        """Divide everything between `start` and `end` among tasks."""
        gone = sorted(set(start) - set(end))
        if gone:
            self.lose(f"{', '.join(map(str, gone))} are gone: the topic was deleted, or partitions of it")
        new = [place for place in end if place not in start]
        begins = {**start, **self.earliest(new)}
        for place in new:
            if begins[place] > 0:
                self.lose(f"{place} is new and starts at offset {begins[place]} instead of 0")
        found = []
        for place in sorted(end):
            if begins[place] > end[place]:
                self.lose(f"{place} was read up to offset {begins[place]} and now ends at {end[place]}")
                continue
            topic_id = self._topic_ids.get(place.topic, b"")
            found.append(OffsetRange(place.topic, topic_id, place.partition, begins[place], end[place]))
        options = self._options
        return split(found, options.min_partitions, options.records_per_partition_max)

    def lose(self, what: str) -> None:
        if self._options.fails_on_data_loss:
            raise DataLoss(
                f"{what}. Some data may have been missed; set the option failOnDataLoss to false to go on."
            )
        log.warning("%s; the query goes on", what)

    def _ask(self, attempt: Callable[[], Result]) -> Result:
        left = self._options.offset_retries
        while True:
            try:
                return attempt()
            except (Unreachable, KafkaError) as error:
                passes = isinstance(error, Unreachable) or (
                    error.code.retriable and error.code not in MISSING_TOPIC
                )
                if isinstance(error, BootstrapError) and left <= 0:
                    raise Unreachable(f"the option kafka.bootstrap.servers: {error}") from None
                if not passes or left <= 0:
                    raise
            left -= 1
            self._cluster.forget_leaders(list(self._topic_ids))
            time.sleep(self._options.offset_retry_interval_ms / 1000)
