"""The entities (topics, brokers, users, ...) that the options of `configs` name, and the options' checks.

In: options. Out: entity types and names in the order of the command line; an empty name is the default of a
type. The checks, their order and their messages are those of kafka-configs.
"""

import argparse
import ipaddress
import socket
from dataclasses import dataclass

from barnabas.cli.frame.connecting import is_server_given
from barnabas.cli.frame.parsing import ToolError, UsageError

TOPICS, CLIENTS, USERS, BROKERS, IPS = "topics", "clients", "users", "brokers", "ips"
CLIENT_METRICS, GROUPS, BROKER_LOGGERS = "client-metrics", "groups", "broker-loggers"
ENTITY_TYPES = (TOPICS, CLIENTS, USERS, BROKERS, IPS, CLIENT_METRICS, GROUPS, BROKER_LOGGERS)
QUOTA_TYPES = (USERS, CLIENTS, IPS)
DEFAULT = ""
ENTITY_FLAGS = {
    "topic": (TOPICS, "a topic's name"),
    "client": (CLIENTS, "a client id"),
    "user": (USERS, "a user's principal name"),
    "broker": (BROKERS, "a broker's id"),
    "broker-logger": (BROKER_LOGGERS, "a broker's id, for its loggers"),
    "ip": (IPS, "an IP address"),
    "client-metrics": (CLIENT_METRICS, "a client metrics subscription"),
    "group": (GROUPS, "a group's id"),
}
DEFAULT_FLAGS = {
    "client_defaults": CLIENTS,
    "user_defaults": USERS,
    "broker_defaults": BROKERS,
    "ip_defaults": IPS,
}
HAVE_DEFAULTS = (USERS, CLIENTS, BROKERS, IPS)


@dataclass(frozen=True, slots=True)
class Entities:
    types: list[str]
    names: list[str]


def check_entities(options: argparse.Namespace) -> Entities:
    """The entities that the options name; raises UsageError or ToolError if the options are inconsistent."""
    flags = [
        (ENTITY_FLAGS[flag][0], one_value(options, flag)) for flag in ENTITY_FLAGS if given(options, flag)
    ]
    flags += [(kind, DEFAULT) for flag, kind in DEFAULT_FLAGS.items() if getattr(options, flag)]
    types = [*(options.entity_type or ()), *(kind for kind, _ in flags)]
    named = options.entity_names or []
    names = [*named, *(name for _, name in flags)]
    check_types(types)
    if flags and (options.entity_type or named):
        raise ToolError(
            "--entity-{type,name,default} should not be used in conjunction with specific entity flags"
        )
    check_connection(options)
    check_names(types, names)
    if options.describe:
        if not set(types) & set(HAVE_DEFAULTS) and DEFAULT in named:
            raise ToolError(f"--entity-default must not be specified with --describe of {','.join(types)}")
        if BROKER_LOGGERS in types and not any(names):
            raise ToolError(f"An entity name must be specified with --describe of {','.join(types)}")
    else:
        check_alter(options, types, names)
    return Entities(types, names)


def given(options: argparse.Namespace, flag: str) -> bool:
    return getattr(options, flag.replace("-", "_")) is not None


def one_value(options: argparse.Namespace, flag: str) -> str:
    values: list[str] = getattr(options, flag.replace("-", "_"))
    if len(values) > 1:
        raise UsageError(f"Found multiple arguments for option {flag}, but you asked for only one")
    return values[0]


def check_types(types: list[str]) -> None:
    twice = [kind for place, kind in enumerate(types) if kind in types[:place]]
    if twice:
        raise ToolError(f"Duplicate entity type(s) specified: {','.join(twice)}")
    for kind in types:
        if kind not in ENTITY_TYPES:
            raise ToolError(
                f"Invalid entity type {kind}, the entity type must be one of {', '.join(ENTITY_TYPES)} "
                "with a --bootstrap-server or --bootstrap-controller argument"
            )
    if not types:
        raise ToolError("At least one entity type must be specified")
    if len(types) > 1 and set(types) != {USERS, CLIENTS}:
        raise ToolError(f"Only '{USERS}' and '{CLIENTS}' entity types may be specified together")


def check_connection(options: argparse.Namespace) -> None:
    if options.bootstrap_controller is not None and is_server_given(options):
        raise ToolError("Only one of --bootstrap-server or --bootstrap-controller can be specified")
    if options.bootstrap_controller is None and options.bootstrap_server is None:
        raise ToolError("Either --bootstrap-server or --bootstrap-controller must be specified.")


def check_names(types: list[str], names: list[str]) -> None:
    for name in filter(None, names):
        if types[0] in (BROKERS, BROKER_LOGGERS) and not is_whole_number(name):
            raise ToolError(
                f"The entity name for {types[0]} must be a valid integer broker id, but it is: {name}"
            )
        if types[0] == IPS and not is_address(name):
            raise ToolError(
                f"The entity name for {types[0]} must be a valid IP or resolvable host, but it is: {name}"
            )


def check_alter(options: argparse.Namespace, types: list[str], names: list[str]) -> None:
    shown = ",".join(types)
    if set(types) & set(HAVE_DEFAULTS):
        if not names:
            raise ToolError(
                "An entity-name or default entity must be specified with --alter of users, clients, "
                "brokers or ips"
            )
    elif not any(names):
        raise ToolError(f"An entity name must be specified with --alter of {shown}")
    if options.add_config is not None and options.add_config_file is not None:
        raise ToolError("Only one of --add-config or --add-config-file must be specified")
    if options.add_config is None and options.add_config_file is None and options.delete_config is None:
        raise ToolError(
            "At least one of --add-config, --add-config-file, or --delete-config must be specified "
            "with --alter"
        )
    if len(types) != len(names):
        raise ToolError("An entity name must be specified for every entity type")


def is_whole_number(text: str) -> bool:
    try:
        int(text)
    except ValueError:
        return False
    return True


def is_address(text: str) -> bool:
    """Whether a text is an IP address, or a host name that resolves to one."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        try:
            socket.getaddrinfo(text, None)
        except OSError:
            return False
    return True
