"""Checks before handlers: the declared needs of an endpoint, asked of the caller's rights.

In: an endpoint with its needs. Out: its handler with the checks before it. A refused request gets its API's
error response; refused items are taken out of the request, and their errors are put into the response. Routes
of a node without an authorizer have no checks at all. Does not know: rules, what requests do.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from barnabas.broker.access.mapping import change_response
from barnabas.broker.access.refusals import refuse
from barnabas.broker.api.deferred import Deferred
from barnabas.broker.api.large_requests import resolved
from barnabas.broker.api.needs import Instead, Need, Where
from barnabas.metadata.steps import Steps, at_once
from barnabas.protocol import KafkaError, Message, apis
from barnabas.security.acls.vocabulary import CLUSTER_NAME, ResourceType

if TYPE_CHECKING:
    from barnabas.broker.access.rights import Rights
    from barnabas.broker.api.context import RequestContext
    from barnabas.broker.api.routes import Endpoint, Handler

NameOf = Callable[[Any], Any]


def check(endpoint: Endpoint, handler: Handler, version: int, kind: str) -> Handler:
    """The handler with the checks that this version of the API needs on this kind of listener."""
    if not endpoint.needs:
        return handler
    needs = [
        need
        for need in endpoint.needs
        if need.version_min <= version <= need.version_max
        and kind in need.listeners
        and not need.is_asked_by_handler
    ]
    whole = [need for need in needs if need.where is Where.REQUEST]
    items = [need for need in needs if need.where is Where.ITEM]
    key = endpoint.key

    def checked(request: Any, context: RequestContext) -> Any:
        context.api = key
        if items and context.owns_frame:
            return checked_in_pieces(request, context)
        refused = at_once(find_refused(request, context))
        return refused if isinstance(refused, Message) else handled(request, context, refused)

    async def checked_in_pieces(request: Any, context: RequestContext) -> Any:
        """The same for a large request."""
        refused = await context.broker.pieces.run(find_refused(request, context))
        if isinstance(refused, Message):
            return refused
        result = handled(request, context, refused)
        if isinstance(result, Deferred):
            return await resolved(result)
        return await result if inspect.isawaitable(result) else result

    def find_refused(request: Any, context: RequestContext) -> Steps[Message | list[Refused]]:
        """Take the refused items out of the request. Out: their results, or the refusal of the request."""
        rights = context.rights
        assert rights is not None
        refused: list[Refused] = []
        try:
            for need in whole:
                if not allows(need, request, rights, key):
                    return refuse(request, need.code, version)
            for need in items:
                refused += yield from take_refused(need, request, context, version)
        except KafkaError as error:  # the ACLs are not loaded yet
            return refuse(request, error.code, version)
        return refused

    def handled(request: Any, context: RequestContext, refused: list[Refused]) -> Any:
        if not refused:
            return handler(request, context)
        if not any(getattr(request, items_of(need)) for need in items):
            return alone(key, refused)
        context.channel.unsent = None  # that of an earlier request
        return change_response(
            handler(request, context), key, context, lambda response: merge(response, refused)
        )

    return checked


def allows(need: Need, request: Any, rights: Rights, api: int) -> bool:
    """Whether the caller has the right for all names of a need, or the one that suffices instead."""
    if need.when is not None and not need.when(request):
        return True
    names = [CLUSTER_NAME] if need.resource is ResourceType.CLUSTER else names_in(need.names, request)
    if need.instead is not None and need.resource is ResourceType.CLUSTER:
        if rights.allow_first(need.operation, need.resource, CLUSTER_NAME, api):
            return True
        operation, resource = need.instead.value
        if need.instead is Instead.ANY_TOPIC_WRITE:
            return rights.allow_any(operation, resource, api)
        return rights.allow(operation, resource, CLUSTER_NAME, api)
    if need.instead is not None and allows_first(need.instead, rights, api):
        return True
    return all(rights.allow(need.operation, need.resource, name, api) for name in names)


def allows_first(instead: Instead, rights: Rights, api: int) -> bool:
    """Whether the caller has the right on the cluster that suffices for all items."""
    operation, resource = instead.value
    return rights.allow_first(operation, resource, CLUSTER_NAME, api)


def take_refused(need: Need, request: Any, context: RequestContext, version: int) -> Steps[list[Refused]]:
    """Take the refused items out of the request. Returns their part of the response, if there are any."""
    rights, api = context.rights, context.api
    assert rights is not None
    if need.when_request is not None and not need.when_request(request):
        return []
    list_name, name_of = items_of(need), reader(need.names)
    items = getattr(request, list_name)
    if not items or (need.instead is not None and allows_first(need.instead, rights, api)):
        return []
    decisions: dict[str, bool] = {}
    kept: list[Any] = []
    refused: list[Any] = []
    for item in items:
        yield
        if need.when is not None and not need.when(item):
            kept.append(item)
            continue
        name = CLUSTER_NAME if need.resource is ResourceType.CLUSTER else name_of(item)
        if isinstance(name, bytes):
            topic = context.broker.image.topics.by_id.get(name)
            if topic is None:
                kept.append(item)  # the handler says that the id is unknown
                continue
            name = topic.name
        allowed = decisions.get(name)
        if allowed is None:
            allowed = decisions[name] = rights.allow(need.operation, need.resource, name, api)
        (kept if allowed else refused).append(item)
    if not refused:
        return []
    setattr(request, list_name, refused)
    response = refuse(request, need.code, version, items=True)
    setattr(request, list_name, kept)
    return [(need.into, getattr(response, need.into))]


Refused = tuple[str, list[Any]]
"""The name of a list in the response, and results of refused items for it."""


def merge(response: Any, refused: list[Refused]) -> None:
    for into, results in refused:
        setattr(response, into, [*getattr(response, into), *results])


def alone(key: int, refused: list[Refused]) -> Any:
    """The response where every item was refused: the handler has nothing to do."""
    response = apis.response_class(key)()
    merge(response, refused)
    return response


def items_of(need: Need) -> str:
    return need.names.partition(".")[0]


def reader(names: str) -> NameOf:
    """How to read the name of an item: `topics.name` of each topic, `groups.` the item itself."""
    field = names.partition(".")[2]
    return (lambda item: getattr(item, field)) if field else str


def names_in(names: str, request: Any) -> Iterator[str]:
    """The names that a path finds in a request; a missing name is the empty one."""
    if "." not in names:
        yield getattr(request, names) or ""
        return
    name_of = reader(names)
    for item in getattr(request, names.partition(".")[0]) or ():
        yield name_of(item)
