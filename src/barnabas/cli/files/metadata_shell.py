"""metadata-shell: browse a metadata snapshot, a log or a data folder as if it were a file system.

With a command the tool runs it and ends. Without one it reads commands until `exit`, with history and
completion of paths on a terminal.
"""

import argparse
import shlex
import sys
from pathlib import Path

from barnabas.cli.files import metadata_files, metadata_tree, shell_commands, shell_paths
from barnabas.cli.files.shell_commands import Shell
from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError, ToolParser, UsageError

EXAMPLES = (
    "--snapshot data/__cluster_metadata-0/00000000000000001024-0000000001.checkpoint",
    "--directory data ls /image/topics/byName",
    "--directory data cat '/image/topics/byName/orders/*'",
)
PROMPT = ">> "


def add_arguments(parser: ToolParser) -> None:
    where = parser.add_argument_group("what to browse (exactly one)")
    where.add_argument("-s", "--snapshot", metavar="FILE", help="a snapshot, or a segment of the log")
    where.add_argument(
        "-d", "--directory", metavar="DIR", help="a data folder: its newest snapshot and the log after it"
    )
    parser.add_argument(
        "words", nargs="*", metavar="COMMAND", help="ls, cat, find or tree, with paths (default: a shell)"
    )


def run(options: argparse.Namespace, out: Output) -> None:
    if (options.snapshot is None) == (options.directory is None):
        raise UsageError("--snapshot or --directory is required")
    if options.directory is not None and not Path(options.directory).is_dir():
        raise ToolError(f"{options.directory}: no such directory")
    if not options.words and sys.stdin.isatty():
        out.note("Loading...")
    image = metadata_files.load(Path(options.snapshot or options.directory))
    shell = Shell(metadata_tree.root(image))
    if options.words:
        for line in shell_commands.run(shell, options.words, interactive=False):
            out.line(line)
        return
    interact(shell, out)


def interact(shell: Shell, out: Output) -> None:
    on_terminal = sys.stdin.isatty()
    if on_terminal:
        offer_completion(shell)
        for line in shell_commands.run(shell, ["help"], interactive=True):
            out.line(line)
    while not shell.ended:
        if on_terminal:
            shell.screen_width = shell_commands.terminal_width()
        try:
            line = input(PROMPT if on_terminal else "")
        except EOFError:
            return
        if line.strip():
            shell.remember(line)
        for text in run_line(shell, line):
            out.line(text)
        out.flush()


def run_line(shell: Shell, line: str) -> list[str]:
    try:
        # Backslashes stay as they are, because globs use them; quotes group words.
        lexer = shlex.shlex(line, posix=True, punctuation_chars=False)
        lexer.whitespace_split, lexer.escape, lexer.commenters = True, "", ""
        words = list(lexer)
    except ValueError as error:
        return [f"{str(error).lower()}: {line.strip()}"]
    return list(shell_commands.run(shell, words, interactive=True))


def offer_completion(shell: Shell) -> None:
    try:
        import readline
    except ImportError:
        return

    def complete(text: str, state: int) -> str | None:
        begun = readline.get_line_buffer()[: readline.get_begidx()].split()
        if not begun:
            found = [f"{name} " for name in shell_commands.COMMANDS if name.startswith(text)]
        else:
            found = shell_paths.completions(shell.tree, shell.working, text)
        return found[state] if state < len(found) else None

    readline.set_completer_delims(" \t")
    readline.set_completer(complete)
    readline.parse_and_bind("tab: complete")
