"""roles: bind roles to principals, unbind and list them, and describe the roles.

In: options. Out: tables. The bindings are records of a topic, which the first `bind` makes: who may write to
it may bind roles. Brokers and controllers with `barnabas.roles.enable` follow it.
"""

import argparse

from barnabas.cli.frame.connecting import add_bootstrap, add_command_config, cluster_from
from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError, ToolParser, UsageError
from barnabas.cli.frame.table import table_lines
from barnabas.client import role_topic
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.configs import ConfigResource, ResourceType
from barnabas.client.cluster import Cluster
from barnabas.client.core.errors import ClientError
from barnabas.protocol import KafkaError
from barnabas.security.acls.roles import RESOURCES, ROLES, Binding, Role, RoleProblem, Scope, check_binding
from barnabas.security.acls.vocabulary import CLUSTER_NAME, word

EXAMPLES = (
    "describe",
    "describe DeveloperRead",
    "bind --principal User:ann --role DeveloperRead --topic orders- --prefix",
    "bind --principal User:ann --role DeveloperRead --group billing",
    "bind --principal User:carla --role ClusterAdmin",
    "list --principal User:ann",
    "unbind --principal User:ann --role DeveloperRead --topic orders- --prefix",
)
SETTING = "barnabas.roles.enable"
COMMANDS = ("list", "bind", "unbind", "describe")
FLAGS = {
    "topic": "Topic",
    "group": "Group",
    "transactional_id": "TransactionalId",
    "subject": "Subject",
    "connector": "Connector",
}


def add_arguments(parser: ToolParser) -> None:
    add_bootstrap(parser)
    add_command_config(parser)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    listing = commands.add_parser("list", help="list bindings")
    for name, summary in (("bind", "give a role to a principal"), ("unbind", "take a role away")):
        command = commands.add_parser(name, help=summary, description=summary)
        command.add_argument("--principal", required=True, metavar="User:NAME")
        command.add_argument("--role", required=True, metavar="ROLE", help=", ".join(ROLES))
        for flag, resource in FLAGS.items():
            command.add_argument(
                f"--{flag.replace('_', '-')}", action="append", metavar="NAME", help=f"on this {resource}"
            )
        command.add_argument("--cluster", action="store_true", help="on the cluster (default of its roles)")
        command.add_argument("--prefix", action="store_true", help="on all whose names begin with NAME")
    listing.add_argument("--principal", metavar="User:NAME", help="only bindings of this principal")
    listing.add_argument("--role", metavar="ROLE", help="only bindings of this role")
    describe = commands.add_parser("describe", help="show the rights of roles")
    describe.add_argument("role", nargs="?", metavar="ROLE", help="only this role")


async def run(options: argparse.Namespace, out: Output) -> int:
    if options.command is None:
        raise UsageError(f"too few arguments: one of {', '.join(COMMANDS)} is needed")
    if options.command == "describe":
        describe(options.role, out)
        return 0
    wanted = [] if options.command == "list" else bindings_of(options)
    async with cluster_from(options) as cluster:
        if options.command == "list":
            await show(options, cluster, out)
        elif options.command == "bind":
            await bind(wanted, cluster, out)
        else:
            await unbind(wanted, cluster, out)
    return 0


def bindings_of(options: argparse.Namespace) -> list[Binding]:
    found = [
        Binding(options.principal, options.role, resource, name, options.prefix)
        for flag, resource in FLAGS.items()
        for name in getattr(options, flag) or ()
    ]
    role = ROLES.get(options.role)
    if options.cluster or (not found and (role is None or role.scope is Scope.CLUSTER)):
        found.append(Binding(options.principal, options.role, "Cluster", CLUSTER_NAME, False))
    if not found:
        flags = ", ".join(f"--{flag.replace('_', '-')}" for flag in FLAGS)
        raise UsageError(f"{options.role} is a role on resources: name one with {flags} or --cluster")
    try:
        for binding in found:
            check_binding(binding)
    except RoleProblem as error:
        raise ToolError(str(error)) from None
    return found


async def bind(wanted: list[Binding], cluster: Cluster, out: Output) -> None:
    await role_topic.create_topic(cluster)
    await role_topic.write(cluster, wanted, present=True)
    for binding in wanted:
        out.line(f"{binding.principal} has {binding}.")
    if await are_off(cluster):
        out.note("note: roles are off: set barnabas.roles.enable=true on every node")


async def are_off(cluster: Cluster) -> bool:
    """Whether a broker says so; unknown if we may not ask."""
    try:
        node = next(iter(cluster.topology.nodes))
        resource = ConfigResource(ResourceType.BROKER, str(node))
        found = (await Admin(cluster).describe_configs([resource]))[resource]
    except (KafkaError, ClientError, StopIteration):
        return False
    return any(entry.name == SETTING and entry.value == "false" for entry in found)


async def unbind(wanted: list[Binding], cluster: Cluster, out: Output) -> None:
    known = set(await role_topic.read(cluster))
    missing = [binding for binding in wanted if binding not in known]
    if missing:
        raise ToolError(f"{missing[0].principal} does not have {missing[0]}: `roles list` shows all bindings")
    await role_topic.write(cluster, wanted, present=False)
    for binding in wanted:
        out.line(f"{binding.principal} has no longer {binding}.")


async def show(options: argparse.Namespace, cluster: Cluster, out: Output) -> None:
    found = [
        binding
        for binding in await role_topic.read(cluster)
        if options.principal in (None, binding.principal) and options.role in (None, binding.role)
    ]
    rows = [
        (each.principal, each.role, each.resource, each.name, "PREFIXED" if each.is_prefix else "LITERAL")
        for each in found
    ]
    for line in table_lines(("PRINCIPAL", "ROLE", "RESOURCE", "NAME", "PATTERN"), rows):
        out.line(line.rstrip())


def describe(name: str | None, out: Output) -> None:
    if name is not None and name not in ROLES:
        raise ToolError(f"there is no role {name}: roles are {', '.join(ROLES)}")
    if name is None:
        rows = [(role.name, role.scope, role.summary) for role in ROLES.values()]
        for line in table_lines(("ROLE", "SCOPE", "MAY"), rows):
            out.line(line.rstrip())
        return
    role = ROLES[name]
    out.line(f"{role.name}, a role on {'the cluster' if role.scope is Scope.CLUSTER else 'resources'}")
    out.line(f"{role.summary}\n")
    for line in table_lines(("RESOURCE", "OPERATIONS"), rights(role)):
        out.line(line.rstrip())


def rights(role: Role) -> list[tuple[str, str]]:
    names = {kind: name for name, kind in RESOURCES.items() if kind is not None}
    rows = [
        (names.get(kind, word(kind)), ", ".join(map(word, operations)))
        for kind, operations in role.rights.items()
    ]
    if role.bindings:
        rows.append(("bindings of roles", ", ".join(map(word, role.bindings))))
    return rows
