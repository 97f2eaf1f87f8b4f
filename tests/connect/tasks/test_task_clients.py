"""Clients of a task that is a Spark job: what executors report adds up to one client."""

from __future__ import annotations

from dataclasses import asdict

from barnabas.client.core.traffic import Traffic
from barnabas.connect.jobs.reports import Report, note
from barnabas.connect.tasks.progress import Progress
from barnabas.connect.tasks.task_clients import ExecutorClients, Together, grown


def test_counts_of_pieces_add_up_and_connections_are_those_of_processes() -> None:
    clients = ExecutorClients()
    piece = asdict(Traffic(connections=2, connections_made=1, bytes_sent=100, requests=3))
    clients.add([(("a", 1), piece), (("a", 1), piece), (("b", 1), piece)])
    found = clients.traffic
    assert (found.connections, found.connections_made, found.bytes_sent, found.requests) == (4, 3, 300, 9)
    clients.add([(("a", 1), asdict(Traffic(connections=1, bytes_sent=1)))])
    assert (clients.traffic.connections, clients.traffic.bytes_sent) == (1, 301)


def test_a_client_that_lasts_counts_what_a_piece_added() -> None:
    before = Traffic(connections=1, connections_made=1, bytes_sent=10, requests=2, responses=2)
    after = Traffic(connections=2, connections_made=2, bytes_sent=25, requests=5, responses=5)
    found = grown(before, after)
    assert found == asdict(Traffic(connections=2, connections_made=1, bytes_sent=15, requests=3, responses=3))


def test_reports_carry_traffic_to_the_progress_of_the_task() -> None:
    progress, report = Progress("orders", 0, "sink"), Report(host="a")
    report.used("consumer", Traffic(), Traffic(connections=1, bytes_received=7))
    arrived = Report.read(report.text())
    note([arrived, Report()], progress)
    note([arrived], progress)
    assert progress.executors["consumer"].traffic == Traffic(connections=1, bytes_received=14)
    own = ExecutorClients()
    own.add([("here", asdict(Traffic(connections=1, bytes_received=1)))])
    together = Together(own, progress.executors["consumer"])
    assert together.traffic == Traffic(connections=2, bytes_received=15)
