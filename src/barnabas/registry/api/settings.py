"""Endpoints under /config and /mode."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from barnabas.registry.api.bodies import checked, text
from barnabas.registry.api.call import Call
from barnabas.registry.api.components import DEFAULT_TO_GLOBAL, NO_BODY, TYPES, WRITE_FAILURES, failures
from barnabas.registry.state import refusals
from barnabas.registry.state.commands import ChangeConfig, ChangeMode, DeleteConfig, DeleteMode
from barnabas.registry.state.config import EMPTY, Config, WrongLevel, changes_of
from barnabas.services.openapi import Operations, Parameter
from barnabas.services.routes import Need

operations = Operations("Settings")
RECURSIVE = Parameter("recursive", "boolean", "Modes of the subjects inside too")
FORCE = Parameter("force", "boolean", "Change to IMPORT although there are subjects")
ADMIN: dict[str, Any] = {"needs": Need.ADMIN, **TYPES}


@operations.declare(
    "GET",
    "/config",
    "The configuration of a context",
    responses={200: "Config"},
    query=(DEFAULT_TO_GLOBAL,),
    errors=failures(40408, 50001),
    **TYPES,
)
async def config(call: Call) -> dict[str, Any]:
    """Behind `/contexts/.ctx`, the configuration of the subject `:.ctx:`."""
    return await subject_config(call)


@operations.declare(
    "PUT",
    "/config",
    "Change the configuration of a context",
    responses={200: "ConfigUpdateRequest"},
    request="ConfigUpdateRequest",
    errors=(*NO_BODY, *failures(42203, 42205, 42210), *WRITE_FAILURES),
    **ADMIN,
)
async def change_config(call: Call) -> Any:
    return await changed_config(call)


@operations.declare(
    "DELETE",
    "/config",
    "Go back to the configuration of a wider scope",
    responses={200: "Config"},
    errors=(*failures(42205), *WRITE_FAILURES),
    **ADMIN,
)
async def delete_config(call: Call) -> Any:
    return await deleted_config(call)


@operations.declare(
    "GET",
    "/config/{subject}",
    "The configuration of a subject",
    responses={200: "Config"},
    query=(DEFAULT_TO_GLOBAL,),
    errors=failures(40408, 50001),
    **TYPES,
)
async def subject_config(call: Call) -> dict[str, Any]:
    state, name = call.api.state, call.scope()
    if name is None or call.flag("defaultToGlobal"):
        return state.config_in_force(name).to_json()
    own = state.configs.get(name)
    if own is None:
        raise refusals.config_not_found(name)
    return own.to_json()


@operations.declare(
    "PUT",
    "/config/{subject}",
    "Change the configuration of a subject",
    responses={200: "ConfigUpdateRequest"},
    request="ConfigUpdateRequest",
    errors=(*NO_BODY, *failures(42203, 42205, 42208, 42210), *WRITE_FAILURES),
    **ADMIN,
)
async def change_subject_config(call: Call) -> Any:
    return await changed_config(call)


@operations.declare(
    "DELETE",
    "/config/{subject}",
    "Delete the configuration of a subject",
    responses={200: "Config"},
    errors=(*failures(40401, 42205), *WRITE_FAILURES),
    **ADMIN,
)
async def delete_subject_config(call: Call) -> Any:
    return await deleted_config(call)


async def changed_config(call: Call) -> Any:
    """The response has the fields that the request changed."""
    body = await call.body()
    try:
        changes = checked_changes(body)
    except WrongLevel as error:
        raise refusals.invalid_level(error) from None
    reply = await call.api.submit(call.request, ChangeConfig(call.scope(), changes))
    return reply if isinstance(reply, Response) else EMPTY.changed(changes).to_json("compatibility")


def checked_changes(body: dict[str, Any]) -> dict[str, Any]:
    try:
        return changes_of(body)
    except WrongLevel:
        raise
    except ValueError as error:
        raise refusals.malformed(str(error)) from None


async def deleted_config(call: Call) -> Any:
    reply = await call.api.submit(call.request, DeleteConfig(call.scope()))
    return reply.to_json() if isinstance(reply, Config) else reply


@operations.declare(
    "GET",
    "/mode",
    "The mode of a context",
    responses={200: "Mode"},
    query=(DEFAULT_TO_GLOBAL,),
    errors=failures(40409, 50001),
    **TYPES,
)
async def mode(call: Call) -> dict[str, Any]:
    """Behind `/contexts/.ctx`, the mode of the subject `:.ctx:`."""
    return await subject_mode(call)


@operations.declare(
    "PUT",
    "/mode",
    "Change the mode of a context",
    responses={200: "ModeUpdateRequest"},
    query=(FORCE,),
    request="ModeUpdateRequest",
    errors=(*NO_BODY, *failures(42204, 42205, 42206), *WRITE_FAILURES),
    **ADMIN,
)
async def change_mode(call: Call) -> Any:
    return await changed_mode(call)


@operations.declare(
    "DELETE",
    "/mode",
    "Go back to the mode of a wider scope",
    responses={200: "Mode"},
    query=(RECURSIVE,),
    errors=(*failures(42205), *WRITE_FAILURES),
    **ADMIN,
)
async def delete_mode(call: Call) -> Any:
    return await deleted_mode(call)


@operations.declare(
    "GET",
    "/mode/{subject}",
    "The mode of a subject",
    responses={200: "Mode"},
    query=(DEFAULT_TO_GLOBAL,),
    errors=failures(40409, 50001),
    **TYPES,
)
async def subject_mode(call: Call) -> dict[str, Any]:
    state, name = call.api.state, call.scope()
    if name is None or call.flag("defaultToGlobal"):
        return {"mode": state.mode_in_force(name)}
    own = state.modes.get(name)
    if own is None:
        raise refusals.mode_not_found(name)
    return {"mode": own}


@operations.declare(
    "PUT",
    "/mode/{subject}",
    "Change the mode of a subject",
    responses={200: "ModeUpdateRequest"},
    query=(FORCE,),
    request="ModeUpdateRequest",
    errors=(*NO_BODY, *failures(42204, 42205, 42206, 42208), *WRITE_FAILURES),
    **ADMIN,
)
async def change_subject_mode(call: Call) -> Any:
    return await changed_mode(call)


@operations.declare(
    "DELETE",
    "/mode/{subject}",
    "Delete the mode of a subject",
    responses={200: "Mode"},
    query=(RECURSIVE,),
    errors=(*failures(40401, 42205), *WRITE_FAILURES),
    **ADMIN,
)
async def delete_subject_mode(call: Call) -> Any:
    return await deleted_mode(call)


async def changed_mode(call: Call) -> Any:
    body = await call.body()
    wanted = checked(lambda: text(body, "mode"))
    reply = await call.api.submit(call.request, ChangeMode(call.scope(), wanted, call.flag("force")))
    return {"mode": reply} if isinstance(reply, str) else {} if reply is None else reply


async def deleted_mode(call: Call) -> Any:
    reply = await call.api.submit(call.request, DeleteMode(call.scope(), call.flag("recursive")))
    return {"mode": reply} if isinstance(reply, str) else reply
