"""Formatting of log dirs, and the check that they belong to this node before anything is changed.

In: paths, cluster id and node id. Out: the `MetaProperties` of each dir, or a `StorageError` of one line. A
dir that was added to `log.dirs` later is formatted automatically. If no dir is formatted, the operator has to
run `storage format`.
Does not know: what else is in the dirs.
"""

from barnabas.storage.files import meta_properties
from barnabas.storage.files.errors import StorageError
from barnabas.storage.files.meta_properties import MetaProperties
from barnabas.storage.logs.context import LogContext

Identity = MetaProperties | StorageError | None  # None: not formatted yet


def format_log_dir(context: LogContext, path: str, cluster_id: str, node_id: int) -> MetaProperties:
    """Create the folder if needed and write its `meta.properties`. A formatted dir is not changed."""
    disk = context.disk
    found = _identify_one(context, path)
    if isinstance(found, StorageError):
        raise found
    if found is not None:
        meta_properties.check(found, path, cluster_id, node_id)
        if found.directory_id is not None:
            return found
    directory_id = meta_properties.random_directory_id(context.rng.randbytes(16))
    is_encrypted = found is not None and found.is_encrypted
    properties = MetaProperties(cluster_id, node_id, directory_id, is_encrypted)
    try:
        disk.makedirs(path, exist_ok=True)
        meta_properties.store(disk, path, properties)
    except OSError as error:
        raise StorageError(f"cannot format {path}: {error.strerror}") from error
    return properties


def identify(
    context: LogContext, paths: list[str], cluster_id: str | None, node_id: int
) -> dict[str, Identity]:
    """Read the identity of each dir. Raises `StorageError` for a dir of another node or cluster: starting on
    it would mix the data of two nodes. If the caller knows the `cluster_id`, no dir needs to be formatted."""
    if not paths:
        raise StorageError("log.dirs names no folder")
    identities: dict[str, Identity] = {}
    real_paths = set()
    for path in paths:
        real_path = context.disk.real_path(path)
        if real_path in real_paths:
            raise StorageError(f"log.dirs names {path} twice")
        real_paths.add(real_path)
        found = _identify_one(context, path)
        if isinstance(found, MetaProperties):
            meta_properties.check(found, path, cluster_id, node_id)
            cluster_id = found.cluster_id
        identities[path] = found
    if cluster_id is None:
        for found in identities.values():
            if isinstance(found, StorageError):
                raise found
        raise StorageError(f"{paths[0]} is not formatted: run 'barnabas storage format' first")
    return identities


def _identify_one(context: LogContext, path: str) -> Identity:
    disk = context.disk
    try:
        if not disk.exists(path):
            return None
        if not disk.is_directory(path):
            return StorageError(f"{path} is not a folder")
        if not disk.is_writable(path):
            return StorageError(f"{path} is not writable: give this user the rights, or change log.dirs")
    except OSError as error:
        return StorageError(f"cannot use {path}: {error.strerror}")
    try:
        return meta_properties.load(disk, path)
    except StorageError as error:
        return error
