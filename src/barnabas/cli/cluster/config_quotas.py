"""The part of `configs` that handles quotas and SCRAM credentials of users, clients and IP addresses.

In: an Admin, entities, names with values to add, names to remove. Out: changes in the cluster, or lines.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from barnabas.cli.cluster.config_entities import CLIENTS, DEFAULT, IPS, USERS, Entities
from barnabas.cli.frame.parsing import ToolError
from barnabas.cli.frame.visibility import wait_until_visible
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.quotas import CLIENT_ID, IP, USER, Match, QuotaEntry
from barnabas.client.admin.scram import NewCredential, ScramMechanism
from barnabas.client.core.errors import UnsupportedApi
from barnabas.protocol import KafkaError

CLIENT_QUOTAS = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")
IP_QUOTAS = ("connection_creation_rate",)
MECHANISMS = {each.mechanism_name: each for each in ScramMechanism}
ITERATIONS_MIN = ITERATIONS_DEFAULT = 4096
CREDENTIAL = re.compile(r"(?:iterations=(-?[0-9]*),)?password=(.*)", re.DOTALL)
KINDS = {USERS: USER, CLIENTS: CLIENT_ID, IPS: IP}
TITLES = {USER: "user-principal", CLIENT_ID: "client-id", IP: "ip"}


async def alter(admin: Admin, entities: Entities, added: Mapping[str, str], removed: Sequence[str]) -> None:
    credentials = check_names(entities, added, removed)
    if credentials:
        new = {MECHANISMS[name]: credential(name, text) for name, text in added.items()}
        await admin.alter_scram(entities.names[0], new, [MECHANISMS[name] for name in removed])
        return
    entity = {KINDS[kind]: name or None for kind, name in zip(entities.types, entities.names, strict=True)}
    old: dict[str, float] = {}
    for entry in await admin.describe_quotas(parts_of(entities)):
        old |= entry.values
    unknown = [name for name in removed if name not in old]
    if unknown:
        raise ToolError(f"Invalid config(s): {','.join(unknown)}")
    changes: dict[str, float | None] = {name: quota(name, text) for name, text in added.items()}
    changes |= dict.fromkeys(removed)
    await admin.alter_quotas(entity, changes)

    async def is_visible() -> bool:
        now: dict[str, float] = {}
        for entry in await admin.describe_quotas(parts_of(entities)):
            now |= entry.values
        return all(now.get(name) == value for name, value in changes.items())

    await wait_until_visible(admin, is_visible)


def check_names(entities: Entities, added: Mapping[str, str], removed: Sequence[str]) -> bool:
    """Whether the change is about credentials; raises ToolError for names that these entities cannot have."""
    kind = entities.types[0]
    if kind == IPS:
        unknown = [name for name in (*added, *removed) if name not in IP_QUOTAS]
        if unknown:
            raise ToolError(
                f"Only connection quota configs can be added for '{IPS}' using --bootstrap-server. "
                f"Unexpected config names: {','.join(unknown)}"
            )
        return False
    of_clients = kind == CLIENTS or len(entities.types) == 2
    allowed = CLIENT_QUOTAS if of_clients else (*CLIENT_QUOTAS, *MECHANISMS)
    what, whose = ("quota", CLIENTS) if of_clients else ("quota and SCRAM credential", USERS)
    for done, names in (("added", list(added)), ("deleted", list(removed))):
        unknown = [name for name in names if name not in allowed]
        if unknown:
            collection = "Set" if done == "added" else "ArrayBuffer"
            raise ToolError(
                f"Only {what} configs can be {done} for '{whose}' using --bootstrap-server. "
                f"Unexpected config names: {collection}({', '.join(unknown)})"
            )
    names = [*added, *removed]
    credentials = [name for name in names if name in MECHANISMS]
    if credentials and DEFAULT in entities.names:
        raise ToolError(
            "The use of --entity-default or --user-defaults is not allowed with User SCRAM Credentials "
            "using --bootstrap-server."
        )
    if credentials and len(credentials) < len(names):
        raise ToolError(
            f"Cannot alter both quota and SCRAM credential configs simultaneously for '{USERS}' "
            "using --bootstrap-server."
        )
    return bool(credentials)


def credential(name: str, text: str) -> NewCredential:
    match = CREDENTIAL.fullmatch(text)
    if match is None:
        raise ToolError(f"Invalid credential property {name.replace('-', '_')}={text}")
    given, password = match.groups()
    iterations = ITERATIONS_DEFAULT if given in (None, "", "-1") else int(given)
    if iterations < ITERATIONS_MIN:
        raise ToolError(
            f"Iterations {iterations} is less than the minimum {ITERATIONS_MIN} required for {name}"
        )
    return NewCredential(iterations, password)


def quota(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ToolError(f"Cannot parse quota configuration value for {name}: {text}") from None


def parts_of(entities: Entities) -> dict[str, tuple[Match, str | None]]:
    """The filter to describe quotas with: an entity type without a name matches all entities of the type."""
    parts: dict[str, tuple[Match, str | None]] = {}
    for place, kind in enumerate(entities.types):
        if place >= len(entities.names):
            parts[KINDS[kind]] = (Match.ANY, None)
        elif entities.names[place] == DEFAULT:
            parts[KINDS[kind]] = (Match.DEFAULT, None)
        else:
            parts[KINDS[kind]] = (Match.EXACT, entities.names[place])
    return parts


async def describe(admin: Admin, entities: Entities) -> Iterator[str]:
    entries = await admin.describe_quotas(parts_of(entities))
    return (quota_line(entry) for entry in entries)


def quota_line(entry: QuotaEntry) -> str:
    whose = ", ".join(
        f"{title} '{entry.entity[kind]}'" if entry.entity[kind] is not None else f"the default {title}"
        for kind, title in TITLES.items()
        if kind in entry.entity
    )
    values = ", ".join(f"{name}={number(value)}" for name, value in sorted(entry.values.items()))
    return f"Quota configs for {whose} are {values}"


def number(value: float) -> str:
    """A double as Java prints it: with an exponent if it is at least ten million or below a thousandth."""
    if math.isinf(value) or math.isnan(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(float(value))
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    first, *others = map(str, digits)
    assert isinstance(exponent, int)
    return f"{'-' * sign}{first}.{''.join(others) or '0'}E{len(others) + exponent}"


async def describe_credentials(admin: Admin, entities: Entities) -> list[str]:
    """Lines about credentials of users; none if the options name clients or defaults."""
    if CLIENTS in entities.types or DEFAULT in entities.names:
        return []
    try:
        described = await admin.describe_scram(entities.names)
    except UnsupportedApi:
        return []  # the broker has no credentials API: users have quotas only
    lines = []
    for user, found in described.items():
        if isinstance(found, KafkaError):
            lines.append(
                f"Error retrieving SCRAM credential configs for user-principal '{user}': {found.message}"
            )
            continue
        shown = ", ".join(f"{each.mechanism_name}=iterations={found[each]}" for each in found)
        lines.append(f"SCRAM credential configs for user-principal '{user}' are {shown}")
    return lines
