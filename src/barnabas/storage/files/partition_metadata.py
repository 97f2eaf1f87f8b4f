"""`partition.metadata`: the topic id of a partition's folder.

A topic's name can be used again after its deletion, its id cannot. The file is written once, with the folder.
"""

from barnabas.protocol import uuid
from barnabas.runtime.disk import Disk
from barnabas.storage.files import names

VERSION = 0


def encode(topic_id: bytes) -> bytes:
    return f"version: {VERSION}\ntopic_id: {uuid.to_text(topic_id)}".encode()


def decode(data: bytes) -> bytes:
    """The topic id; ValueError if the file has none."""
    fields = dict(
        line.split(": ", 1) for line in data.decode("utf-8", "replace").splitlines() if ": " in line
    )
    if fields.get("version") != str(VERSION):
        raise ValueError(f"version {fields.get('version')} is not supported, only {VERSION}")
    return uuid.from_text(fields.get("topic_id", ""))


def load(disk: Disk, directory: str) -> bytes | None:
    """The topic id, or None if the file is missing or invalid."""
    try:
        return decode(disk.read(f"{directory}/{names.PARTITION_METADATA}"))
    except (FileNotFoundError, ValueError):
        return None


def store(disk: Disk, directory: str, topic_id: bytes, *, sync: bool) -> None:
    disk.replace_file(f"{directory}/{names.PARTITION_METADATA}", encode(topic_id), sync=sync)
