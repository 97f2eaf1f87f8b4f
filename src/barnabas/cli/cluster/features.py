"""features: show, raise, lower and disable the feature levels of a cluster; list the levels of releases."""

import argparse

from barnabas.cli.frame.connecting import (
    add_bootstrap,
    add_bootstrap_controller,
    add_command_config,
    cluster_from,
    is_server_given,
)
from barnabas.cli.frame.feature_levels import (
    defaults,
    dependency_lines,
    level_of_release,
    mapping_lines,
    name_and_level,
)
from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError, ToolParser, UsageError
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.features import Features, UpgradeType
from barnabas.metadata import versions
from barnabas.protocol import KafkaError

EXAMPLES = (
    "describe",
    "upgrade --release-version 4.3",
    "downgrade --feature transaction.version=1 --dry-run",
    "version-mapping --release-version 4.0",
)
COMMANDS = ("describe", "upgrade", "downgrade", "disable", "version-mapping", "feature-dependencies")
UNKNOWN_LEVEL = "No feature:{name} with feature level {level}"


def add_arguments(parser: ToolParser) -> None:
    add_bootstrap(parser)
    add_bootstrap_controller(parser)
    add_command_config(parser)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.add_parser("describe", help="show supported and finalized levels")
    for name, summary in (("upgrade", "raise levels"), ("downgrade", "lower levels")):
        command = commands.add_parser(name, help=summary, description=summary)
        command.add_argument("--feature", action="append", metavar="NAME=LEVEL", help="may be repeated")
        command.add_argument(
            "--release-version", metavar="VERSION", help="all levels of a release, such as 4.3"
        )
        command.add_argument(
            "--metadata", metavar="VERSION", help="deprecated: the level of metadata.version"
        )
        add_switches(command, unsafe=name == "downgrade")
    disable = commands.add_parser("disable", help="lower levels to zero")
    disable.add_argument("--feature", action="append", metavar="NAME", help="may be repeated")
    add_switches(disable, unsafe=True)
    mapping = commands.add_parser("version-mapping", help="the levels of a release")
    mapping.add_argument("--release-version", metavar="VERSION", help="default: the newest")
    needs = commands.add_parser("feature-dependencies", help="the dependencies of a level")
    needs.add_argument("--feature", action="append", metavar="NAME=LEVEL", help="may be repeated")


def add_switches(command: argparse.ArgumentParser, *, unsafe: bool) -> None:
    command.add_argument("--dry-run", action="store_true", help="only say whether the change is possible")
    if unsafe:
        command.add_argument(
            "--unsafe", action="store_true", help="change the level even if metadata is lost"
        )


async def run(options: argparse.Namespace, out: Output) -> int:
    if options.command is None:
        raise UsageError(f"too few arguments: one of {', '.join(COMMANDS)} is needed")
    if options.bootstrap_controller and is_server_given(options):
        raise UsageError("argument --bootstrap-controller: not allowed with argument --bootstrap-server")
    if options.command == "version-mapping":
        for line in mapping_lines(options.release_version):
            out.line(line)
        return 0
    if options.command == "feature-dependencies":
        if not options.feature:
            raise UsageError("argument --feature is required")
        for text in options.feature:
            for line in dependency_lines(*name_and_level(text), UNKNOWN_LEVEL):
                out.line(line)
        return 0
    if not (options.bootstrap_server or options.bootstrap_controller):
        raise UsageError("You must specify either --bootstrap-controller or --bootstrap-server.")
    levels = {} if options.command == "describe" else wanted_levels(options, out)
    async with cluster_from(options) as cluster:
        admin = Admin(cluster)
        if options.command == "describe":
            for line in description(await admin.describe_features()):
                out.line(line)
            return 0
        return await update(options, levels, admin, out)


def description(features: Features) -> list[str]:
    epoch = "-" if features.epoch is None else str(features.epoch)
    return [
        f"Feature: {name:<42}SupportedMinVersion: {shown(name, first):<17}"
        f"SupportedMaxVersion: {shown(name, last):<17}"
        f"FinalizedVersionLevel: {shown(name, features.finalized.get(name, 0)):<17}Epoch: {epoch}"
        for name, (first, last) in sorted(features.supported.items())
    ]


def shown(name: str, level: int) -> str:
    if name != versions.METADATA_VERSION:
        return str(level)
    return versions.release_name(level) if level in versions.RELEASES.values() else f"UNKNOWN [{level}]"


def wanted_levels(options: argparse.Namespace, out: Output) -> dict[str, int]:
    """The features to change, with their new levels, from the options."""
    levels: dict[str, int] = {}
    if options.command == "disable":
        for name in options.feature or ():
            add_level(levels, name, 0)
    else:
        if options.release_version is not None and (options.metadata is not None or options.feature):
            raise ToolError("Can not specify `release-version` with other feature flags.")
        if options.release_version is not None:
            level = level_of_release(options.release_version)
            every = {versions.METADATA_VERSION: level, **defaults(level)}
            levels = {name: each for name, each in every.items() if each or options.command != "upgrade"}
        if options.metadata is not None:
            out.line(" `metadata` flag is deprecated and may be removed in a future release.")
            levels[versions.METADATA_VERSION] = level_of_release(options.metadata)
        for text in options.feature or ():
            add_level(levels, *name_and_level(text))
    if not levels:
        raise ToolError(f"You must specify at least one feature to {options.command}")
    return dict(sorted(levels.items()))


def add_level(levels: dict[str, int], name: str, level: int) -> None:
    if name in levels:
        raise ToolError(f"Feature {name} was specified more than once.")
    levels[name] = level


async def update(options: argparse.Namespace, levels: dict[str, int], admin: Admin, out: Output) -> int:
    verb = options.command
    kind = UpgradeType.UPGRADE
    if verb != "upgrade":
        kind = UpgradeType.UNSAFE_DOWNGRADE if options.unsafe else UpgradeType.SAFE_DOWNGRADE
    problem = ""
    try:
        await admin.update_features(levels, kind, validate_only=options.dry_run)
    except KafkaError as error:
        problem = error.message
    for name, level in levels.items():
        to = "" if verb == "disable" else f" to {level}"
        if problem:
            out.line(f"{'Can' if options.dry_run else 'Could'} not {verb} {name}{to}. {problem}")
        else:
            out.line(f"{name} {'can be' if options.dry_run else 'was'} {verb.rstrip('e')}ed{to}.")
    if problem:
        raise ToolError(f"{len(levels)} out of {len(levels)} operation(s) failed.")
    return 0
