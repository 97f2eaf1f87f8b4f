"""configs: describe and alter settings of topics, brokers, loggers, groups and client metrics.

In: options. Out: the lines of kafka-configs. `config_entities` checks the options, in Kafka's order;
`config_quotas` handles quotas and SCRAM credentials.
"""

import argparse
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from barnabas.cli.cluster import config_quotas
from barnabas.cli.cluster.config_entities import (
    BROKER_LOGGERS,
    BROKERS,
    CLIENT_METRICS,
    DEFAULT,
    ENTITY_FLAGS,
    ENTITY_TYPES,
    GROUPS,
    IPS,
    QUOTA_TYPES,
    TOPICS,
    Entities,
    check_entities,
)
from barnabas.cli.frame.connecting import (
    add_bootstrap,
    add_bootstrap_controller,
    add_command_config,
    cluster_from,
)
from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError, ToolParser, UsageError
from barnabas.cli.frame.progress import progress
from barnabas.cli.frame.visibility import wait_until_visible
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.cluster import EndpointType
from barnabas.client.admin.configs import ConfigEntry, ConfigResource, ConfigSource, ResourceType
from barnabas.client.core.errors import ClientError, UnsupportedApi
from barnabas.controller.topic_names import reason_invalid
from barnabas.protocol import KafkaError

EXAMPLES = (
    "--describe --topic orders",
    "--alter --topic orders --add-config retention.ms=86400000,cleanup.policy=[compact,delete]",
    "--alter --topic orders --delete-config retention.ms",
    "--describe --broker 1 --all",
    "--alter --user ann --client web --add-config producer_byte_rate=1048576",
)
DESCRIBED_AT_ONCE = 500
KEY = re.compile(r"[a-zA-Z0-9._-]*")
OUTSIDE_BRACKETS = r"(?=[^\]]*(?:\[|$))"
NOT_KEY_VALUE = (
    "requirement failed: Invalid entity config: all configs to be added must be in the format "
    '"key=val" or  "key=[val1,val2]" to group values which contain commas.'
)
RESOURCE_TYPES = {
    TOPICS: ResourceType.TOPIC,
    BROKERS: ResourceType.BROKER,
    BROKER_LOGGERS: ResourceType.BROKER_LOGGER,
    CLIENT_METRICS: ResourceType.CLIENT_METRICS,
    GROUPS: ResourceType.GROUP,
}
OWN_SOURCES = {
    TOPICS: ConfigSource.TOPIC,
    BROKERS: ConfigSource.DYNAMIC_BROKER,
    CLIENT_METRICS: ConfigSource.CLIENT_METRICS,
    GROUPS: ConfigSource.GROUP,
}
SOURCE_NAMES = {
    ConfigSource.UNKNOWN: "UNKNOWN",
    ConfigSource.TOPIC: "DYNAMIC_TOPIC_CONFIG",
    ConfigSource.DYNAMIC_BROKER: "DYNAMIC_BROKER_CONFIG",
    ConfigSource.DYNAMIC_DEFAULT_BROKER: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    ConfigSource.STATIC_BROKER: "STATIC_BROKER_CONFIG",
    ConfigSource.DEFAULT: "DEFAULT_CONFIG",
    ConfigSource.DYNAMIC_BROKER_LOGGER: "DYNAMIC_BROKER_LOGGER_CONFIG",
    ConfigSource.CLIENT_METRICS: "DYNAMIC_CLIENT_METRICS_CONFIG",
    ConfigSource.GROUP: "DYNAMIC_GROUP_CONFIG",
}


