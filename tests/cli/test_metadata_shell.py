"""The metadata shell: Kafka's tree of names and texts, paths, globs, and commands."""

import shutil
from pathlib import Path

import pytest

from barnabas.cli.files.metadata_tree import Folder, files
from barnabas.cli.files.shell_commands import Shell, columns, run
from barnabas.cli.files.shell_paths import completions, expression, find
from barnabas.testing import Broker, apache

from .conftest import RunTool

SEGMENTS = Path(__file__).parent / "segments"
LOG = str(SEGMENTS / "__cluster_metadata-0" / "00000000000000000000.log")
SNAPSHOT = str(SEGMENTS / "snapshot" / "00000000000000000165-0000000001.checkpoint")
TREE = SEGMENTS / "metadata-tree.txt"

SMALL = Folder(
    {
        "local": lambda: files({"version": "1"}),
        "image": lambda: Folder({"topics": lambda: files({"a-0": "zero", "a-1": "one", "b*": "star"})}),
    }
)


def walk(run_tool: RunTool, *where: str) -> list[str]:
    """Every file of the tree with its text, read with `find` and `cat`."""
    paths = run_tool("kafka-metadata-shell", *where, "find", "/image").lines
    typed = "".join(f"cat '{path}'\n" for path in paths)
    texts = run_tool("kafka-metadata-shell", *where, input=typed).lines
    return [
        f"{path}/" if text.endswith("Is a directory") else f"{path} = {text}"
        for path, text in zip(paths, texts, strict=True)
    ]


def test_the_tree_is_that_of_kafkas_own_image(run_tool: RunTool) -> None:
    assert walk(run_tool, "--snapshot", LOG) == TREE.read_text().splitlines()


@pytest.mark.java
def test_the_tree_is_still_that_of_kafkas_own_image(java: None) -> None:
    done = apache.java_program(Path(__file__).parent / "MetadataTree.java", LOG)
    assert done.stdout.splitlines() == TREE.read_text().splitlines()


def test_a_snapshot_holds_the_same_as_the_log_before_it(run_tool: RunTool) -> None:
    def content(*where: str) -> list[str]:
        return [line for line in walk(run_tool, *where) if "provenance" not in line]

    assert content("-s", SNAPSHOT) == content("-s", LOG)


def test_a_folder_is_its_newest_snapshot_and_the_log_behind_it(tmp_path: Path, run_tool: RunTool) -> None:
    with Broker(tmp_path / "data", overrides={"metadata.log.max.snapshot.interval.ms": "0"}) as broker:
        broker.create_topic("before", 2)
        broker.create_topic("after")
        seen = run_tool("barnabas", "metadata-shell", "-d", str(broker.data), "ls", "/image/topics/byName")
        assert (seen.status, seen.lines) == (0, ["after", "before"])
    partitions = run_tool(
        "barnabas", "metadata-shell", "-d", str(tmp_path / "data"), "ls", "/image/topics/byName/before"
    )
    assert partitions.lines == ["0", "1", "id", "name"]


