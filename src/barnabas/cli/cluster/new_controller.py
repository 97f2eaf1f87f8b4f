"""A controller that shall join the quorum, as its own server.properties and log dir describe it.

In: the properties. Out: its id, the id of its metadata log dir, and the advertised addresses of its
controller listeners. A missing value raises ToolError with Kafka's message.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from barnabas.cli.frame.parsing import ToolError
from barnabas.client.admin.voters import VoterAddress
from barnabas.runtime.disk import REAL_DISK
from barnabas.settings import SettingsError
from barnabas.settings.listeners import parse_end_points
from barnabas.storage.files import meta_properties
from barnabas.storage.files.errors import StorageError

VALID = "Is this a valid controller configuration file?"


@dataclass(frozen=True, slots=True)
class NewController:
    id: int
    directory_id: bytes
    addresses: tuple[VoterAddress, ...]


def new_controller(properties: Mapping[str, str]) -> NewController:
    node_id = node_id_of(properties)
    return NewController(node_id, directory_id_of(properties), addresses_of(properties))


def node_id_of(properties: Mapping[str, str]) -> int:
    text = properties.get("node.id")
    if text is None:
        raise ToolError(f"node.id not found in configuration file. {VALID}")
    try:
        node_id = int(text)
    except ValueError:
        raise ToolError(f"node.id={text} is not a number. {VALID}") from None
    if node_id < 0:
        raise ToolError(f"node.id was negative in configuration file. {VALID}")
    if "controller" not in properties.get("process.roles", ""):
        raise ToolError(f"process.roles did not contain 'controller' in configuration file. {VALID}")
    return node_id


def directory_id_of(properties: Mapping[str, str]) -> bytes:
    folder = properties.get("metadata.log.dir") or properties.get("log.dirs", "").split(",")[0].strip()
    if not folder:
        raise ToolError(f"Neither metadata.log.dir nor log.dirs were found. {VALID}")
    try:
        identity = meta_properties.load(REAL_DISK, folder)
    except StorageError as error:
        raise ToolError(str(error)) from None
    if identity is None:
        raise ToolError(f"Unable to read meta.properties from {folder}")
    if identity.directory_id is None:
        raise ToolError(f"No directory id found in {folder}")
    return identity.directory_id


def addresses_of(properties: Mapping[str, str]) -> tuple[VoterAddress, ...]:
    names = properties.get("controller.listener.names")
    if names is None:
        raise ToolError(f"controller.listener.names was not found. {VALID}")
    found = {}
    try:
        for setting in ("listeners", "advertised.listeners"):
            listed = [entry.strip() for entry in properties.get(setting, "").split(",") if entry.strip()]
            protocols = {entry.partition("://")[0].upper(): "PLAINTEXT" for entry in listed}
            for each in parse_end_points(setting, listed, protocols, distinct_ports=False):
                found[each.name] = VoterAddress(each.name, each.host or "localhost", each.port)
    except SettingsError as error:
        raise ToolError(str(error)) from None
    wanted = [name.strip().upper() for name in names.split(",")]
    for name in wanted:
        if name not in found:
            raise ToolError(f"Cannot find information about controller listener name: {name}")
    return tuple(found[name] for name in wanted)
