"""client-metrics: choose which clients push which metrics, and how often (KIP-714)."""

import argparse
import secrets

from barnabas.cli.frame.connecting import add_bootstrap, add_command_config, cluster_from
from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError, ToolParser, UsageError
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.configs import ConfigResource, ResourceType
from barnabas.client.core.errors import ClientError
from barnabas.protocol import KafkaError, uuid

EXAMPLES = (
    "--list",
    "--alter --name producers --metrics org.apache.kafka.producer. --interval 60000 --match client_id=web.*",
    "--describe --name producers",
    "--delete --name producers",
)
ACTIONS = ("alter", "delete", "describe", "list")
SELECTORS = (
    "client_id, client_instance_id, client_software_name, client_software_version, client_source_address, "
    "client_source_port"
)
NOT_WITH = {
    "delete": ("generate-name", "interval", "match", "metrics"),
    "describe": ("generate-name", "interval", "match", "metrics"),
    "list": ("name", "generate-name", "interval", "match", "metrics"),
}


def add_arguments(parser: ToolParser) -> None:
    add_bootstrap(parser)
    add_command_config(parser)
    actions = parser.add_argument_group("actions (exactly one)")
    actions.add_argument("--alter", action="store_true", help="add or change a subscription")
    actions.add_argument("--delete", action="store_true", help="delete a subscription")
    actions.add_argument("--describe", action="store_true", help="show subscriptions")
    actions.add_argument("--list", action="store_true", help="list the names of subscriptions")
    parser.add_argument("--name", help="the name of a subscription")
    parser.add_argument("--generate-name", action="store_true", help="use a generated name")
    parser.add_argument("--interval", metavar="MS", help="how often clients push (empty: the default)")
    parser.add_argument(
        "--match",
        action="append",
        metavar="K1=V1,K2=V2",
        help=f"select clients by regular expressions (empty: all): {SELECTORS}",
    )
    parser.add_argument(
        "--metrics", action="append", metavar="M1,M2", help="prefixes of metric names (empty: none)"
    )


async def run(options: argparse.Namespace, out: Output) -> None:
    check_options(options)
    try:
        async with cluster_from(options) as cluster:
            admin = Admin(cluster)
            if options.list:
                out.line("\n".join(await names(admin)))
            elif options.alter:
                await alter(options, admin, out)
            elif options.delete:
                await delete(options.name, admin, out)
            else:
                await describe(options.name, admin, out)
    except (KafkaError, ClientError) as error:
        shown = error.message if isinstance(error, KafkaError) else str(error)
        raise ToolError(f"Error while executing client metrics command : {shown}") from None


def check_options(options: argparse.Namespace) -> None:
    chosen = [action for action in ACTIONS if getattr(options, action)]
    if len(chosen) != 1:
        raise UsageError("Command must include exactly one action: --alter, --delete, --describe or --list.")
    if options.bootstrap_server is None:
        raise UsageError("--bootstrap-server must be specified.")
    for other in NOT_WITH.get(chosen[0], ()):
        if getattr(options, other.replace("-", "_")) not in (None, False):
            raise UsageError(f'Option "[{chosen[0]}]" can\'t be used with option "[{other}]"')
    if options.alter and (options.name is not None) == options.generate_name:
        raise ToolError("One of --name or --generate-name must be specified with --alter.")
    if options.delete and options.name is None:
        raise ToolError("A client metrics resource name must be specified with --delete.")
    if options.interval and not options.interval.lstrip("-").isdigit():
        raise ToolError("Invalid interval value. Enter an integer, or leave empty to reset.")


async def alter(options: argparse.Namespace, admin: Admin, out: Output) -> None:
    name = uuid.to_text(secrets.token_bytes(16)) if options.generate_name else options.name
    given = {
        "interval.ms": options.interval,
        "metrics": joined(options.metrics),
        "match": joined(options.match),
    }
    changes = {setting: value or None for setting, value in given.items() if value is not None}
    await admin.alter_configs(resource(name), changes)
    out.line(f"Altered client metrics config for {name}.")


def joined(values: list[str] | None) -> str | None:
    return None if values is None else ",".join(values)


async def delete(name: str, admin: Admin, out: Output) -> None:
    settings = (await admin.describe_configs([resource(name)]))[resource(name)]
    await admin.alter_configs(resource(name), dict.fromkeys(entry.name for entry in settings))
    out.line(f"Deleted client metrics config for {name}.")


async def describe(name: str | None, admin: Admin, out: Output) -> None:
    known = await names(admin)
    if name is not None and name not in known:
        out.line(f"The client metric resource {name} doesn't exist and doesn't have dynamic config.")
        return
    for each in known if name is None else [name]:
        out.line(f"Client metrics configs for {each} are:")
        entries = (await admin.describe_configs([resource(each)]))[resource(each)]
        for entry in sorted(entries, key=lambda entry: entry.name):
            out.line(f"  {entry.name}={entry.value or ''}")


async def names(admin: Admin) -> list[str]:
    return [each.name for each in await admin.list_config_resources(ResourceType.CLIENT_METRICS)]


def resource(name: str) -> ConfigResource:
    return ConfigResource(ResourceType.CLIENT_METRICS, name)
