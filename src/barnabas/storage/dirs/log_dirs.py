"""All log dirs of a node: the partitions in them, their checkpoints, and a clean shutdown.

In: `log.dirs`, node id, settings of topics. Out: logs by partition. A new log goes to the dir with the fewest
logs. A deleted one is renamed, and removed later. If a dir fails, only its own partitions go offline.
Does not know: replication, metadata, when checkpoints and deletions are due (the broker decides).
"""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.runtime.pieces import Steps
from barnabas.runtime.shortage import is_shortage
from barnabas.storage.dirs.formatting import format_log_dir, identify
from barnabas.storage.dirs.log_dir import LogDir
from barnabas.storage.dirs.new_logs import NewLog
from barnabas.storage.files import checkpoints, clean_shutdown, names
from barnabas.storage.files.errors import StorageError
from barnabas.storage.files.meta_properties import MetaProperties
from barnabas.storage.files.names import TopicPartition
from barnabas.storage.logs.context import LogContext
from barnabas.storage.logs.log import Log
from barnabas.storage.segments.settings import LogSettings

CLOSING_THREADS = 32
PARALLEL_FROM = 16  # logs; for fewer, threads do not pay

SettingsOf = Callable[[str], LogSettings]
OffsetOf = Callable[[TopicPartition, Log], int | None]  # None: the checkpoint has no line for the partition
Checkpoint = list[tuple[LogDir, bytes]]  # the content of the file of each dir

logger = logging.getLogger(__name__)


def never_stray(log: Log) -> bool:
    return False


