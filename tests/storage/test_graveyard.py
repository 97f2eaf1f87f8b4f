"""What was deleted is removed when its time has come, in that order, and not before."""

from pathlib import Path

import pytest

from barnabas.runtime.disk import Disk
from barnabas.storage.files.graveyard import Graveyard


@pytest.fixture
def graveyard() -> Graveyard:
    return Graveyard(Disk())


def made(folder: Path, *names: str) -> list[str]:
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).write_bytes(b"x")
    return [str(folder / name) for name in names]


def test_files_go_when_they_are_due_whatever_the_order_they_came_in(
    graveyard: Graveyard, tmp_path: Path
) -> None:
    late, early = made(tmp_path, "late", "early")
    graveyard.add_files([late], 200)
    graveyard.add_files([early], 100)

    assert graveyard.next_due_ms() == 100
    assert graveyard.remove_due(99) == 100
    assert graveyard.remove_due(100) == 200
    assert [path.name for path in tmp_path.iterdir()] == ["late"]
    assert graveyard.remove_due(1000) is None
    assert len(graveyard) == 0


def test_a_folder_is_removed_with_its_files(graveyard: Graveyard, tmp_path: Path) -> None:
    made(tmp_path / "gone", "a", "b")
    graveyard.add_folder(str(tmp_path / "gone"), 5)
    graveyard.remove_due(5)

    assert not (tmp_path / "gone").exists()


def test_missing_paths_are_ignored(graveyard: Graveyard, tmp_path: Path) -> None:
    graveyard.add_files([str(tmp_path / "nothing")], 1)
    graveyard.add_folder(str(tmp_path / "nobody"), 1)

    assert graveyard.remove_due(1) is None


def test_a_path_that_cannot_be_removed_does_not_block_the_others(
    graveyard: Graveyard, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    [last] = made(tmp_path, "last")
    (tmp_path / "folder" / "in it").mkdir(parents=True)
    graveyard.add_files([str(tmp_path / "folder")], 1)
    graveyard.add_folder(str(tmp_path / "folder"), 2)
    graveyard.add_files([last], 3)

    assert graveyard.remove_due(3) is None
    assert not Path(last).exists()
    assert caplog.text.count("Could not remove") == 2


def test_a_failed_disk_is_left_alone(graveyard: Graveyard, tmp_path: Path) -> None:
    [kept], [gone] = made(tmp_path / "one", "f"), made(tmp_path / "one-more", "f")
    graveyard.add_files([kept, gone], 1)
    graveyard.forget_below(str(tmp_path / "one"))
    graveyard.remove_due(1)

    assert Path(kept).exists() and not Path(gone).exists()
