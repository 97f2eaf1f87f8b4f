"""An application of streams on the engine: lease, upgrade check, supervised program.

In: the name of a topology, settings. Out: it runs until it is stopped. Files beside its state: the lease,
the plan of the last start, the catalogue. Does not know: how queries run.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from barnabas.client.admin.groups import GroupAdmin
from barnabas.client.admin.topics import TopicAdmin
from barnabas.client.blocking import run
from barnabas.engine.applications import Application, lease_of, own_lock, run_application
from barnabas.engine.places.place import place_at
from barnabas.engine.supervisor import Program
from barnabas.engine.upgrades import reset_query
from barnabas.protocol import ErrorCode
from barnabas.spark.basics.cluster import WorkerCluster
from barnabas.streams.run.names import check_names
from barnabas.streams.run.program import PROGRAM
from barnabas.streams.run.serving import PROGRAM as SERVING
from barnabas.streams.run.serving import http_settings
from barnabas.streams.run.settings import HTTP, StreamsSettings, streams_settings
from barnabas.streams.run.topologies import TOPOLOGY, judge, load_plan, query_plan

INTERNAL = ("-repartition", "-changelog")
FOREIGN_KEY = "-KTABLE-FK-JOIN-SUBSCRIPTION-"


def run_streams(
    topology: str,
    application_id: str,
    servers: str,
    given: Mapping[str, str],
    *,
    port: int | None = None,
    standby: bool = False,
    seconds: float | None = None,
) -> None:
    """Run a topology under a supervisor. Errors in settings and plans are raised before anything starts.
    With a port, a second program answers interactive queries."""
    if port is not None:
        given = {f"{HTTP}listeners": f"http://127.0.0.1:{port}", **given}
    for warning in check_names(given):
        print(f"warning: {warning}", file=sys.stderr, flush=True)
    settings = streams_settings(application_id, servers, given)
    if port is not None:
        http_settings(settings, given)
    plan = load_plan(topology, application_id, settings.optimization)
    arguments = {
        "topology": topology, "application_id": application_id, "servers": servers, "settings": dict(given),
    }  # fmt: skip

    @contextmanager
    def programs() -> Iterator[Sequence[Program]]:
        names = {PROGRAM: "program", **({} if port is None else {SERVING: "serving"})}
        text = json.dumps(arguments)
        yield [
            Program(name, [sys.executable, "-m", f"barnabas.streams.run.{module}", text])
            for name, module in names.items()
        ]

    place = place_at(settings.tasks.state_dir)
    folder = settings.state_folder / application_id
    application = Application(
        name=application_id,
        kind="streams",
        place=place,
        folder=folder,
        prepare=programs,
        lock=own_lock(folder, application_id, lease_of(place, application_id)),
        plans=[query_plan(plan)],
        judge=judge,
    )
    run_application(application, standby=standby, seconds=seconds)


def internal_topics_of(settings: StreamsSettings, cluster: WorkerCluster) -> list[str]:
    """Topics that the application created, by their names."""
    prefix = f"{settings.tasks.application_id}-"
    return sorted(
        name
        for name in run(cluster.topics(None))
        if name.startswith(prefix) and (name.endswith(INTERNAL) or FOREIGN_KEY in name)
    )


def reset_streams(settings: StreamsSettings, *, dry_run: bool = False) -> list[str]:
    """Delete internal topics, committed offsets and state, so that the next start begins anew; what was, or
    would be, deleted."""
    application_id = settings.tasks.application_id
    cluster = WorkerCluster(settings.tasks.client)
    folder = settings.state_folder / application_id
    try:
        topics = internal_topics_of(settings, cluster)
        done = [f"topic {name}" for name in topics]
        done += [f"group {application_id}", *([f"folder {folder}"] if folder.exists() else [])]
        if dry_run:
            return done
        error = run(GroupAdmin(cluster).delete_groups([application_id]))[application_id]
        if error is not None and error.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise error
        run(TopicAdmin(cluster).delete_topics(topics))
        reset_query(place_at(settings.tasks.state_dir), application_id, TOPOLOGY)
        shutil.rmtree(folder, ignore_errors=True)
        return done
    finally:
        run(cluster.close())
