"""Joins of tables: the nodes of joins by key and of joins by a foreign key.

A join by a foreign key goes through two topics: subscriptions to the right table, responses to the left
one. Does not know: the faces of the DSL beyond their fields.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from barnabas.plans import nodes as n
from barnabas.plans.foreign_keys import ResponseSerde, SubscriptionSerde, to_the_left_task
from barnabas.plans.stores import StoreKind, StoreSpec
from barnabas.streams.dsl.joins import stores_of
from barnabas.streams.serdes.formats import serde_of


def join_tables(
    left: Any,
    right: Any,
    joiner: n.Function,
    kind: n.JoinKind,
    *,
    with_key: bool = False,
    value: Any = None,
    store: str | None = None,
    name: str | None = None,
) -> Any:
    """Join two tables by their keys; their topics need the same number of partitions."""
    graph = left.graph
    merged = graph.name("KTABLE-MERGE-", name)
    names = [
        graph.name(f"KTABLE-{side}-", None if name is None else f"{name}-{word}")
        for side, word in (("JOINTHIS", "join-this"), ("JOINOTHER", "join-other"))
    ]
    graph.copartitioned.append(frozenset((*left.sources, *right.sources)))
    for this, other, each, is_left in ((left, right, names[0], True), (right, left, names[1], False)):
        graph.add(
            n.TableTableJoin(
                name=each,
                parents=(this.node,),
                this=this.node,
                other=other.node,
                is_left=is_left,
                kind=kind,
                joiner=joiner,
                takes_key=with_key,
                other_stores=stores_of(graph, other.node),
            )
        )
    serde = graph.default_serde if value is None else serde_of(value)
    if store is not None:
        graph.add_store(StoreSpec(store, StoreKind.TIMESTAMPED, left.key_serde, serde))
    graph.add(n.TableJoinMerge(name=merged, parents=tuple(names), store=store, sides=(names[0], names[1])))
    sources = left.sources + right.sources
    return replace(left, node=merged, value_serde=serde, sources=sources, store=store)


def join_by_foreign_key(
    left: Any,
    right: Any,
    foreign_key: n.Function,
    joiner: n.Function,
    kind: n.JoinKind,
    *,
    with_key: bool = False,
    value: Any = None,
    store: str | None = None,
    name: str | None = None,
) -> Any:
    """Join the rows of `left` with the row of `right` whose key `foreign_key(value)` names."""
    if kind == "outer":
        raise TypeError("a join by a foreign key is inner or left: the right side has no key of the result")
    graph = left.graph
    prefix, application = "KTABLE-FK-JOIN-SUBSCRIPTION", graph.application_id

    def named(kind_of_node: str, word: str) -> str:
        given: str = graph.name(kind_of_node, None if name is None else f"{name}-{word}")
        return given

    subscriptions = f"{application}-{named(f'{prefix}-REGISTRATION-', 'subscription-registration')}-topic"
    send = named(f"{prefix}-REGISTRATION-", "subscription-registration-processor")
    send_sink = named("KTABLE-SINK-", "subscription-registration-sink")
    receive_source = named("KTABLE-SOURCE-", "subscription-registration-source")
    kept = named(f"{prefix}-STATE-STORE-", "subscription-store")
    receive = named(f"{prefix}-PROCESSOR-", "subscription-receive")
    tell = named(f"{prefix}-PROCESSOR-", "subscription-join-foreign")
    tell_changes = named(f"{prefix}-PROCESSOR-", "foreign-join-subscription")
    responses = f"{application}-{named(f'{prefix}-RESPONSE-', 'subscription-response')}-topic"
    response_sink = named("KTABLE-SINK-", "subscription-response-sink")
    response_source = named("KTABLE-SOURCE-", "subscription-response-source")
    resolve = named(f"{prefix}-RESPONSE-RESOLVER-PROCESSOR-", "subscription-response-resolver")
    result = named("KTABLE-FK-JOIN-OUTPUT-", "result")

    asked = SubscriptionSerde(left.key_serde)
    told = ResponseSerde(right.value_serde or graph.default_serde)
    left_value = left.value_serde or graph.default_serde
    both: dict[str, Any] = {"foreign_key_serde": right.key_serde, "key_serde": left.key_serde}
    graph.add(
        n.SubscriptionSend(
            name=send,
            parents=(left.node,),
            foreign_key=foreign_key,
            takes_key=False,
            is_left_join=kind == "left",
            value_serde=left_value,
            subscription_topic=subscriptions,
            foreign_topic=responses,
            **both,
        )
    )
    hop: dict[str, Any] = {"is_internal": True}
    graph.add(
        n.Sink(
            name=send_sink,
            parents=(send,),
            topic=subscriptions,
            key_serde=right.key_serde,
            value_serde=asked,
            **hop,
        )
    )
    graph.add(
        n.Source(
            name=receive_source,
            topics=(subscriptions,),
            key_serde=right.key_serde,
            value_serde=asked,
            **hop,
        )
    )
    graph.add_store(StoreSpec(kept, StoreKind.SUBSCRIPTIONS, None, asked))
    graph.add(
        n.SubscriptionReceive(
            name=receive,
            parents=(receive_source,),
            store=kept,
            subscription_topic=subscriptions,
            **both,
        )
    )
    graph.add(
        n.SubscriptionJoin(
            name=tell,
            parents=(receive,),
            foreign_table=right.node,
            table_stores=stores_of(graph, right.node),
        )
    )
    graph.add(
        n.ForeignTableJoin(
            name=tell_changes, parents=(right.node,), store=kept, subscription_topic=subscriptions, **both
        )
    )
    # Subscriptions lie in the task of their foreign key; responses in that of the left row.
    graph.copartitioned.append(frozenset((receive_source, *right.sources)))
    graph.add(
        n.Sink(
            name=response_sink,
            parents=(tell, tell_changes),
            topic=responses,
            key_serde=left.key_serde,
            value_serde=told,
            partitioner=to_the_left_task,
            **hop,
        )
    )
    graph.add(
        n.Source(name=response_source, topics=(responses,), key_serde=left.key_serde, value_serde=told, **hop)
    )
    graph.copartitioned.append(frozenset((response_source, *left.sources)))
    graph.add(
        n.ResponseJoin(
            name=resolve,
            parents=(response_source,),
            left_table=left.node,
            kind=kind,
            joiner=joiner,
            takes_key=with_key,
            value_serde=left_value,
            foreign_topic=responses,
            table_stores=stores_of(graph, left.node),
        )
    )
    serde = graph.default_serde if value is None else serde_of(value)
    if store is not None:
        graph.add_store(StoreSpec(store, StoreKind.TIMESTAMPED, left.key_serde, serde))
    else:
        graph.store_name("KTABLE-FK-JOIN-OUTPUT-")  # Kafka Streams uses up a number here
    graph.add(n.TableSource(name=result, parents=(resolve,), store=store))
    return replace(
        left, node=result, value_serde=serde, sources=(response_source,), store=store, windows=None
    )
