"""Future logs: copies of partitions on their way to another log dir, in `-future` folders.

In: all log dirs, a partition. Out: a log to copy into; that copy in the place of the log, or gone. The log's
new dir is known to the metadata before the copy takes its place, so that after a crash in between the right
one of two folders is found: see `resolve_leftovers`.
Does not know: how the copying is done (see the broker's moves), what the metadata is.
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
    """An empty log in another dir, that begins where this one does."""
    where = log.topic_partition
    path = f"{directory.path}/{dirs.marked_name(where, names.FUTURE_FOLDER)}"
    future = Log.create(
        path,
        log.settings,
        topic_id=log.topic_id,
        start_offset=log.log_start_offset,
        now_ms=now_ms,
        context=dirs.context,
    )
    dirs.future_logs[where] = directory.future_logs[where] = future
    return future


def drop(dirs: LogDirs, where: TopicPartition, now_ms: int) -> None:
    """The copy is not wanted any more."""
    future = dirs.future_logs.pop(where)
    del dirs.dir_of(future).future_logs[where]
    dirs.delete_later(future, now_ms)


def promote(dirs: LogDirs, where: TopicPartition, now_ms: int) -> Log:
    """The copy is the log from now on, under the log's own name; the old one, if there is any, is buried."""
    future, old = dirs.future_logs[where], dirs.logs.get(where)
    directory = dirs.dir_of(future)
    future.rename(f"{directory.path}/{names.folder_name(where)}")
    del dirs.future_logs[where], directory.future_logs[where]
    if old is not None:
        del dirs.dir_of(old).logs[where]
    dirs.logs[where] = directory.logs[where] = future
    if old is not None:
        dirs.delete_later(old, now_ms)
    return future


def sync_name(dirs: LogDirs, log: Log) -> None:
    """Make it durable that a log has its name (see `promote`)."""
    directory = dirs.dir_of(log)
    try:
        dirs.context.disk.sync_directory(directory.path)
    except OSError as error:
        raise dirs.context.failure("sync", directory.path, error) from error


def resolve_leftovers(dirs: LogDirs, assigned: Callable[[TopicPartition], bytes | None], now_ms: int) -> None:
    """After loading: a copy whose log is gone was complete, if the metadata says that the partition lies
    where the copy does. A copy of which nothing is known is of no use."""
    for where, future in list(dirs.future_logs.items()):
        if where in dirs.logs:
            continue  # the copying goes on
        if assigned(where) == dirs.dir_of(future).id:
            promote(dirs, where, now_ms)
            logger.warning("%s goes on as the log of %s: it was complete", future.directory, where)
        elif len(dirs.online()) == len(dirs.dirs):
            drop(dirs, where, now_ms)
