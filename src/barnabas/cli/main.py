"""The entry point of `barnabas TOOL ...` and of Kafka's command names: picks one tool and imports only that.

In: the arguments, and the name of the command. Out: the exit status. An error that the user can cause or fix
becomes one line on standard error. An interrupt or a closed pipe ends the tool without a message.
"""

import inspect
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import PurePath
from typing import Any

from barnabas.cli.old_names import REPLACEMENTS, RUN_CLASS, tool_named, tool_of_class
from barnabas.cli.tools import BY_KAFKA_NAME, BY_NAME, HIDDEN, TOOLS, Tool

INTERRUPTED = 130  # the status that a shell reports for a program ended by Ctrl-C


def main(arguments: Sequence[str] | None = None, program: str | None = None) -> int:
    """The entry point of `barnabas` and of every `kafka-*` command. A closed pipe (`| head`) ends it quietly,
    in help, versions and errors too."""
    try:
        status = run_command(arguments, program)
        sys.stdout.flush()
    except BrokenPipeError:
        from barnabas.cli.frame.output import discard_output

        discard_output()
        return 0
    return status


def run_command(arguments: Sequence[str] | None, program: str | None) -> int:
    """Find the tool that is meant and run it."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    called = PurePath(sys.argv[0] if program is None else program).name.removesuffix(".sh")
    tool = BY_KAFKA_NAME.get(called)
    if tool is not None:
        return run_tool(tool, arguments, called, strict=True)
    if called == RUN_CLASS:
        return run_class(arguments)
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(overview())
        return 0 if arguments else 1
    if arguments[0] == "--version":
        from barnabas.cli.frame.parsing import version_text

        print(version_text())
        return 0
    name = arguments[0].removesuffix(".sh")
    if name in (RUN_CLASS, "run-class"):
        return run_class(arguments[1:])
    tool = tool_named(name)
    if tool is None:
        replacement = REPLACEMENTS.get(name) or REPLACEMENTS.get(f"kafka-{name}")
        if replacement:
            text = f"{name} no longer exists: {replacement}"
        else:
            text = f"there is no tool {name!r}{suggestion(name)}"
        print(f"barnabas: {text}", file=sys.stderr)
        return 1
    return run_tool(tool, arguments[1:], f"barnabas {tool.name}", strict=name in BY_KAFKA_NAME)


def run_class(arguments: list[str]) -> int:
    """Run the tool that replaces a Java class: `kafka-run-class.sh kafka.tools.GetOffsetShell ...`."""
    tool = tool_of_class(arguments[0]) if arguments else None
    if tool is None or tool.kafka_name is None:
        given = arguments[0] if arguments else "no class"
        print(f"{RUN_CLASS}: {given} is no tool here: `barnabas --help` lists them", file=sys.stderr)
        return 1
    return run_tool(tool, arguments[1:], tool.kafka_name, strict=True)


def run_tool(tool: Tool, arguments: list[str], program: str, *, strict: bool) -> int:
    """Read the options and run the tool. Errors become one line on standard error and an exit status."""
    from barnabas.cli.frame.output import Output
    from barnabas.cli.frame.parsing import ToolError, ToolParser, UsageError, version_text

    module = import_module(f"barnabas.cli.{tool.module}")
    prefix: str = getattr(module, "PREFIX", "")
    out = Output()
    summary = tool.summary[0].upper() + tool.summary[1:] + "."
    examples = "\n".join(f"  {program} {line}" for line in module.EXAMPLES)
    parser = ToolParser(prog=program, description=summary, epilog=f"examples:\n{examples}")
    parser.strict = strict
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    try:
        module.add_arguments(parser)
        if not arguments and getattr(module, "NEEDS_ARGUMENTS", True):
            out.note(parser.format_help().rstrip())
            return 1
        if arguments[:1] == ["--version"]:
            out.line(version_text())
            return 0
        options, notes = parser.read(arguments)
        for note in notes:
            out.note(note)
        if options.version:
            out.line(version_text())
            return 0
        status = run_to_end(module.run(options, out))
        out.flush()
        return status or 0
    except UsageError as error:
        out.note(f"{error} (see `{program} --help`)")
        return 1
    except ToolError as error:
        out.note(f"{prefix}{error}")
        return 1
    except SystemExit as end:  # argparse after --help
        out.flush()
        return end.code if isinstance(end.code, int) else 1
    except BrokenPipeError:
        raise  # no error of the tool: `main` knows what to do
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        line = one_line(error)
        if line is None:
            raise
        out.note(f"{prefix}{line}")
        return 1


def run_to_end(result: Any) -> int | None:
    """Run the coroutine of an async tool; the result of a plain tool is its status already."""
    if inspect.iscoroutine(result):
        import asyncio

        return asyncio.run(result)  # type: ignore[no-any-return]
    return result  # type: ignore[no-any-return]


def one_line(error: Exception) -> str | None:
    """The text for an error that is not a bug of ours; None for a bug."""
    from barnabas.client.core.errors import ClientError
    from barnabas.protocol import KafkaError, ProtocolError

    if isinstance(error, KafkaError):
        return error.message
    if isinstance(error, ClientError):
        return str(error)
    if isinstance(error, ProtocolError):
        return f"the broker's response cannot be decoded: {error}"
    if isinstance(error, TimeoutError):
        return str(error) or "no answer in time"
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {(error.strerror or str(error)).lower()}"
    return None


def overview() -> str:
    """`barnabas --help`."""
    width = max(len(tool.name) for tool in TOOLS)
    lines = [
        "usage: barnabas TOOL [options]",
        "",
        "A broker that every Kafka client can use, and its tools.",
        "",
        *(f"  {tool.name:<{width}}  {tool.summary}" for tool in TOOLS if tool.name not in HIDDEN),
        "",
        "`barnabas TOOL --help` shows a tool's options. Kafka's names (kafka-topics, ...) are installed too",
        "and take Kafka's options.",
        "",
        "examples:",
        "  barnabas start",
        "  barnabas topics --create --topic greetings --partitions 3",
        "  echo hello | barnabas produce --topic greetings",
        "  barnabas consume --topic greetings --from-beginning",
    ]
    return "\n".join(lines)


def suggestion(name: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, [*BY_NAME, *BY_KAFKA_NAME], n=1)
    return f": did you mean {close[0]!r}?" if close else ": `barnabas --help` lists them"


if __name__ == "__main__":
    sys.exit(main())
