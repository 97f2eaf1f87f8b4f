"""Future logs: copies of partitions that move to another log dir, in `-future` folders.

In: all log dirs, a partition. Out: an empty log to copy into; later that copy replaces the log or is deleted.
The metadata names the new dir before the copy replaces the log, so after a crash in between
`resolve_leftovers` finds the right one of two folders.
Does not know: how the log is copied (the broker does that), metadata.
"""

import logging
from collections.abc import Callable

from barnabas.storage.dirs.log_dir import LogDir
from barnabas.storage.dirs.log_dirs import LogDirs
from barnabas.storage.files import names
from barnabas.storage.files.names import TopicPartition
from barnabas.storage.logs.log import Log

logger = logging.getLogger(__name__)


def create(dirs: LogDirs, log: Log, directory: LogDir, now_ms: int) -> Log:
    """Create an empty future log in another dir, with the log start offset of `log`."""
    partition = log.topic_partition
    path = f"{directory.path}/{dirs.marked_name(partition, names.FUTURE_FOLDER)}"
    future = Log.create(
        path,
        log.settings,
        topic_id=log.topic_id,
        start_offset=log.log_start_offset,
        now_ms=now_ms,
        context=dirs.context,
    )
    dirs.future_logs[partition] = directory.future_logs[partition] = future
    return future


def drop(dirs: LogDirs, partition: TopicPartition, now_ms: int) -> None:
    """Delete a future log."""
    future = dirs.future_logs.pop(partition)
    del dirs.dir_of(future).future_logs[partition]
    dirs.delete_later(future, now_ms)


def promote(dirs: LogDirs, partition: TopicPartition, now_ms: int) -> Log:
    """Replace the log by its copy, under the log's name. The old log, if there is one, is deleted later."""
    future, old = dirs.future_logs[partition], dirs.logs.get(partition)
    directory = dirs.dir_of(future)
    future.rename(f"{directory.path}/{names.folder_name(partition)}")
    del dirs.future_logs[partition], directory.future_logs[partition]
    if old is not None:
        del dirs.dir_of(old).logs[partition]
    dirs.logs[partition] = directory.logs[partition] = future
    if old is not None:
        dirs.delete_later(old, now_ms)
    return future


def sync_name(dirs: LogDirs, log: Log) -> None:
    """Make the new name of a promoted log durable."""
    directory = dirs.dir_of(log)
    try:
        dirs.context.disk.sync_directory(directory.path)
    except OSError as error:
        raise dirs.context.failure("sync", directory.path, error) from error


def resolve_leftovers(dirs: LogDirs, assigned: Callable[[TopicPartition], bytes | None], now_ms: int) -> None:
    """After loading, decide about copies without a log. A copy was complete if the metadata assigns the
    partition to its dir: promote it. Otherwise delete it, unless a log dir is offline."""
    for partition, future in list(dirs.future_logs.items()):
        if partition in dirs.logs:
            continue  # the move continues
        if assigned(partition) == dirs.dir_of(future).id:
            promote(dirs, partition, now_ms)
            logger.warning("%s becomes the log of %s: the move was complete", future.directory, partition)
        elif len(dirs.online()) == len(dirs.dirs):
            drop(dirs, partition, now_ms)