def add_arguments(parser: ToolParser) -> None:
    add_bootstrap(parser)
    add_bootstrap_controller(parser)
    add_command_config(parser)
    actions = parser.add_argument_group("actions (exactly one)")
    actions.add_argument("--describe", action="store_true", help="show settings")
    actions.add_argument("--alter", action="store_true", help="change settings")
    parser.add_argument("--all", action="store_true", help="show all settings, not only those set here")
    changes = parser.add_argument_group("changes")
    changes.add_argument(
        "--add-config",
        metavar="NAME=VALUE,...",
        help="settings to add or change (--describe --all lists their names); put brackets around a value "
        "with commas: k1=v1,k2=[v1,v2]",
    )
    changes.add_argument("--add-config-file", metavar="FILE", help="the same from a properties file")
    changes.add_argument("--delete-config", action="append", metavar="NAME,...", help="settings to remove")
    parser.add_argument("--force", action="store_true", help=argparse.SUPPRESS)
    what = parser.add_argument_group("whose settings")
    for flag, (kind, summary) in ENTITY_FLAGS.items():
        what.add_argument(f"--{flag}", action="append", metavar="NAME", help=f"{summary} ({kind})")
    for kind in ("client", "user", "broker", "ip"):
        what.add_argument(f"--{kind}-defaults", action="store_true", help=f"the defaults of all {kind}s")
    what.add_argument(
        "--entity-type",
        action="append",
        metavar="TYPE",
        help=f"type of the entity: {', '.join(ENTITY_TYPES)}",
    )
    what.add_argument(
        "--entity-name",
        dest="entity_names",
        action="append",
        metavar="NAME",
        help="name of the entity whose type precedes it",
    )
    what.add_argument(
        "--entity-default",
        dest="entity_names",
        action="append_const",
        const=DEFAULT,
        help="the default entity of the type",
    )


async def run(options: argparse.Namespace, out: Output) -> None:
    if options.alter == options.describe:
        raise UsageError("Command must include exactly one action: --describe, --alter")
    for used in ("add_config", "delete_config"):
        if options.describe and getattr(options, used) is not None:
            raise UsageError(f'Option "[describe]" can\'t be used with option "[{used.replace("_", "-")}]"')
    entities = check_entities(options)
    try:
        async with cluster_from(options) as cluster:
            admin = Admin(cluster)
            if options.alter:
                await alter(options, entities, admin, out)
            else:
                await describe(options, entities, admin, out)
    except (KafkaError, ClientError) as error:
        raise failed(options, error.message if isinstance(error, KafkaError) else str(error)) from None


def failed(options: argparse.Namespace, reason: str) -> ToolError:
    """An error with Kafka's first line and the reason; passwords in the command line are masked."""
    command = re.sub(r"password=[^],\s]*", "password=...", options.command_line)
    return ToolError(f"Error while executing config command with args '{command}'\n{reason}")


# -- changing ------------------------------------------------------------------------------------------


async def alter(options: argparse.Namespace, entities: Entities, admin: Admin, out: Output) -> None:
    added, removed = to_add(options), to_remove(options)
    kind, name = entities.types[0], entities.names[0]
    if kind in QUOTA_TYPES:
        await config_quotas.alter(admin, entities, added, removed)
    else:
        resource = ConfigResource(RESOURCE_TYPES[kind], name)
        if kind == BROKER_LOGGERS:
            known = {entry.name for entry in (await admin.describe_configs([resource]))[resource]}
            unknown = [each for each in (*removed, *added) if each not in known]
            if unknown:
                raise ToolError(f"Invalid broker logger(s): {','.join(unknown)}")
        changes: dict[str, str | None] = {**added, **dict.fromkeys(removed)}
        await admin.alter_configs(resource, changes)
        await wait_until_visible(admin, lambda: is_visible(admin, kind, name, changes))
    if name == DEFAULT:
        out.line(f"Completed updating default config for {kind} in the cluster.")
    else:
        out.line(f"Completed updating config for {kind[:-1]} {name}.")


async def is_visible(admin: Admin, kind: str, name: str, changes: Mapping[str, str | None]) -> bool:
    """Whether brokers have applied a change; the controller acknowledges it a moment before."""
    if kind == BROKER_LOGGERS or admin.cluster.is_quorum:
        return True
    found = (await settings_of(admin, kind, [name], everything=False))[name]
    own = {entry.name: entry for entry in found}
    return all(
        name not in own if value is None else name in own and own[name].value in (value, None)
        for name, value in changes.items()
    )


