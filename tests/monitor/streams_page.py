"""An application of Streams at work, with the engine's page: batches run in this process, without Spark."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from barnabas.client.core.topology import TopicPartition
from barnabas.engine.catalogue.catalogue import Catalogue, application_file
from barnabas.engine.catalogue.metrics import Endpoint
from barnabas.engine.catalogue.reporter import Reporter
from barnabas.engine.catalogue.statuses import ApplicationStatus, QueryState
from barnabas.engine.places.place import FolderPlace
from barnabas.spark.reading.fetcher import LATEST
from barnabas.streams import StreamsBuilder
from barnabas.streams.run.program import report
from barnabas.streams.spark.conductor import Query
from streams.spark.local import LocalApplication

NAME = "words"


class Words:
    """Counts of words, of records that are produced meanwhile."""

    def __init__(self, cluster: Any, folder: Path) -> None:
        self._place, self._stop = FolderPlace(folder / "catalogue"), threading.Event()
        self.endpoint = Endpoint(Catalogue(self._place), "127.0.0.1", 0)
        self._cluster, self._folder = cluster, folder
        self._thread = threading.Thread(target=self._work, daemon=True)

    def start(self) -> None:
        """The cluster runs."""
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(60)
        self.endpoint.close()

    def _work(self) -> None:
        builder = StreamsBuilder(NAME)
        lines = builder.stream(f"{NAME}-lines", key=str, value=str)
        lines.group_by_key().count(store="counts").to_stream().to(f"{NAME}-counts", key=str, value=int)
        status = ApplicationStatus(NAME, programs={"streams": {"restarts": 0}}, updated=time.time())
        self._place.write(application_file(NAME), status.data())
        reporter = Reporter(self._place, NAME, "streams", write_s=0.2)
        seen: dict[str, int] = {}
        with LocalApplication(self._cluster, builder.build(), self._folder / "state") as application:
            application.settings = replace(application.settings, measures_details=True)
            application.create(f"{NAME}-lines", f"{NAME}-counts", partitions=2)
            application.run()
            for query in application.queries:
                reporter.set_state(query.name, QueryState.RUNNING, kind="stream")
            while not self._stop.wait(0.3):
                now_ms = int(time.time() * 1000)
                application.produce(f"{NAME}-lines", [(str(each), "x", now_ms) for each in range(20)])
                for query in application.queries:
                    application.run_once(query)
                    query.metrics.measure_lag(application.cluster.offsets(latest(query)), query.positions)
                report(reporter, application.queries, seen)
        reporter.close()


def latest(query: Query) -> dict[TopicPartition, int]:
    return dict.fromkeys(query.places, LATEST)
