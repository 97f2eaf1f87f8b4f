"""Lookups give what batches have committed, of every kind of store, in order, as of a position."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.streams.spark.local import KEEPS_OLD_RECORDS, LocalApplication

from barnabas.client.admin.topics import TopicAdmin
from barnabas.client.blocking import run
from barnabas.plans.plan import Plan
from barnabas.streams import F, SessionWindows, StreamsBuilder, TimeWindows, Windowed, value
from barnabas.streams.views.rows import NotReady, Row, UnknownStore, WrongLookup
from barnabas.streams.views.state_view import StateView
from barnabas.testing.broker import Broker

NAMES = [f"k{number:02}" for number in range(30)]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(in_process=False, overrides=KEEPS_OLD_RECORDS) as found:
        yield found


def plan(application_id: str) -> Plan:
    builder = StreamsBuilder(application_id)
    visits = builder.stream("visits", value=str)
    visits.group_by_key().count(store="counts")
    visits.map_values(len, value=int).group_by_key().aggregate(mean=F.avg(value()), store="means")
    visits.group_by_key().windowed_by(TimeWindows(10, 10), retention_ms=1000).count(store="windows")
    visits.group_by_key().windowed_by(SessionWindows(5), retention_ms=1000).count(store="sessions")
    builder.global_table("pages", value=str, store="pages")
    return builder.build()


def test_lookups_of_every_kind(broker: Broker, tmp_path: Path) -> None:
    with LocalApplication(broker, plan("lookups"), tmp_path) as application:
        application.create("visits", "pages")
        with StateView(application.plan, application.client, follow_s=3600) as view:
            with pytest.raises(NotReady, match="lookups-counts-changelog"):
                view.get("counts", "a")
            application.produce("pages", [("p", "home", 1), ("q", "cart", 2), ("q", None, 3)])
            records = [(name, "x" * (1 + at % 3), at) for at, name in enumerate(NAMES)]
            application.produce("visits", [*records, ("k05", "yyy", 40)])
            application.run()

            assert view.get("counts", "k05").row == Row("k05", 2, 40)
            assert view.get("counts", "nobody").rows == ()
            assert [row.key for row in view.range("counts", "k03", "k06").rows] == [
                "k03",
                "k04",
                "k05",
                "k06",
            ]
            assert [row.key for row in view.prefix("counts", "k2").rows] == NAMES[20:]
            some = view.all("counts", limit=7)
            assert ([row.key for row in some.rows], some.has_more) == (NAMES[:7], True)
            assert view.count("counts") == 30
            assert view.get("means", "k05").value == {"mean": 3.0}
            assert view.get("pages", "p").value == "home"
            assert view.get("pages", "q").rows == ()

            assert view.window("windows", "k05").rows == (
                Row(Windowed("k05", 0, 10), 1, 5),
                Row(Windowed("k05", 40, 50), 1, 40),
            )
            assert [row.key.start for row in view.window("windows", "k05", 1, 40).rows] == [40]
            assert [row.key.key for row in view.windows("windows", 20, 29).rows] == NAMES[20:]
            assert [row.key for row in view.sessions("sessions", "k05").rows] == [
                Windowed("k05", 5, 5),
                Windowed("k05", 40, 40),
            ]
            assert view.place_of("counts", "k05").topic == "lookups-counts-changelog"

            before = view.position("counts")
            application.produce("visits", [("k05", "y", 41)])
            application.run()
            assert view.get("counts", "k05", fresh=False).value == 2
            place = view.place_of("counts", "k05").partition
            after = view.get("counts", "k05", fresh=False, at_least={place: before[place] + 1})
            assert (after.value, after.position[place] > before[place]) == (3, True)

            with pytest.raises(UnknownStore, match="there are: counts, means, windows, sessions, pages"):
                view.get("count", "a")
            with pytest.raises(WrongLookup, match="has no windows"):
                view.window("counts", "a")
            with pytest.raises(WrongLookup, match="is no key of the store counts"):
                view.get("counts", 5)


def test_a_view_follows_by_itself_and_continues_where_it_stood(broker: Broker, tmp_path: Path) -> None:
    with LocalApplication(broker, plan("following"), tmp_path / "state") as application:
        application.produce("visits", [("follower", "x", 1)])
        application.run()
        with StateView(application.plan, application.client, folder=tmp_path / "view") as view:
            assert view.get("counts", "follower").value == 1
            position = view.position("counts")
            application.produce("visits", [("follower", "x", 2)])
            application.run()
            while view.get("counts", "follower", fresh=False).value == 1:
                time.sleep(0.01)
        with StateView(application.plan, application.client, folder=tmp_path / "view", follow_s=3600) as view:
            assert view.get("counts", "follower").value == 2
            assert view.position("counts") != position


def test_a_changelog_that_was_made_again_begins_anew(broker: Broker, tmp_path: Path) -> None:
    with LocalApplication(broker, plan("again"), tmp_path / "state") as application:
        application.produce("visits", [("again", "x", 1)] * 3)
        application.run()
        with StateView(application.plan, application.client, folder=tmp_path / "view") as view:
            assert view.get("counts", "again").value == 3
        run(TopicAdmin(application.cluster).delete_topics(["again-counts-changelog"]))
        with (
            StateView(application.plan, application.client, folder=tmp_path / "view") as view,
            pytest.raises(NotReady),
        ):
            view.get("counts", "again")


def test_versions_of_a_key(broker: Broker, tmp_path: Path) -> None:
    builder = StreamsBuilder("versions")
    builder.table("rates", value=int, history_ms=100, store="rates")
    with LocalApplication(broker, builder.build(), tmp_path) as application:
        application.create("rates")
        changes = [("eur", 1, 0), ("eur", 3, 20), ("eur", 2, 10), ("eur", None, 30), ("eur", 5, 40)]
        application.produce("rates", changes, value=int)
        application.run()
        with StateView(application.plan, application.client) as view:
            assert view.get("rates", "eur").row == Row("eur", 5, 40)
            assert [view.get("rates", "eur", as_of=time).value for time in (0, 15, 25, 35)] == [1, 2, 3, None]
            found = view.versions("rates", "eur", 15, 45)
            assert [(row.value, row.timestamp) for row in found.rows] == [(2, 10), (3, 20), (5, 40)]