class LogDirs:
    """`logs` and `future_logs` are keyed by partition. `dirs` has the order of `log.dirs`, failed ones
    included."""

    __slots__ = ("cluster_id", "context", "dirs", "future_logs", "logs", "preferred", "stray_folders")

    def __init__(self, context: LogContext, dirs: list[LogDir], cluster_id: str) -> None:
        """See `LogDirs.open`."""
        self.context = context
        self.cluster_id = cluster_id
        self.dirs = dirs
        self.logs: dict[TopicPartition, Log] = {}
        self.future_logs: dict[TopicPartition, Log] = {}
        self.preferred: dict[TopicPartition, LogDir] = {}  # dirs chosen for logs that do not exist yet
        self.stray_folders: list[str] = []

    @classmethod
    def open(
        cls,
        paths: Iterable[str],
        *,
        node_id: int,
        cluster_id: str | None = None,
        context: LogContext | None = None,
    ) -> "LogDirs":
        """Lock the dirs and check that they belong to this node. `StorageError` if they do not; then nothing
        was changed in any of them. A dir that cannot be used is offline; `StorageError` if none is left."""
        context = context or LogContext()
        identities = identify(context, [path.rstrip("/") or "/" for path in paths], cluster_id, node_id)
        ours = (found.cluster_id for found in identities.values() if isinstance(found, MetaProperties))
        known_id = cluster_id or next(ours)
        dirs: list[LogDir] = []
        try:
            for path, found in identities.items():
                directory = LogDir(context.disk, path)
                dirs.append(directory)
                if isinstance(found, StorageError):
                    directory.failure = str(found)
                    logger.error("Log dir %s is offline: %s", path, found)
                elif found is not None:
                    directory.lock()
            for directory in dirs:
                if directory.failure is None:
                    properties = format_log_dir(context, directory.path, known_id, node_id)
                    directory.id = properties.directory_id or directory.id
                    directory.lock()
                    # Read it before `load` removes the file: the broker registers with this epoch.
                    directory.last_epoch = clean_shutdown.broker_epoch(context.disk, directory.path)
            if all(directory.failure is not None for directory in dirs):
                raise StorageError(f"no log dir can be used: {dirs[0].failure}")
        except BaseException:
            for directory in dirs:
                directory.unlock()
            raise
        return cls(context, dirs, known_id)

    # Loading

    def load(
        self, settings_of: SettingsOf, *, now_ms: int, is_stray: Callable[[Log], bool] = never_stray
    ) -> None:
        """Open the logs of all dirs. Logs of a dir without a clean shutdown are recovered, which may take
        long."""
        for directory in self.online():
            try:
                self._load_dir(directory, settings_of, now_ms, is_stray)
            except (OSError, KafkaError) as error:
                if is_shortage(error):  # the disk has not failed
                    raise StorageError(f"could not load {directory.path}: {error}") from error
                reason = f"could not load {directory.path}: {error}"
                self.fail(directory, error.message if isinstance(error, KafkaError) else reason)

    def _load_dir(
        self, directory: LogDir, settings_of: SettingsOf, now_ms: int, is_stray: Callable[[Log], bool]
    ) -> None:
        directory.begin()
        recovery_points = directory.load_offsets(names.RECOVERY_POINT_CHECKPOINT)
        log_start_offsets = directory.load_offsets(names.LOG_START_OFFSET_CHECKPOINT)
        for folder in self.context.disk.subdirectories(directory.path):
            parsed = names.parse_folder_name(folder)
            path = f"{directory.path}/{folder}"
            if parsed is None:
                if folder != names.REMOTE_INDEX_CACHE:
                    logger.warning("Ignoring %s: not a partition's folder", path)
                continue
            partition, mark = parsed
            if partition.topic == names.METADATA_TOPIC:
                continue  # the metadata log belongs to the quorum
            if mark == names.DELETE_FOLDER:
                due_ms = now_ms + settings_of(partition.topic).file_delete_delay_ms
                self.context.graveyard.add_folder(path, due_ms)
                continue
            if mark == names.STRAY_FOLDER:
                self.stray_folders.append(path)
                continue
            log = Log.open(
                path,
                settings_of(partition.topic),
                recovery_point=recovery_points.get(partition, 0),
                log_start_offset=log_start_offsets.get(partition, 0),
                clean=directory.is_clean,
                now_ms=now_ms,
                context=self.context,
            )
            self._add_loaded(directory, log, is_future=mark == names.FUTURE_FOLDER, is_stray=is_stray)
        directory.is_loaded = True

    def _add_loaded(
        self, directory: LogDir, log: Log, *, is_future: bool, is_stray: Callable[[Log], bool]
    ) -> None:
        partition = log.topic_partition
        if is_stray(log):
            self._rename_to_stray(log, directory)
            logger.warning(
                "%s is not assigned to this node any more: renamed to %s", partition, log.directory
            )
            return
        other = (self.future_logs if is_future else self.logs).get(partition)
        if other is not None:
            raise StorageError(
                f"{partition} exists in two log dirs, {other.directory} and {log.directory}: delete the one "
                "whose dir had failed"
            )
        if is_future:
            self.future_logs[partition] = directory.future_logs[partition] = log
        else:
            self.logs[partition] = directory.logs[partition] = log

    # Dirs

    def online(self) -> list[LogDir]:
        return [directory for directory in self.dirs if directory.failure is None]

    def dir_of(self, log: Log) -> LogDir:
        path = log.directory.rpartition("/")[0]
        return next(directory for directory in self.dirs if directory.path == path)

    def dir_with_id(self, directory_id: bytes) -> LogDir | None:
        return next((directory for directory in self.dirs if directory.id == directory_id), None)

    def dir_with_path(self, path: str) -> LogDir | None:
        """The dir with this path, or the dir that contains it."""
        return next((each for each in self.dirs if f"{path}/".startswith(f"{each.path}/")), None)

    def cordon(self, paths: Collection[str]) -> list[bytes]:
        """Cordon exactly these dirs: they accept no new partitions. `*` means all. Returns their ids."""
        for directory in self.dirs:
            directory.is_cordoned = "*" in paths or directory.path in [path.rstrip("/") for path in paths]
        return [directory.id for directory in self.online() if directory.is_cordoned]

    def fail(self, directory: LogDir, reason: str) -> list[TopicPartition]:
        """Take a dir offline: forget its logs and do not touch its files. Returns the offline partitions."""
        directory.failure = reason
        logger.error("Log dir %s is offline: %s", directory.path, reason)
        gone = list(directory.logs)
        for log in [*directory.logs.values(), *directory.future_logs.values()]:
            self._close_files(log)
        for partition in gone:
            del self.logs[partition]
        for partition in directory.future_logs:
            del self.future_logs[partition]
        directory.logs.clear()
        directory.future_logs.clear()
        self.context.graveyard.forget_below(directory.path)
        directory.unlock()
        if not self.online():
            raise StorageError(f"no log dir is left: {reason}")
        return gone

    # Partitions

    def create(
        self,
        partition: TopicPartition,
        settings: LogSettings,
        *,
        topic_id: bytes | None,
        now_ms: int,
        directory_id: bytes | None = None,
        leader_epoch: int = -1,
    ) -> Log:
        """Create the log of a new partition, in the given dir or in the one with the fewest logs. A log that
        may exist in an offline dir is not created again."""
        new = self.plan(
            partition, settings, topic_id=topic_id, leader_epoch=leader_epoch, directory_id=directory_id
        )
        try:
            log = new.make(self.context, now_ms)
        finally:
            self.add_created(new)
        return log

    def plan(
        self,
        partition: TopicPartition,
        settings: LogSettings,
        *,
        topic_id: bytes | None,
        directory_id: bytes | None = None,
        leader_epoch: int = -1,
    ) -> NewLog:
        """Choose the dir of a new log. The caller runs `NewLog.make` in a thread, then calls
        `add_created`."""
        new = NewLog(partition, self._dir_for(partition, directory_id), settings, topic_id, leader_epoch)
        new.directory.planned += 1
        return new

    def add_created(self, new: NewLog) -> None:
        """End a plan: add the log if it was created."""
        directory = new.directory
        directory.planned -= 1
        if new.log is not None and directory.failure is None:
            self.logs[new.where] = directory.logs[new.where] = new.log

    def _dir_for(self, partition: TopicPartition, directory_id: bytes | None) -> LogDir:
        preferred = self.preferred.pop(partition, None)
        if preferred is not None and preferred.failure is None:
            return preferred
        online = self.online()
        if directory_id is not None:
            found = self.dir_with_id(directory_id)
            if found in online:
                return found
            if len(online) < len(self.dirs):
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"the log dir of {partition} is offline")
        if not online:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "all log dirs are offline")
        if len(online) == 1:
            return online[0]
        open_ones = [directory for directory in online if not directory.is_cordoned] or online
        return min(open_ones, key=lambda each: len(each.logs) + len(each.future_logs) + each.planned)

    def delete(self, partition: TopicPartition, *, now_ms: int) -> None:
        """Delete a partition: forget it at once, rename its folder, remove the files later."""
        self.delete_later(self.remove(partition), now_ms)

    def delete_later(self, log: Log, now_ms: int) -> None:
        """Rename the folder of a log that was removed and add it to the graveyard. May run in a thread."""
        self._rename(log, self.dir_of(log), names.DELETE_FOLDER)
        self._close_files(log)
        self.context.graveyard.add_folder(log.directory, now_ms + log.settings.file_delete_delay_ms)

    def _close_files(self, log: Log) -> None:
        """Close the log's files: an open file keeps its disk space, and its disk cannot be unmounted."""
        for segment in log.segments:
            self.context.files.close(segment)
            self.context.indexes.forget(segment)

    def rename_to_stray(self, partition: TopicPartition) -> str:
        """Forget a partition that should not be on this node and keep its data in a `-stray` folder. Returns
        the new path."""
        log = self.remove(partition)
        self._rename_to_stray(log, self.dir_of(log))
        return log.directory

    def _rename_to_stray(self, log: Log, directory: LogDir) -> None:
        self._rename(log, directory, names.STRAY_FOLDER)
        self.stray_folders.append(log.directory)

    def remove(self, partition: TopicPartition) -> Log:
        """Forget a partition. The caller decides about its folder."""
        log = self.logs.pop(partition)
        del self.dir_of(log).logs[partition]
        return log

    def _rename(self, log: Log, directory: LogDir, mark: str) -> None:
        log.rename(f"{directory.path}/{self.marked_name(log.topic_partition, mark)}")

    def marked_name(self, partition: TopicPartition, mark: str) -> str:
        return names.marked_folder_name(partition, mark, self.context.rng.randbytes(16).hex())

    # Checkpoints

    def checkpoint_recovery_points(self) -> None:
        """Sync new folders, then `store_recovery_points`. Waits for the disk."""
        for log in [*self.logs.values(), *self.future_logs.values()]:
            if log.folder_dirty:
                work = log.begin_folder_sync()
                work.run()
                log.end_sync(work)
        self.store_recovery_points()

    def store_recovery_points(self) -> None:
        """Write the recovery points (`log.flush.offset.checkpoint.interval.ms`). Any thread may call it."""
        for directory in self.online():
            self._store(directory, names.RECOVERY_POINT_CHECKPOINT, offsets(directory, recovery_point))

    def checkpoint_log_start_offsets(self) -> None:
        """Write the log start offsets (`log.flush.start.offset.checkpoint.interval.ms`)."""
        for directory in self.online():
            self._store(directory, names.LOG_START_OFFSET_CHECKPOINT, offsets(directory, log_start_offset))

    def checkpoint_in_steps(self, offset_of: OffsetOf) -> Steps[Checkpoint]:
        """Build the checkpoint content of every dir on the loop, in steps; `store_checkpoint` writes it in a
        thread. Building it in that thread would hold the interpreter's lock, and so stop the loop."""
        found: Checkpoint = []
        for directory in self.online():
            found.append((directory, (yield from checkpoints.encode_in_steps(walk(directory, offset_of)))))
        return found

    def store_checkpoint(self, name: str, found: Checkpoint) -> None:
        """Write what `checkpoint_in_steps` built. Any thread may call it."""
        for directory, data in found:
            if directory.failure is None:
                try:
                    directory.check_mounted()
                    self.context.disk.replace_file(f"{directory.path}/{name}", data)
                except OSError as error:
                    raise self.context.failure("write", f"{directory.path}/{name}", error) from error

    def _checkpoint(self, directory: LogDir) -> None:
        self._store(directory, names.RECOVERY_POINT_CHECKPOINT, offsets(directory, recovery_point))
        self._store(directory, names.LOG_START_OFFSET_CHECKPOINT, offsets(directory, log_start_offset))

    def checkpoint_high_watermarks(self, high_watermarks: Mapping[TopicPartition, int]) -> None:
        """Write the high watermarks (`replica.high.watermark.checkpoint.interval.ms`)."""
        for directory in self.online():
            marks = {w: high_watermarks[w] for w in list(directory.logs) if w in high_watermarks}
            self._store(directory, names.HIGH_WATERMARK_CHECKPOINT, marks)

    def load_high_watermarks(self) -> dict[TopicPartition, int]:
        """Read the checkpointed high watermarks, each limited to the end of its log."""
        marks: dict[TopicPartition, int] = {}
        for directory in self.online():
            marks |= directory.load_offsets(names.HIGH_WATERMARK_CHECKPOINT)
        return {
            partition: min(mark, self.logs[partition].end_offset)
            for partition, mark in marks.items()
            if partition in self.logs
        }

    def _store(self, directory: LogDir, name: str, offsets: Mapping[TopicPartition, int]) -> None:
        try:
            directory.check_mounted()
            directory.store_offsets(name, offsets)
        except OSError as error:
            raise self.context.failure("write", f"{directory.path}/{name}", error) from error

    # Shutdown

    def close(self, broker_epoch: int = -1) -> None:
        """Close every log. Write the clean-shutdown file to dirs where no log failed, so that the next start
        needs no recovery."""
        for directory in self.online():
            logs = [*directory.logs.values(), *directory.future_logs.values()]
            in_order = directory.is_loaded and all(self._in_threads(_close, logs))
            try:
                self._checkpoint(directory)
                if in_order:
                    directory.end(broker_epoch)
            except (OSError, KafkaError) as error:
                logger.error("Could not write the clean-shutdown file of %s: %s", directory.path, error)
            directory.unlock()

    def _in_threads(self, work: Callable[[Log], bool], logs: Collection[Log]) -> Iterable[bool]:
        """Run work that waits for the disk in many threads: file systems sync many files together."""
        if len(logs) < PARALLEL_FROM:
            return [work(log) for log in logs]
        with ThreadPoolExecutor(CLOSING_THREADS) as pool:
            return list(pool.map(work, logs, chunksize=1))

    def abandon(self) -> None:
        """Release the locks without writing anything, as a crash would."""
        for directory in self.dirs:
            directory.unlock()


def _close(log: Log) -> bool:
    try:
        log.close()
    except KafkaError as error:
        logger.error("Could not close %s: %s", log.directory, error.message)
        return False
    return True


def recovery_point(partition: TopicPartition, log: Log) -> int:
    return log.recovery_point


def log_start_offset(partition: TopicPartition, log: Log) -> int | None:
    """The log start offset if it differs from the base offset of the first segment."""
    return log.log_start_offset if log.log_start_offset > log.segments[0].base_offset else None


def walk(directory: LogDir, offset_of: OffsetOf) -> Iterator[tuple[TopicPartition, int | None]]:
    """The offset of each log of a dir. Logs may come and go meanwhile: the walk is over names, which exist
    already. A list of pairs would be 40,000 new objects for the garbage collector."""
    for logs in (directory.logs, directory.future_logs):
        for partition in list(logs):
            log = logs.get(partition)
            yield partition, None if log is None else offset_of(partition, log)


def offsets(directory: LogDir, offset_of: OffsetOf) -> dict[TopicPartition, int]:
    return {partition: offset for partition, offset in walk(directory, offset_of) if offset is not None}
