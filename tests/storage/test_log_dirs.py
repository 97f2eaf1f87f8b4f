"""Log dirs of a node: identity, loading, placement of partitions, shutdown."""

import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.runtime.disk import REAL_DISK, Disk
from barnabas.storage import Log, LogContext, LogDirs, LogSettings, StorageError, TopicPartition
from barnabas.storage.dirs.formatting import format_log_dir
from barnabas.storage.files import partition_metadata

from .building import NOW_MS, SMALL, append, batch_at, fill, read_all

CLUSTER = "AAAAAAAAAAAAAAAAAAAAAQ"
TOPIC_ID = bytes(range(16))
A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def settings_of(topic: str) -> LogSettings:
    return SMALL


@pytest.fixture
def open_dirs() -> Iterator[Callable[..., LogDirs]]:
    opened = []

    def open_and_load(*paths: Path, load: bool = True, **options: object) -> LogDirs:
        dirs = LogDirs.open(
            [str(path) for path in paths], node_id=1, context=LogContext(rng=random.Random(1)), **options
        )
        opened.append(dirs)
        if load:
            dirs.load(settings_of, now_ms=NOW_MS)
        return dirs

    yield open_and_load
    for dirs in opened:
        dirs.abandon()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    format_log_dir(LogContext(), str(tmp_path / "data"), CLUSTER, 1)
    return tmp_path / "data"


Open = Callable[..., LogDirs]


def create(dirs: LogDirs, where: TopicPartition) -> Log:
    return dirs.create(where, SMALL, topic_id=TOPIC_ID, now_ms=NOW_MS)


def test_a_new_partition_has_the_files_that_kafka_makes(data: Path, open_dirs: Open) -> None:
    create(open_dirs(data), A0)

    assert {path.name for path in (data / "a-0").iterdir()} == {
        "00000000000000000000.index",
        "00000000000000000000.log",
        "00000000000000000000.timeindex",
        "leader-epoch-checkpoint",
        "partition.metadata",
    }


def test_everything_comes_back_after_an_orderly_end(data: Path, open_dirs: Open) -> None:
    dirs = open_dirs(data)
    appended = fill(create(dirs, A0), 30)
    create(dirs, B0)
    dirs.close(broker_epoch=5)

    again = open_dirs(data)
    assert again.dirs[0].is_clean
    assert again.dirs[0].last_epoch == 5
    assert set(again.logs) == {A0, B0}
    assert read_all(again.logs[A0]) == appended
    assert again.logs[A0].topic_id == TOPIC_ID


def test_everything_written_comes_back_after_a_crash(data: Path, open_dirs: Open) -> None:
    dirs = open_dirs(data)
    appended = fill(create(dirs, A0), 30)
    dirs.abandon()

    again = open_dirs(data)
    assert not again.dirs[0].is_clean
    assert read_all(again.logs[A0]) == appended


def test_a_crash_after_a_clean_start_is_a_crash(data: Path, open_dirs: Open) -> None:
    open_dirs(data).close()
    open_dirs(data).abandon()

    assert not open_dirs(data).dirs[0].is_clean


def test_a_log_that_could_not_be_closed_leaves_no_clean_mark(data: Path, open_dirs: Open) -> None:
    dirs = open_dirs(data)
    fill(create(dirs, A0), 1)
    for path in (data / "a-0").iterdir():
        path.unlink()
    (data / "a-0").rmdir()
    dirs.close()

    assert not (data / ".kafka_cleanshutdown").exists()


def test_recovery_points_are_checkpointed_for_every_log(data: Path, open_dirs: Open) -> None:
    dirs = open_dirs(data)
    fill(create(dirs, A0), 3)
    create(dirs, B0)
    dirs.logs[A0].sync()
    dirs.checkpoint_recovery_points()

    assert (data / "recovery-point-offset-checkpoint").read_text() == "0\n2\na 0 3\nb 0 0\n"


def test_log_starts_are_checkpointed_where_no_segment_says_them(data: Path, open_dirs: Open) -> None:
    dirs = open_dirs(data)
    fill(create(dirs, A0), 3)
    fill(create(dirs, B0), 3)
    dirs.logs[B0].advance_log_start(2)
    dirs.checkpoint_log_start_offsets()
    dirs.abandon()

    assert (data / "log-start-offset-checkpoint").read_text() == "0\n1\nb 0 2\n"
    assert open_dirs(data).logs[B0].log_start_offset == 2


def test_high_watermarks_come_back_but_never_above_the_end(data: Path, open_dirs: Open) -> None:
    dirs = open_dirs(data)
    fill(create(dirs, A0), 3)
    create(dirs, B0)
    dirs.checkpoint_high_watermarks({A0: 2, B0: 7})

    assert dirs.load_high_watermarks() == {A0: 2, B0: 0}


def test_a_damaged_checkpoint_costs_time_not_data(data: Path, open_dirs: Open) -> None:
    dirs = open_dirs(data)
    appended = fill(create(dirs, A0), 30)
    dirs.close()
    (data / "recovery-point-offset-checkpoint").write_bytes(b"nonsense")

    assert read_all(open_dirs(data).logs[A0]) == appended


