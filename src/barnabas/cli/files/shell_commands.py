"""The commands of the metadata shell: ls, cd, pwd, cat, find, tree, man, help, history, exit.

In: words, and a Shell with the tree and the working folder. Out: lines; an error of a command is a line, too,
with Kafka's text. Does not know: where lines come from and go to.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from barnabas.cli.files.metadata_tree import File, Folder, Node
from barnabas.cli.files.shell_paths import find as find_nodes

COLUMN_GAP = 2
COLUMN_WIDTH_MIN = 4
HISTORY_MAX = 10_000


@dataclass(slots=True)
class Shell:
    tree: Folder
    working: str = "/"
    history: list[str] = field(default_factory=list)
    screen_width: int | None = None  # None: print one name on each line, as for a pipe
    ended: bool = False

    def remember(self, line: str) -> None:
        self.history.append(line)
        del self.history[:-HISTORY_MAX]


@dataclass(frozen=True, slots=True)
class Command:
    run: Callable[[Shell, list[str]], Iterator[str]]
    summary: str
    argument: str
    counts: tuple[int, int | None]  # smallest and largest number of arguments
    interactive_only: bool = False


def run(shell: Shell, words: list[str], *, interactive: bool) -> Iterator[str]:
    """Run a command; yield the lines that it prints."""
    if not words:
        return
    known = {name: each for name, each in COMMANDS.items() if interactive or not each.interactive_only}
    command = known.get(words[0])
    if command is None:
        choices = ", ".join(f"'{name}'" for name in known)
        yield f"invalid choice: '{words[0]}' (choose from {choices})"
        return
    least, most = command.counts
    if len(words) - 1 < least:
        yield "too few arguments"
    elif most is not None and len(words) - 1 > most:
        yield f"unrecognized arguments: '{words[most + 1]}'"
    else:
        yield from command.run(shell, words[1:])


def ls(shell: Shell, targets: list[str]) -> Iterator[str]:
    names: list[str] = []
    folders: list[tuple[str, list[str]]] = []
    for target in targets or ["."]:
        found = find_nodes(shell.tree, shell.working, target)
        if not found:
            yield f"ls: {target}: no such file or directory."
        for each in found:
            if isinstance(each.node, Folder):
                folders.append((each.name, each.node.names()))
            else:
                names.append(each.name)
    yield from columns(names, shell.screen_width)
    titled = bool(names) or len(folders) > 1
    for place, (name, children) in enumerate(folders):
        if titled and children:
            if names or place:
                yield ""
            yield f"{name}:"
        yield from columns(children, shell.screen_width)


def columns(names: list[str], width: int | None) -> Iterator[str]:
    """Arrange names in as many columns as fit on the screen."""
    if not names:
        return
    count, rows, widths = 1, len(names), [0]
    most = 1 if width is None else max(1, width // COLUMN_WIDTH_MIN)
    for tried in range(most, 1, -1):
        deep = -(-len(names) // tried)
        parts = [names[start : start + deep] for start in range(0, len(names), deep)]
        wide = [max(map(len, part)) + COLUMN_GAP for part in parts]
        if len(parts) == tried and width is not None and sum(wide) <= width:
            count, rows, widths = tried, deep, wide
            break
    for row in range(rows):
        cells = [names[place] for place in range(row, len(names), rows)][:count]
        padded = [f"{cell:<{widths[column]}}" for column, cell in enumerate(cells[:-1])]
        yield "".join([*padded, cells[-1]])


def cd(shell: Shell, targets: list[str]) -> Iterator[str]:
    target = targets[0] if targets else "/"
    found = find_nodes(shell.tree, shell.working, target)
    if not found:
        yield f"cd: {target}: no such directory."
    for each in found:
        if isinstance(each.node, Folder):
            shell.working = each.absolute
        else:
            yield f"cd: {target}: not a directory."


def pwd(shell: Shell, _: list[str]) -> Iterator[str]:
    yield shell.working


def cat(shell: Shell, targets: list[str]) -> Iterator[str]:
    for target in targets:
        found = find_nodes(shell.tree, shell.working, target)
        if not found:
            yield f"cat: {target}: No such file or directory."
        for each in found:
            yield each.node.text if isinstance(each.node, File) else f"cat: {target}: Is a directory"


def find(shell: Shell, paths: list[str]) -> Iterator[str]:
    for path in paths or ["."]:
        found = find_nodes(shell.tree, shell.working, path)
        if not found:
            yield f"find: {path}: no such file or directory."
        for each in found:
            yield from below(path, each.node)


def below(path: str, node: Node) -> Iterator[str]:
    yield path
    if isinstance(node, Folder):
        for name in node.names():
            child = node.child(name)
            assert child is not None
            yield from below(f"{path}{name}" if path == "/" else f"{path}/{name}", child)


def tree(shell: Shell, targets: list[str]) -> Iterator[str]:
    for target in targets:
        found = find_nodes(shell.tree, shell.working, target)
        if not found:
            yield f"tree: {target}: No such file or directory."
        for each in found:
            yield from branches(each.node, 0)


def branches(node: Node, depth: int) -> Iterator[str]:
    indent = "  " * depth
    if isinstance(node, File):
        yield f"{indent}{node.text}"
        return
    for name in node.names():
        yield f"{indent}{name}:"
        child = node.child(name)
        assert child is not None
        yield from branches(child, depth + 1)


def man(shell: Shell, words: list[str]) -> Iterator[str]:
    command = COMMANDS.get(words[0])
    if command is None:
        yield f"man: unknown command {words[0]}. Type help to get a list of commands."
        return
    yield f"{words[0]}: {command.summary}"
    yield ""
    yield f"usage: {words[0]} {command.argument}".rstrip()


def help_(shell: Shell, _: list[str]) -> Iterator[str]:
    yield "Welcome to the metadata shell: a snapshot or a log of __cluster_metadata as a file system."
    yield ""
    yield from (f"  {name:<9}{command.summary}" for name, command in COMMANDS.items())


def history(shell: Shell, words: list[str]) -> Iterator[str]:
    if words and not words[0].isdigit():
        yield f"argument numEntriesToShow: could not convert '{words[0]}' to Integer"
        return
    first = max(0, len(shell.history) - int(words[0])) if words else 0
    yield from (f"{place: 5d}  {line}" for place, line in enumerate(shell.history[first:], first))


def exit_(shell: Shell, _: list[str]) -> Iterator[str]:
    shell.ended = True
    yield from ()


COMMANDS = {
    "cat": Command(cat, "Show the contents of metadata files.", "PATH...", (1, None)),
    "cd": Command(cd, "Set the current working directory.", "[PATH]", (0, 1), True),
    "exit": Command(exit_, "Exit the metadata shell.", "", (0, 0), True),
    "find": Command(find, "Search for nodes in the directory hierarchy.", "[PATH...]", (0, None)),
    "help": Command(help_, "Display this help message.", "", (0, 0), True),
    "history": Command(history, "Print command history.", "[COUNT]", (0, 1), True),
    "ls": Command(ls, "List metadata nodes.", "[PATH...]", (0, None)),
    "man": Command(man, "Show the help text for a specific command.", "COMMAND", (1, 1), True),
    "pwd": Command(pwd, "Print the current working directory.", "", (0, 0), True),
    "tree": Command(tree, "Show the contents of metadata nodes in a tree structure.", "PATH...", (1, None)),
}


def terminal_width() -> int | None:
    try:
        return os.get_terminal_size().columns
    except OSError:
        return None