def test_a_shell_reads_commands_until_exit(run_tool: RunTool) -> None:
    typed = "ls\ncd image/producerIds\npwd\ncat nextProducerId\n\nhistory 2\nexit\nls\n"
    ran = run_tool("kafka-metadata-shell", "--snapshot", LOG, input=typed)
    assert ran.status == 0
    assert ran.lines[:3] == ["image", "local", "/image/producerIds"]
    assert ran.lines[4:] == ["    3  cat nextProducerId", "    4  history 2"]


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        (["ls"], ["image", "local"]),
        (["ls", "local", "image"], ["local:", "version", "", "image:", "topics"]),
        (["ls", "local/version", "image"], ["version", "", "image:", "topics"]),
        (["ls", "nope"], ["ls: nope: no such file or directory."]),
        (["cat", "image/topics/a-*"], ["zero", "one"]),
        (["cat", "image/topics/a-?", "local"], ["zero", "one", "cat: local: Is a directory"]),
        (["cat", "image/topics/{b,a}-1"], ["one"]),
        (["cat", r"image/topics/b\*"], ["star"]),
        (["cat", "nope"], ["cat: nope: No such file or directory."]),
        (["cat", "local/version/more"], ["cat: local/version/more: No such file or directory."]),
        (["cat"], ["too few arguments"]),
        (["find", "local"], ["local", "local/version"]),
        (["find", "/local"], ["/local", "/local/version"]),
        (["find", "image/topics"], ["image/topics", *(f"image/topics/{n}" for n in ("a-0", "a-1", "b*"))]),
        (["find", "nope"], ["find: nope: no such file or directory."]),
        (["tree", "local"], ["version:", "  1"]),
        (["tree", "nope"], ["tree: nope: No such file or directory."]),
        (["cd", "local"], []),
        (["cd", "nope"], ["cd: nope: no such directory."]),
        (["cd", "local/version"], ["cd: local/version: not a directory."]),
        (["cd", "a", "b"], ["unrecognized arguments: 'b'"]),
        (["man", "cd"], ["cd: Set the current working directory.", "", "usage: cd [PATH]"]),
        (["man", "nope"], ["man: unknown command nope. Type help to get a list of commands."]),
        (["history", "x"], ["argument numEntriesToShow: could not convert 'x' to Integer"]),
        ([], []),
    ],
)  # fmt: skip
def test_commands_print_what_kafkas_do(words: list[str], printed: list[str]) -> None:
    assert list(run(Shell(SMALL), words, interactive=True)) == printed


def test_a_command_that_needs_a_shell_is_refused_without_one(run_tool: RunTool) -> None:
    ran = run_tool("kafka-metadata-shell", "--snapshot", LOG, "cd", "/image")
    assert ran.lines == ["invalid choice: 'cd' (choose from 'cat', 'find', 'ls', 'tree')"]


def test_dots_lead_up_and_stop_at_the_root() -> None:
    assert [each.absolute for each in find(SMALL, "/image/topics", "../../../local/./version")] == [
        "/local/version"
    ]


@pytest.mark.parametrize(
    ("glob", "pattern"),
    [
        ("plain", None),
        (r"pl\*ain", None),
        ("{open", None),
        ("{a{b}}", None),
        ("a.*", r"a\..*"),
        ("{a,b}?", "(?:a|b)."),
    ],
)
def test_globs(glob: str, pattern: str | None) -> None:
    assert expression(glob) == pattern


def test_paths_are_completed() -> None:
    assert completions(SMALL, "/", "") == ["image/", "local/"]
    assert completions(SMALL, "/", "image/topics/a") == ["image/topics/a-0", "image/topics/a-1"]
    assert completions(SMALL, "/image", "/lo") == ["/local/"]
    assert completions(SMALL, "/", "nope/x") == []


def test_names_fill_the_screen_in_columns() -> None:
    names = ["one", "two", "three", "four", "five"]
    assert list(columns(names, 20)) == ["one  three  five", "two  four"]
    assert list(columns(names, None)) == names
    assert list(columns(names, 8)) == names


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("ls",), "--snapshot or --directory is required"),
        (("-s", LOG, "-d", "x", "ls"), "--snapshot or --directory is required"),
        (("-s", "/no/such.checkpoint", "ls"), "/no/such.checkpoint: no such file or directory"),
        (("-d", "/no/such", "ls"), "/no/such: no such directory"),
    ],
)
def test_an_error_is_one_line(arguments: tuple[str, ...], problem: str, run_tool: RunTool) -> None:
    ran = run_tool("kafka-metadata-shell", *arguments)
    assert ran.status == 1
    assert ran.errors.startswith(problem)


def test_an_empty_folder_is_reported(tmp_path: Path, run_tool: RunTool) -> None:
    ran = run_tool("kafka-metadata-shell", "-d", str(tmp_path), "ls")
    assert (ran.status, ran.errors) == (1, f"{tmp_path}: there is no metadata log and no snapshot in it\n")


def test_a_torn_end_of_the_log_is_left_out(tmp_path: Path, run_tool: RunTool) -> None:
    log = tmp_path / "00000000000000000000.log"
    shutil.copy(LOG, log)
    whole = log.read_bytes()
    log.write_bytes(whole[:-7])
    assert run_tool("kafka-metadata-shell", "-s", str(log), "ls", "/").lines == ["image", "local"]
