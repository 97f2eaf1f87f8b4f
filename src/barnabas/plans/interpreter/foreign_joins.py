"""Joins of two tables by a foreign key, in three steps: subscribe, tell, join.

The left row subscribes at the task of its foreign key; that task tells what the right table has, now and at
each change; the left task joins what it is told with the row as it is then. Does not know: how many topics
lie between.
"""

from __future__ import annotations

from typing import Any

from barnabas.plans import nodes as n
from barnabas.plans.foreign_keys import (
    Instruction,
    Response,
    Subscription,
    after_prefix,
    combined,
    digest_of,
    key_in,
)
from barnabas.plans.interpreter.functions import joiner_function, value_function
from barnabas.plans.interpreter.records import Change
from barnabas.plans.interpreter.tables import getter
from barnabas.plans.interpreter.task import Process, Task, builds


@builds(n.SubscriptionSend)
def subscription_send(task: Task, node: n.SubscriptionSend, forward: Process) -> Process:
    foreign_key = value_function(task, node.foreign_key, node.takes_key)
    write_value = task.serializer(node.value_serde, node.foreign_topic)
    write_foreign = task.serializer(node.foreign_key_serde, node.subscription_topic, True)

    def key_of(key: Any, value: Any, timestamp: int) -> Any:
        return None if value is None else foreign_key(key, value, timestamp)

    def process(key: Any, change: Change, timestamp: int) -> None:
        if key is None:
            task.drop("null key")
            return
        task.node_name = node.name
        digest = digest_of(None if change.new is None else write_value(change.new))
        old, new = key_of(key, change.old, timestamp), key_of(key, change.new, timestamp)

        def send(to: Any, instruction: Instruction) -> None:
            forward(to, Subscription(instruction, digest, key, task.partition), timestamp)

        if change.new is None:
            if change.old is None:
                return
            if node.is_left_join:
                if old is not None:
                    send(old, Instruction.LEAVE_SILENTLY)
                send(None, Instruction.TELL_ALWAYS)
            elif old is not None:
                send(old, Instruction.LEAVE_AND_TELL)
            else:
                task.drop("null foreign key")
            return
        moved = old is not None and (new is None or write_foreign(old) != write_foreign(new))
        if node.is_left_join:
            if moved:
                send(old, Instruction.LEAVE_SILENTLY)
            send(new, Instruction.TELL_ALWAYS)
        elif new is None:
            if old is None:
                task.drop("null foreign key")
            else:
                send(old, Instruction.LEAVE_AND_TELL)
        elif moved:
            send(old, Instruction.LEAVE_SILENTLY)
            send(new, Instruction.TELL_ALWAYS)
        else:
            send(new, Instruction.TELL_IF_THERE)

    return process


@builds(n.SubscriptionReceive)
def subscription_receive(task: Task, node: n.SubscriptionReceive, forward: Process) -> Process:
    state = task.state(node.store)
    write_foreign = task.serializer(node.foreign_key_serde, node.subscription_topic, True)
    write_key = task.serializer(node.key_serde, node.subscription_topic, True)

    def process(foreign: Any, subscription: Subscription, timestamp: int) -> None:
        task.node_name = node.name
        if foreign is not None:
            place = combined(write_foreign(foreign), write_key(subscription.key))
            leaves = subscription.instruction in (Instruction.LEAVE_SILENTLY, Instruction.LEAVE_AND_TELL)
            state.put(place, None if leaves else subscription, timestamp)
        forward(foreign, subscription, timestamp)

    return process


@builds(n.SubscriptionJoin)
def subscription_join(task: Task, node: n.SubscriptionJoin, forward: Process) -> Process:
    look_up = getter(task, node.foreign_table)

    def process(foreign: Any, subscription: Subscription, timestamp: int) -> None:
        task.node_name = node.name
        instruction = subscription.instruction
        if instruction is Instruction.LEAVE_SILENTLY:
            return
        row = None if foreign is None else look_up(foreign)
        if instruction is Instruction.TELL_IF_THERE and row is None:
            return
        time = timestamp if row is None else max(timestamp, row[1])
        told = None if row is None or instruction is Instruction.LEAVE_AND_TELL else row[0]
        forward(subscription.key, Response(subscription.digest, told, subscription.partition), time)

    return process


@builds(n.ForeignTableJoin)
def foreign_table_join(task: Task, node: n.ForeignTableJoin, forward: Process) -> Process:
    state = task.state(node.store)
    write_foreign = task.serializer(node.foreign_key_serde, node.subscription_topic, True)
    read_key = task.deserializer(node.key_serde, node.subscription_topic, True)

    def process(foreign: Any, change: Change, timestamp: int) -> None:
        if foreign is None:
            task.drop("null key")
            return
        if not change.is_latest:
            return
        task.node_name = node.name
        prefix = combined(write_foreign(foreign))
        for place, (subscription, _) in list(state.range(prefix, after_prefix(prefix))):
            told = Response(subscription.digest, change.new, subscription.partition)
            forward(read_key(key_in(place)), told, timestamp)

    return process


@builds(n.ResponseJoin)
def response_join(task: Task, node: n.ResponseJoin, forward: Process) -> Process:
    look_up = getter(task, node.left_table)
    join = joiner_function(task, node.joiner, node.takes_key)
    write_value = task.serializer(node.value_serde, node.foreign_topic)
    is_inner = node.kind == "inner"

    def process(key: Any, response: Response, timestamp: int) -> None:
        task.node_name = node.name
        row = look_up(key)
        digest = digest_of(None if row is None else write_value(row[0]))
        if digest != response.digest:
            return  # the row has changed since it asked; the answer to its new question follows
        if row is None or (response.value is None and is_inner):
            forward(key, None, timestamp)
        else:
            forward(key, join(key, row[0], response.value, timestamp), timestamp)

    return process
