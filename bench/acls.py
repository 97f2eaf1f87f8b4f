"""Produce with 10,000 ACLs: one-record requests on a node where rules decide, and beside a node without any.

In: a contender with an authorizer. Out: requests a second; and requests in a second of CPU time, by those of
the same kind of broker without an authorizer, in turns. Everybody is the user ANONYMOUS, who is no super
user: a rule of the topic allows it. Rules of others cover the topic too, by their prefixes.
Does not know: the order of rounds, floors.
"""

from __future__ import annotations

import statistics
from dataclasses import replace
from itertools import islice
from pathlib import Path

from bench.brokers import Contender, client_settings, cpu_seconds, create_topics
from bench.loads import PRODUCE, Scale, Trial

ROW, COST = "acls-produce", "acls-cost"
TOPIC = "acls-measured"
ACLS, ACLS_TINY = 10_000, 200
COVERING = 100  # of them are prefixes of the topic's name, for other users
A_REQUEST = 1_000
TURNS = 6
CPU_TICK_S = 0.01
PIPELINED = PRODUCE["produce-pipelined"]
_prepared: set[Path] = set()  # folders that have the topic and the ACLs already
SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",  # so that everything can be prepared
}


def measure(broker: Contender, scale: Scale) -> dict[str, float]:
    plain = type(broker)()
    try:
        for each in (broker, plain):
            each.start()
            if each is plain or broker.data not in _prepared:
                create_topics(each, {TOPIC: 1})
        if broker.data not in _prepared:
            create_acls(broker, ACLS if scale.seconds >= 1 else ACLS_TINY)
            _prepared.add(broker.data)
        for each in (broker, plain):  # Java's compiler, and the codecs
            PIPELINED.load(each.port, TOPIC, replace(scale, seconds=scale.warm_up_s / 2 + 0.05))
        rates: list[float] = []
        spent = {True: 0.0, False: 0.0}  # seconds of CPU, with ACLs and without
        served = {True: 0, False: 0}
        for turn in range(TURNS if scale.seconds >= 1 else 1):
            both = [(True, broker), (False, plain)]
            for has_acls, each in both if turn % 2 else reversed(both):
                before = cpu_seconds(each.pid)
                load = PIPELINED.load(each.port, TOPIC, scale)
                spent[has_acls] += cpu_seconds(each.pid) - before
                served[has_acls] += load.requests
                if has_acls:
                    rates.append(load.rate / 1e3)
        by_cpu = {kind: served[kind] / max(spent[kind], CPU_TICK_S) for kind in spent}
        return {ROW: statistics.median(rates), COST: by_cpu[True] / by_cpu[False]}
    finally:
        plain.close()
        broker.stop()


def create_acls(broker: Contender, count: int) -> None:
    """The rule that allows the load is the last one."""
    from confluent_kafka.admin import (
        AclBinding,
        AclOperation,
        AclPermissionType,
        AdminClient,
        ResourcePatternType,
        ResourceType,
    )

    def binding(
        name: str, user: str, pattern: ResourcePatternType = ResourcePatternType.LITERAL
    ) -> AclBinding:
        return AclBinding(
            ResourceType.TOPIC,
            name,
            pattern,
            f"User:{user}",
            "*",
            AclOperation.WRITE,
            AclPermissionType.ALLOW,
        )

    def bindings() -> list[AclBinding]:
        prefixed = [
            binding(TOPIC[: 3 + number % 10], f"other-{number}", ResourcePatternType.PREFIXED)
            for number in range(COVERING)
        ]
        others = [binding(f"topic-{number}", f"user-{number % 50}") for number in range(count - COVERING - 1)]
        return [*prefixed, *others, binding(TOPIC, "ANONYMOUS")]

    admin = AdminClient(client_settings(broker))
    wanted = iter(bindings())
    while some := list(islice(wanted, A_REQUEST)):
        for future in admin.create_acls(some, request_timeout=30).values():
            future.result(60)


TRIALS = (Trial((ROW, COST), measure, warm_up=False, overrides=SETTINGS),)