def to_add(options: argparse.Namespace) -> dict[str, str]:
    found: dict[str, str] = {}
    if options.add_config_file is not None:
        from barnabas.settings.properties import parse

        path = Path(options.add_config_file)
        try:
            found = parse(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            reason = (error.strerror or str(error)).lower() if isinstance(error, OSError) else str(error)
            raise failed(options, f"cannot read {path}: {reason}") from None
    elif options.add_config is not None:
        found = parse_pairs(options.add_config)
    for name in found:
        if not KEY.fullmatch(name):
            raise ToolError(f"Invalid character found for config key: {name}")
    return found


def parse_pairs(text: str) -> dict[str, str]:
    """Parse `k1=v1,k2=[v1,v2]`: commas and equals signs inside brackets belong to the value."""
    found = {}
    for part in re.split(f",{OUTSIDE_BRACKETS}", text):
        pair = re.split(rf"\s*=\s*{OUTSIDE_BRACKETS}", part)
        if len(pair) != 2:
            raise ToolError(NOT_KEY_VALUE)
        found[pair[0].strip()] = re.sub(r"\[?\]?", "", pair[1]).strip()
    return found


def to_remove(options: argparse.Namespace) -> list[str]:
    return [name.strip() for text in options.delete_config or () for name in text.split(",")]


# -- showing -------------------------------------------------------------------------------------------


async def describe(options: argparse.Namespace, entities: Entities, admin: Admin, out: Output) -> None:
    kind = entities.types[0]
    if kind in QUOTA_TYPES:
        for line in await config_quotas.describe(admin, entities):
            out.line(line)
        if kind != IPS:
            for line in await config_quotas.describe_credentials(admin, entities):
                out.line(line)
        return
    if entities.names:
        name = entities.names[0]
        if kind == TOPICS and (wrong := reason_invalid(name)):
            raise ToolError(wrong)
        if not options.all and not await exists(admin, kind, name):
            out.line(f"The {kind[:-1]} '{name}' doesn't exist and doesn't have dynamic config.")
            return
    names = entities.names or await every_name(admin, kind)
    with progress(kind, len(names), beside_output=False) as advance:
        for start in range(0, len(names), DESCRIBED_AT_ONCE):
            some = names[start : start + DESCRIBED_AT_ONCE]
            found: dict[str, list[ConfigEntry]] | None = None
            for name in some:
                out.line(title(kind, name, everything=options.all))
                if found is None:
                    found = await settings_of(admin, kind, some, everything=options.all)
                for entry in found[name]:
                    out.line(f"  {setting_line(entry)}")
                advance(1)


def title(kind: str, name: str, *, everything: bool) -> str:
    if name == DEFAULT:
        return f"Default configs for {kind} in the cluster are:"
    return f"{'All' if everything else 'Dynamic'} configs for {kind[:-1]} {name} are:"


async def exists(admin: Admin, kind: str, name: str) -> bool:
    if kind in (BROKERS, BROKER_LOGGERS) and name == DEFAULT:
        return True
    return name in await every_name(admin, kind)


async def every_name(admin: Admin, kind: str) -> Sequence[str]:
    """The names of all entities of a type that may have settings."""
    if kind == TOPICS:
        return [topic.name for topic in await admin.list_topics()]
    if kind in (BROKERS, BROKER_LOGGERS):
        kind_of_nodes = EndpointType.CONTROLLER if admin.cluster.is_quorum else EndpointType.BROKER
        nodes = (await admin.describe_cluster(kind_of_nodes)).nodes
        return [*(str(node.id) for node in nodes), DEFAULT]
    found = []
    if kind == GROUPS:
        found = [listing.group_id for listing in await admin.list_groups()]
    try:
        found += [each.name for each in await admin.list_config_resources(RESOURCE_TYPES[kind])]
    except UnsupportedApi:
        if kind != GROUPS:
            raise
    return list(dict.fromkeys(found))


async def settings_of(
    admin: Admin, kind: str, names: Sequence[str], *, everything: bool
) -> dict[str, list[ConfigEntry]]:
    """The settings of an entity by name: all of them, or only those set for the entity itself."""
    resources = {name: ConfigResource(RESOURCE_TYPES[kind], name) for name in names}
    described = await admin.describe_configs(resources.values(), synonyms=True)
    found = {}
    for name, resource in resources.items():
        source = OWN_SOURCES.get(kind)
        if kind == BROKERS and name == DEFAULT:
            source = ConfigSource.DYNAMIC_DEFAULT_BROKER
        entries = described[resource]
        if source is not None and not everything:
            entries = [each for each in entries if each.source == source]
        found[name] = sorted(entries, key=lambda entry: entry.name)
    return found


def setting_line(entry: ConfigEntry) -> str:
    synonyms = ", ".join(
        f"{SOURCE_NAMES[ConfigSource(each.source)]}:{each.name}={shown(each.value)}"
        for each in entry.synonyms
    )
    sensitive = "true" if entry.sensitive else "false"
    return f"{entry.name}={shown(entry.value)} sensitive={sensitive} synonyms={{{synonyms}}}"


def shown(value: str | None) -> str:
    return "null" if value is None else value
