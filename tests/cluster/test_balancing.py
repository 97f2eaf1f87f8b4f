"""Leaders go back to their preferred brokers on their own."""

from __future__ import annotations

from barnabas.client.admin.topics import NewTopic
from barnabas.testing.cluster import Cluster
from barnabas.testing.waiting import wait_until
from cluster.replicated import SOON, metadata


def test_a_broker_that_was_away_leads_again_what_it_should() -> None:
    often = {**SOON, "leader.imbalance.check.interval.seconds": 1}
    with Cluster(brokers=2, overrides=often) as cluster:
        cluster.ask(lambda admin: admin.create_topic(NewTopic("back", assignments=[[1, 2], [2, 1]])))
        cluster[1].stop()
        wait_until(lambda: metadata(cluster, "back", 0).leader == 2, what="broker 2 has taken over")
        cluster[1].start()
        wait_until(
            lambda: [metadata(cluster, "back", number).leader for number in range(2)] == [1, 2],
            20,
            what="each broker leads what it should",
        )
