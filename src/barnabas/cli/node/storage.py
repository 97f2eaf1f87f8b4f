"""storage: format the log dirs of a node, show what is in them, make an id, list feature levels.

In: a server.properties. Out: folders that `broker.setup.formatting` formats, or lines.
"""

import argparse
import secrets
import time
from collections.abc import Sequence
from pathlib import Path

from barnabas.broker.setup import encryption
from barnabas.broker.setup.formatting import FormatError, FormatRequest, format_directories
from barnabas.cli.frame.connecting import load_properties
from barnabas.cli.frame.feature_levels import dependency_lines, mapping_lines
from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError, ToolParser, UsageError
from barnabas.protocol import uuid
from barnabas.raft.voters import Voter, VoterEndpoint
from barnabas.runtime.disk import REAL_DISK
from barnabas.settings import BrokerSettings, SettingsError
from barnabas.storage.files import meta_properties
from barnabas.storage.files.errors import StorageError

EXAMPLES = (
    "random-uuid",
    "format -t $(barnabas storage random-uuid) -c server.properties",
    "info -c server.properties",
    "rotate-keys -c server.properties --data-keys",
)
COMMANDS = ("info", "format", "rotate-keys", "version-mapping", "feature-dependencies", "random-uuid")
UNKNOWN_LEVEL = "Feature level {level} is not supported for feature {name}"


def add_arguments(parser: ToolParser) -> None:
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    info = commands.add_parser("info", help="show what is in the log dirs")
    info.add_argument("-c", "--config", metavar="FILE", required=True, help="the node's server.properties")
    formatting = commands.add_parser("format", help="prepare the log dirs for a new node")
    formatting.add_argument(
        "-c", "--config", metavar="FILE", required=True, help="the node's server.properties"
    )
    formatting.add_argument("-t", "--cluster-id", metavar="ID", required=True, help="see random-uuid")
    formatting.add_argument("-S", "--add-scram", action="append", default=[], metavar="CREDENTIAL")
    formatting.add_argument(
        "-g", "--ignore-formatted", action="store_true", help="skip dirs that are formatted"
    )
    formatting.add_argument("-r", "--release-version", metavar="VERSION", help="features of this release")
    formatting.add_argument("-f", "--feature", action="append", default=[], metavar="NAME=LEVEL")
    quorum = formatting.add_mutually_exclusive_group()
    quorum.add_argument("-s", "--standalone", action="store_true", help="a dynamic quorum of this node alone")
    quorum.add_argument("-N", "--no-initial-controllers", action="store_true", help="join a quorum later")
    quorum.add_argument("-I", "--initial-controllers", metavar="ID@HOST:PORT:DIRECTORY,...")
    rotating = commands.add_parser("rotate-keys", help="wrap the data keys with the current master key")
    rotating.add_argument(
        "-c", "--config", metavar="FILE", required=True, help="the node's server.properties"
    )
    rotating.add_argument(
        "--data-keys", action="store_true", help="also make a new data key for each log dir, for new segments"
    )
    mapping = commands.add_parser("version-mapping", help="the features of a release")
    mapping.add_argument("-r", "--release-version", metavar="VERSION", default=None)
    dependencies = commands.add_parser("feature-dependencies", help="the dependencies of a feature level")
    dependencies.add_argument("-f", "--feature", action="append", required=True, metavar="NAME=LEVEL")
    commands.add_parser("random-uuid", help="make an id for a new cluster")


def run(options: argparse.Namespace, out: Output) -> int:
    if options.command is None:
        raise UsageError(f"too few arguments: one of {', '.join(COMMANDS)} is needed")
    if options.command == "random-uuid":
        out.line(uuid.to_text(meta_properties.random_directory_id(secrets.token_bytes(16))))
        return 0
    if options.command == "version-mapping":
        for line in mapping_lines(options.release_version):
            out.line(line)
        return 0
    if options.command == "feature-dependencies":
        return feature_dependencies(options.feature, out)
    settings = load_settings(options.config, out)
    if options.command == "info":
        return info(settings, out)
    if options.command == "rotate-keys":
        return rotate_keys(settings, out, with_data_keys=options.data_keys)
    return format_node(settings, options, out)


def feature_dependencies(features: Sequence[str], out: Output) -> int:
    for text in features:
        name, equals, level = text.partition("=")
        if not equals or not level.strip().isdigit():
            raise ToolError(
                f"Invalid feature format: {text}. Expected format: 'feature=version' (e.g. 'group.version=1')"
            )
        for line in dependency_lines(name.strip(), int(level), UNKNOWN_LEVEL):
            out.line(line)
    return 0


def load_settings(path: str, out: Output) -> BrokerSettings:
    try:
        settings = BrokerSettings.load(load_properties(path))
    except SettingsError as error:
        raise ToolError(f"{path}: {error}") from None
    for warning in settings.warnings:
        out.note(f"{path}: {warning}")
    return settings


