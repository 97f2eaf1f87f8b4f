"""`meta.properties`: which cluster and node a log dir belongs to, and the dir's own id.

In: a log dir. Out: `MetaProperties`, or a `StorageError` of one line. The file has version 1, as the storage
tool of Apache Kafka writes it. In a log dir with encrypted files the version is another text, so that Apache
Kafka refuses to start instead of cutting off files that it cannot read.
Does not know: what else is in the dir.
"""

from dataclasses import dataclass

from barnabas.protocol import uuid
from barnabas.runtime.disk import Disk
from barnabas.settings.properties import parse_bytes
from barnabas.storage.files import names
from barnabas.storage.files.errors import StorageError

VERSION = 1
ENCRYPTED_VERSION = "1-encrypted-by-barnabas"
RESERVED_IDS = 100  # the first hundred ids are reserved (KIP-858)


@dataclass(frozen=True, slots=True)
class MetaProperties:
    cluster_id: str
    node_id: int
    directory_id: bytes | None = None  # None: written by a version without directory ids
    is_encrypted: bool = False  # files in it are, or were, encrypted


def random_directory_id(random_bytes: bytes) -> bytes:
    """Make a valid directory id from 16 random bytes: not a reserved one, and its text does not begin with a
    dash."""
    while int.from_bytes(random_bytes) < RESERVED_IDS or uuid.to_text(random_bytes).startswith("-"):
        random_bytes = bytes((byte + 1) % 256 for byte in random_bytes)
    return random_bytes


def encode(properties: MetaProperties) -> bytes:
    version = ENCRYPTED_VERSION if properties.is_encrypted else VERSION
    lines = [f"node.id={properties.node_id}", f"version={version}", f"cluster.id={properties.cluster_id}"]
    if properties.directory_id is not None:
        lines.insert(1, f"directory.id={uuid.to_text(properties.directory_id)}")
    return "".join(f"{line}\n" for line in ["#", *lines]).encode()


def decode(data: bytes, path: str) -> MetaProperties:
    fields = parse_bytes(data)
    version = fields.get("version", "0")
    if version not in ("0", str(VERSION), ENCRYPTED_VERSION):
        raise StorageError(f"{path} has version {version}; the newest supported version is {VERSION}")
    try:
        node_id = int(fields["node.id"] if "node.id" in fields else fields["broker.id"])
        directory_id = uuid.from_text(fields["directory.id"]) if "directory.id" in fields else None
        return MetaProperties(fields["cluster.id"], node_id, directory_id, version == ENCRYPTED_VERSION)
    except KeyError as error:
        raise StorageError(f"{path} does not name the {error.args[0]}") from None
    except ValueError as error:
        raise StorageError(f"{path} is damaged: {error}") from None


def load(disk: Disk, directory: str) -> MetaProperties | None:
    """Read the file of a log dir; None if the dir is not formatted."""
    path = f"{directory}/{names.META_PROPERTIES}"
    try:
        return decode(disk.read(path), path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}") from error


def store(disk: Disk, directory: str, properties: MetaProperties) -> None:
    disk.replace_file(f"{directory}/{names.META_PROPERTIES}", encode(properties))


def check(properties: MetaProperties, directory: str, cluster_id: str | None, node_id: int) -> None:
    """`StorageError` when the dir belongs to another cluster or node."""
    if cluster_id is not None and properties.cluster_id != cluster_id:
        raise StorageError(
            f"{directory} belongs to cluster {properties.cluster_id}, not {cluster_id}: "
            "set log.dirs to this cluster's folder, or format an empty one"
        )
    if properties.node_id != node_id:
        raise StorageError(
            f"{directory} belongs to node {properties.node_id}, not {node_id}: correct node.id or log.dirs"
        )