def test_new_partitions_go_to_the_dir_with_fewest(tmp_path: Path, data: Path, open_dirs: Open) -> None:
    dirs = open_dirs(data, tmp_path / "more")
    for number in range(6):
        create(dirs, TopicPartition("t", number))

    assert [len(directory.logs) for directory in dirs.dirs] == [3, 3]


def test_a_partition_goes_to_the_dir_that_is_asked_for(tmp_path: Path, data: Path, open_dirs: Open) -> None:
    dirs = open_dirs(data, tmp_path / "more")
    wanted = dirs.dirs[1]
    for number in range(3):
        where = TopicPartition("t", number)
        dirs.create(where, SMALL, topic_id=TOPIC_ID, now_ms=NOW_MS, directory_id=wanted.id)

    assert len(wanted.logs) == 3


def test_a_dir_that_was_added_is_formatted_like_the_others(
    tmp_path: Path, data: Path, open_dirs: Open
) -> None:
    first = open_dirs(data, tmp_path / "more")
    ids = [directory.id for directory in first.dirs]
    assert len(set(ids)) == 2
    first.close()

    again = open_dirs(data, tmp_path / "more")
    assert [directory.id for directory in again.dirs] == ids
    assert again.cluster_id == CLUSTER


def test_a_deleted_partition_disappears_at_once_and_its_files_later(data: Path, open_dirs: Open) -> None:
    dirs = open_dirs(data)
    fill(create(dirs, A0), 3)
    found = dirs.logs[A0].read(0, 100)
    dirs.delete(A0, now_ms=NOW_MS)

    assert dirs.logs == {}
    [folder] = data.glob("a-0.*-delete")
    due = NOW_MS + SMALL.file_delete_delay_ms
    assert dirs.context.graveyard.remove_due(due - 1) == due
    assert folder.exists()
    assert dirs.context.graveyard.remove_due(due) is None
    assert not folder.exists()
    assert len(found.read()) == len(found)


def test_a_topic_can_be_made_again_while_the_old_one_waits_for_removal(data: Path, open_dirs: Open) -> None:
    dirs = open_dirs(data)
    fill(create(dirs, A0), 3)
    dirs.delete(A0, now_ms=NOW_MS)

    assert create(dirs, A0).end_offset == 0


def test_deletion_goes_on_after_a_restart(data: Path, open_dirs: Open) -> None:
    dirs = open_dirs(data)
    create(dirs, A0)
    dirs.delete(A0, now_ms=NOW_MS)
    dirs.close()
    again = open_dirs(data)

    assert again.logs == {}
    again.context.graveyard.remove_due(NOW_MS + 10 * SMALL.file_delete_delay_ms)
    assert not list(data.glob("a-0*"))


def test_a_stray_partition_is_set_aside(data: Path, open_dirs: Open) -> None:
    dirs = open_dirs(data)
    create(dirs, A0)
    create(dirs, B0)
    dirs.close()
    again = open_dirs(data, load=False)
    again.load(settings_of, now_ms=NOW_MS, is_stray=lambda log: log.topic_partition == A0)

    assert set(again.logs) == {B0}
    assert len(list(data.glob("a-0.*-stray"))) == len(again.stray_folders) == 1


def test_future_logs_are_kept_apart(data: Path, open_dirs: Open) -> None:
    dirs = open_dirs(data)
    create(dirs, A0)
    dirs.close()
    (data / "a-0").rename(data / f"a-0.{'0' * 32}-future")
    again = open_dirs(data)

    assert (set(again.logs), set(again.future_logs)) == (set(), {A0})


def test_folders_of_other_kinds_are_not_changed(data: Path, open_dirs: Open) -> None:
    for name in ("lost+found", "__cluster_metadata-0", "remote-log-index-cache", ".snapshots"):
        (data / name).mkdir()

    assert open_dirs(data).logs == {}
    assert (data / "lost+found").exists()


def test_a_partition_in_two_dirs_is_refused(tmp_path: Path, data: Path, open_dirs: Open) -> None:
    dirs = open_dirs(data, tmp_path / "more")
    create(dirs, A0)
    dirs.close()
    (tmp_path / "more" / "a-0").mkdir()

    with pytest.raises(StorageError, match="a-0 exists in two log dirs"):
        open_dirs(data, tmp_path / "more")


def test_a_folder_of_another_cluster_is_refused_and_left_alone(data: Path, open_dirs: Open) -> None:
    before = sorted(path.name for path in data.iterdir())
    with pytest.raises(StorageError, match=f"belongs to cluster {CLUSTER}, not BBBB"):
        open_dirs(data, cluster_id="BBBB")

    assert sorted(path.name for path in data.iterdir()) == before


def test_a_folder_of_another_node_is_refused(data: Path) -> None:
    with pytest.raises(StorageError, match="belongs to node 1, not 2"):
        LogDirs.open([str(data)], node_id=2)


