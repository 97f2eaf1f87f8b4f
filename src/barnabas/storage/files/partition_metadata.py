"""`partition.metadata`: which topic a partition's folder belongs to, by id.

A name can be used again after its topic was deleted; the id cannot. Written once, when the folder is made.
"""

from barnabas.protocol import uuid
from barnabas.runtime.disk import Disk
from barnabas.storage.files import names

VERSION = 0


def encode(topic_id: bytes) -> bytes:
    return f"version: {VERSION}\ntopic_id: {uuid.to_text(topic_id)}".encode()


def decode(data: bytes) -> bytes:
    """The topic's id; ValueError for a file that does not name one."""
    fields = dict(
        line.split(": ", 1) for line in data.decode("utf-8", "replace").splitlines() if ": " in line
    )
    if fields.get("version") != str(VERSION):
        raise ValueError(f"version {fields.get('version')}; known is {VERSION}")
    return uuid.from_text(fields.get("topic_id", ""))


def load(disk: Disk, directory: str) -> bytes | None:
    """The id, or None where there is no file or none that can be read."""
    try:
        return decode(disk.read(f"{directory}/{names.PARTITION_METADATA}"))
    except (FileNotFoundError, ValueError):
        return None


def store(disk: Disk, directory: str, topic_id: bytes, *, sync: bool) -> None:
    disk.replace_file(f"{directory}/{names.PARTITION_METADATA}", encode(topic_id), sync=sync)
