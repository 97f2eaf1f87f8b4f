"""groups: list groups of all types, with their type and protocol, as kafka-groups."""

import argparse

from barnabas.cli.frame.connecting import add_bootstrap, add_command_config, cluster_from
from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError, ToolParser, UsageError
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.groups import CONSUMER, GroupListing

EXAMPLES = ("--list", "--list --consumer", "--list --group-type classic --protocol connect")
TYPES = ("Classic", "Consumer", "Share", "Streams")
KINDS = ("consumer", "share", "streams")
WIDTH = 20


def add_arguments(parser: ToolParser) -> None:
    add_bootstrap(parser)
    add_command_config(parser)
    parser.add_argument("--list", action="store_true", help="list groups")
    parser.add_argument(
        "--group-type", metavar="TYPE", help="only classic, consumer, share or streams groups"
    )
    parser.add_argument("--protocol", metavar="PROTOCOL", help="only groups of this protocol type")
    parser.add_argument("--consumer", action="store_true", help="only groups of consumers, of both protocols")
    parser.add_argument("--share", action="store_true", help="only share groups")
    parser.add_argument("--streams", action="store_true", help="only streams groups")


async def run(options: argparse.Namespace, out: Output) -> None:
    check_options(options)
    async with cluster_from(options) as cluster:
        found = await Admin(cluster).list_groups()
    shown = sorted((each for each in found if selected(options, each)), key=lambda each: each.group_id)
    width = max([WIDTH, *(len(each.group_id) for each in shown)])
    out.line(f"{'GROUP':<{width}} {'TYPE':<{width}} {'PROTOCOL':<{width}}")
    for each in shown:
        out.line(f"{each.group_id:<{width}} {each.type:<{width}} {each.protocol_type:<{width}} ")


def check_options(options: argparse.Namespace) -> None:
    if options.bootstrap_server is None:
        raise UsageError("Missing required option(s) [bootstrap-server]")
    if not options.list:
        raise UsageError("Command must include exactly one action: --list.")
    used = [kind for kind in KINDS if getattr(options, kind)]
    if used:
        others = [*(kind for kind in KINDS if kind != used[0] and kind in used)]
        others += [name for name in ("group-type", "protocol") if getattr(options, name.replace("-", "_"))]
        if others:
            raise UsageError(f'Option "[{used[0]}]" can\'t be used with option "[{others[0]}]"')
    if options.group_type is not None and options.group_type.capitalize() not in TYPES:
        raise ToolError("--group-type must be a valid group type.")


def selected(options: argparse.Namespace, group: GroupListing) -> bool:
    if options.consumer:
        return group.type == "Consumer" or (group.type == "Classic" and group.protocol_type in (CONSUMER, ""))
    if options.share or options.streams:
        return group.type == ("Share" if options.share else "Streams")
    return (options.group_type is None or group.type.lower() == options.group_type.lower()) and (
        options.protocol is None or group.protocol_type == options.protocol
    )