def test_dirs_of_two_clusters_are_refused(tmp_path: Path, data: Path, open_dirs: Open) -> None:
    format_log_dir(LogContext(), str(tmp_path / "foreign"), "BBBBBBBBBBBBBBBBBBBBBQ", 1)
    with pytest.raises(StorageError, match="belongs to cluster BBBB"):
        open_dirs(data, tmp_path / "foreign")


def test_the_error_for_an_unformatted_folder_names_the_command(tmp_path: Path, open_dirs: Open) -> None:
    with pytest.raises(StorageError, match="storage format"):
        open_dirs(tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()


def test_a_file_is_no_log_dir(tmp_path: Path, open_dirs: Open) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="is not a folder"):
        open_dirs(tmp_path / "file")


def test_the_same_dir_twice_is_refused(data: Path, open_dirs: Open) -> None:
    with pytest.raises(StorageError, match="twice"):
        open_dirs(data, data.parent / "." / "data")


def test_a_second_start_in_this_process_is_refused(data: Path, open_dirs: Open) -> None:
    open_dirs(data)
    with pytest.raises(StorageError, match="is in use"):
        open_dirs(data)


def test_a_second_start_in_another_process_is_refused(data: Path, open_dirs: Open) -> None:
    open_dirs(data)
    code = "import sys; from barnabas.storage import LogDirs; LogDirs.open([sys.argv[1]], node_id=1)"
    done = subprocess.run([sys.executable, "-c", code, str(data)], capture_output=True, text=True)

    assert done.returncode != 0
    assert "is in use" in done.stderr


def test_a_dir_can_be_used_again_after_the_end(data: Path, open_dirs: Open) -> None:
    open_dirs(data).close()
    open_dirs(data)


class ReadOnlyDisk(Disk):
    def is_writable(self, path: str) -> bool:
        return False


def test_a_dir_that_is_not_writable_is_refused(data: Path) -> None:
    with pytest.raises(StorageError, match="not writable"):
        LogDirs.open([str(data)], node_id=1, context=LogContext(ReadOnlyDisk()))


def test_one_bad_dir_is_offline_and_the_others_serve(tmp_path: Path, data: Path, open_dirs: Open) -> None:
    (tmp_path / "file").write_text("")
    dirs = open_dirs(data, tmp_path / "file")

    assert [directory.failure is None for directory in dirs.dirs] == [True, False]
    assert create(dirs, A0).directory == f"{data}/a-0"


def test_a_failed_dir_takes_only_its_partitions_offline(tmp_path: Path, data: Path, open_dirs: Open) -> None:
    dirs = open_dirs(data, tmp_path / "more")
    create(dirs, A0)
    create(dirs, A1)

    assert dirs.fail(dirs.dirs[0], "I/O error") == [A0]
    assert set(dirs.logs) == {A1}
    assert create(dirs, B0).directory.startswith(f"{tmp_path}/more/")
    with pytest.raises(StorageError, match="no log dir is left"):
        dirs.fail(dirs.dirs[1], "I/O error")
    with pytest.raises(KafkaError) as refused:
        create(dirs, TopicPartition("c", 0))
    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR


def test_formatting_twice_keeps_the_dirs_id(tmp_path: Path) -> None:
    context = LogContext()
    first = format_log_dir(context, str(tmp_path / "d"), CLUSTER, 1)
    assert format_log_dir(context, str(tmp_path / "d"), CLUSTER, 1) == first


def test_thousands_of_partitions_keep_few_files_open(data: Path) -> None:
    context = LogContext(open_files_max=20)
    dirs = LogDirs.open([str(data)], node_id=1, context=context)
    dirs.load(settings_of, now_ms=NOW_MS)
    for number in range(200):
        append(create(dirs, TopicPartition("t", number)), batch_at(0))
    held = psutil.Process().num_fds()

    assert sum(log.active.file is not None for log in dirs.logs.values()) <= 20
    assert all(read_all(log) == [batch_at(0)] for log in dirs.logs.values())
    assert psutil.Process().num_fds() <= held + 1
    dirs.close()


def test_a_folder_of_an_older_topic_of_the_same_name_is_not_taken_over(data: Path, open_dirs: Open) -> None:
    dirs = open_dirs(data)
    fill(create(dirs, A0), 3)
    dirs.abandon()
    again = open_dirs(data, load=False)

    with pytest.raises(KafkaError) as refused:
        again.create(A0, SMALL, topic_id=bytes(16), now_ms=NOW_MS)
    assert refused.value.code == ErrorCode.INCONSISTENT_TOPIC_ID
    assert create(again, A0).end_offset == 3


def test_a_checkpoint_makes_new_folders_durable(data: Path, open_dirs: Open) -> None:
    dirs = open_dirs(data)
    log = create(dirs, A0)
    assert log.folder_dirty
    dirs.checkpoint_recovery_points()

    assert not log.folder_dirty


def test_a_folder_that_lost_its_topic_id_gets_it_again(data: Path, open_dirs: Open) -> None:
    dirs = open_dirs(data)
    create(dirs, A0)
    dirs.abandon()
    (data / "a-0" / "partition.metadata").write_bytes(b"")
    create(open_dirs(data, load=False), A0)

    assert partition_metadata.load(REAL_DISK, str(data / "a-0")) == TOPIC_ID