def format_node(settings: BrokerSettings, options: argparse.Namespace, out: Output) -> int:
    controllers = options.initial_controllers
    request = FormatRequest(
        release_version=options.release_version,
        features=parse_features(options.feature),
        add_scram=options.add_scram,
        ignore_formatted=options.ignore_formatted,
        standalone=options.standalone,
        initial_controllers=None if controllers is None else parse_controllers(controllers),
        no_initial_controllers=options.no_initial_controllers,
    )
    try:
        lines = format_directories(
            settings,
            options.cluster_id,
            request,
            now_ms=int(time.time() * 1000),
            random_bytes=secrets.token_bytes,
        )
    except FormatError as error:
        raise ToolError(str(error)) from None
    for line in lines:
        out.line(line)
    return 0


def parse_features(pairs: Sequence[str]) -> dict[str, int]:
    found = {}
    for pair in pairs:
        name, equals, level = pair.partition("=")
        if not equals or not level.strip().isdigit():
            raise ToolError(
                f"Can't parse feature=level string {pair}: equals sign not found, or no number after it"
            )
        found[name.strip()] = int(level)
    return found


def parse_controllers(text: str) -> list[Voter]:
    """Parse a comma-separated list of `id@host:port:directory`."""
    voters = []
    for part in text.split(","):
        try:
            node, _, rest = part.strip().partition("@")
            address, _, directory = rest.rpartition(":")
            host, _, port = address.rpartition(":")
            endpoint = VoterEndpoint("CONTROLLER", host.strip("[]"), int(port))
            voters.append(Voter(int(node), uuid.from_text(directory), (endpoint,)))
        except ValueError:
            raise ToolError(
                f"--initial-controllers: {part!r} is not id@host:port:directory, "
                "as in 1@localhost:9093:JEXY6aqzQY-32P5TStzaFg"
            ) from None
    return voters


def rotate_keys(settings: BrokerSettings, out: Output, *, with_data_keys: bool) -> int:
    """Wrap the data keys of all log dirs with the current master key. A running node is not disturbed: it
    holds its data keys in memory, and uses new ones after its next start."""
    from barnabas.storage.encryption import key_files, providers

    found = False
    try:
        provider = providers.provider_of(encryption.provider_settings(settings))
        for path in encryption.log_dirs_of(settings):
            keys = key_files.load(REAL_DISK, path)
            if not keys:
                continue
            found = True
            keys = key_files.rewrapped(path, keys, provider)
            if with_data_keys:
                keys = key_files.with_new_key(keys, provider, secrets.token_bytes)
            key_files.store(REAL_DISK, path, keys)
            out.line(f"{path}: {encryption.description(keys)}")
    except StorageError as error:
        raise ToolError(str(error)) from None
    if not found:
        raise ToolError("no log dir has data keys: a node makes them when it starts with encryption on")
    if with_data_keys:
        out.line("New segments use the new data keys after the next start of the node.")
    return 0


def info(settings: BrokerSettings, out: Output) -> int:
    """Print Kafka's report: the log dirs, their meta.properties, and problems."""
    directories = sorted({*settings.log_dirs, settings.metadata_log_dir})
    found, problems = [], []
    identities: dict[str, str] = {}
    for directory in directories:
        path = Path(directory)
        if not path.is_dir():
            problems.append(f"{directory} {'is not a directory' if path.exists() else 'does not exist'}")
            continue
        found.append(directory)
        try:
            identity = meta_properties.load(REAL_DISK, directory)
        except StorageError as error:
            problems.append(f"Error loading {directory}/meta.properties: {error}")
            continue
        if identity is None:
            problems.append(f"{directory} is not formatted.")
            continue
        shown = {"cluster.id": identity.cluster_id, "node.id": str(identity.node_id)}
        for name, kind in (("cluster.id", "cluster"), ("node.id", "node")):
            if identities.get(name, shown[name]) != shown[name]:
                problems.append(f"Mismatched {kind} IDs between storage directories.")
        identities |= shown
        if identity.directory_id is not None:
            identities.setdefault("directory.id", uuid.to_text(identity.directory_id))
    section(out, "log directory", "log directories", found)
    if identities:
        identities["version"] = str(meta_properties.VERSION)
        pairs = ", ".join(f"{name}={value}" for name, value in sorted(identities.items()))
        out.line(f"Found metadata: {{{pairs}}}\n")
    encrypted = encryption.described(settings, REAL_DISK)
    section(out, "encrypted log directory", "encrypted log directories", encrypted)
    section(out, "problem", "problems", problems)
    return 1 if problems else 0


def section(out: Output, one: str, several: str, lines: list[str]) -> None:
    if lines:
        out.line(f"Found {one if len(lines) == 1 else several}:")
        for line in lines:
            out.line(f"  {line}")
        out.line()
