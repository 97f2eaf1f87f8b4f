"""The options of every tool that connects to a cluster, and the Cluster that they describe.

In: --bootstrap-server, --command-config and name=value properties. Out: a Cluster. For `barnabas TOOL` the
address has a default: $BARNABAS_BOOTSTRAP, else localhost:9092. Under Kafka's names it is required, as there.
"""

import argparse
import os
from collections.abc import Mapping
from pathlib import Path

from barnabas.cli.frame.parsing import BAD_BOOTSTRAP, ToolError, ToolParser, UsageError
from barnabas.client.cluster import Cluster
from barnabas.client.core.address import parse_bootstrap
from barnabas.client.core.network import REQUEST_TIMEOUT_MS
from barnabas.client.core.patience import API_TIMEOUT_MS
from barnabas.security.clients.client_security import ClientSecurity, client_security
from barnabas.security.errors import SecuritySettingsError

DEFAULT_BOOTSTRAP = "localhost:9092"
BOOTSTRAP_VARIABLE = "BARNABAS_BOOTSTRAP"


class DefaultAddress(str):
    """An address that comes from the default, not from the command line."""


def default_bootstrap(parser: ToolParser) -> str | None:
    if parser.strict:
        return None
    return DefaultAddress(os.environ.get(BOOTSTRAP_VARIABLE, DEFAULT_BOOTSTRAP))


def add_bootstrap(parser: ToolParser) -> None:
    shown = "required" if parser.strict else f"default: ${BOOTSTRAP_VARIABLE}, else {DEFAULT_BOOTSTRAP}"
    parser.add_argument(
        "--bootstrap-server",
        metavar="HOST:PORT,...",
        default=default_bootstrap(parser),
        help=f"brokers to ask first ({shown})",
    )


def add_bootstrap_controller(parser: ToolParser) -> None:
    parser.add_argument("--bootstrap-controller", metavar="HOST:PORT,...", help="controllers to ask instead")


def is_server_given(options: argparse.Namespace) -> bool:
    """Whether --bootstrap-server is on the command line."""
    server = options.bootstrap_server
    return server is not None and not isinstance(server, DefaultAddress)


def add_command_config(parser: ToolParser) -> None:
    parser.add_argument(
        "--command-config", metavar="FILE", help="properties of the client, one name=value a line"
    )


def load_properties(path: str | None) -> dict[str, str]:
    """Read the properties file that an option names; without a file there are no properties."""
    if path is None:
        return {}
    from barnabas.settings.properties import parse

    try:
        return parse(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ToolError(f"cannot read {path}: {reason.lower()}") from None


def cluster_from(
    options: argparse.Namespace, properties: Mapping[str, str] | None = None, *, client_id: str = "admin"
) -> Cluster:
    """A client of the cluster that the options of a tool name."""
    given = dict(properties) if properties is not None else load_properties(options.command_config)
    known = resolved(given)
    controllers = getattr(options, "bootstrap_controller", None)
    bootstrap = controllers or options.bootstrap_server or known.get("bootstrap.servers")
    if bootstrap is None:
        raise UsageError('Missing required argument "[bootstrap-server]"')
    try:
        addresses = parse_bootstrap(bootstrap)
    except ValueError as error:
        raise UsageError(f"{BAD_BOOTSTRAP} ({error})") from None
    return Cluster(
        addresses,
        client_id=known.get("client.id", client_id),
        request_timeout_ms=whole_number(known, "request.timeout.ms", REQUEST_TIMEOUT_MS),
        api_timeout_ms=whole_number(known, "default.api.timeout.ms", API_TIMEOUT_MS),
        security=security_of(known),
        is_quorum=bool(controllers),
    )


def resolved(properties: Mapping[str, str]) -> dict[str, str]:
    """Replace references such as ${env:NAME} by values of this machine."""
    from barnabas.security.clients.references import resolve_properties

    try:
        return resolve_properties(properties)
    except SecuritySettingsError as error:
        raise ToolError(str(error)) from None


def security_of(properties: Mapping[str, str]) -> ClientSecurity:
    try:
        return client_security(properties)
    except SecuritySettingsError as error:
        raise ToolError(str(error)) from None


def whole_number(properties: Mapping[str, str], name: str, default: int) -> int:
    text = properties.get(name)
    if text is None:
        return default
    try:
        return int(text)
    except ValueError:
        raise ToolError(f"Invalid value {text} for configuration {name}: Not a number of type INT") from None
