"""api-versions: print the APIs and versions of each broker, and the version that our client would use."""

import argparse

from barnabas.cli.frame.connecting import add_bootstrap, add_command_config, cluster_from
from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolParser, required
from barnabas.client.admin.admin import Admin
from barnabas.client.core.errors import ClientError
from barnabas.client.core.versions import ApiRanges, newest_common
from barnabas.protocol.apis import APIS, Api, request_class

EXAMPLES = ("--bootstrap-server localhost:9092",)
NEEDS_ARGUMENTS = False


def add_arguments(parser: ToolParser) -> None:
    add_bootstrap(parser)
    add_command_config(parser)


async def run(options: argparse.Namespace, out: Output) -> int:
    required(options, "bootstrap-server")
    failures = 0
    async with cluster_from(options) as cluster:
        admin = Admin(cluster)
        await cluster.refresh()
        for _, node in sorted(cluster.topology.nodes.items()):
            shown = f"{node.address} (id: {node.id} rack: {node.rack or 'null'} isFenced: false)"
            try:
                versions = await admin.api_versions(node)
            except ClientError as error:
                failures += 1
                out.line(f"{shown} -> ERROR: {error}")
                continue
            out.line(f"{shown} -> (")
            out.line(",\n".join(f"\t{each}" for each in lines(versions)))
            out.line(")")
    return 1 if failures else 0


def lines(versions: ApiRanges) -> list[str]:
    """One line for each API that brokers offer to clients, and for each API that we do not know."""
    known = {int(api.key): api for api in APIS.values() if api.broker}
    return [line(key, known.get(key), versions.get(key)) for key in sorted(known.keys() | versions.keys())]


def line(key: int, api: Api | None, offered: tuple[int, int] | None) -> str:
    if api is None:
        return f"UNKNOWN({key}): {span(offered or (0, 0))}"
    if offered is None:
        return f"{api.name}({key}): UNSUPPORTED"
    usable = newest_common(request_class(key), offered)
    if usable is not None:
        return f"{api.name}({key}): {span(offered)} [usable: {usable}]"
    too = "old" if offered[1] < request_class(key).schema.versions.first else "new"
    return f"{api.name}({key}): {span(offered)} [unusable: node too {too}]"


def span(offered: tuple[int, int]) -> str:
    return str(offered[0]) if offered[0] == offered[1] else f"{offered[0]} to {offered[1]}"
