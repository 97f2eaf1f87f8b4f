"""Command lines as Kafka's tools read them: long option names, errors of one line, old spellings.

In: arguments. Out: an argparse Namespace, or a UsageError with the text of Kafka's tools if they have one.
Apart from --help, nothing here prints or ends the process.
"""

import argparse
import itertools
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NoReturn

from barnabas import __version__
from barnabas.client.core.address import parse_bootstrap

KAFKA_VERSION = "4.3.1"
BAD_BOOTSTRAP = "Please provide valid host:port like host1:9091,host2:9092"


class ToolError(Exception):
    """A tool cannot continue; the text is one line for the user."""


class UsageError(ToolError):
    """The command line is wrong."""


class RemovedOption(str):
    """The error text for an old option that nothing replaces."""


ZOOKEEPER_REMOVED = RemovedOption(
    "--zookeeper was removed in Kafka 3: tools connect to a broker. Use: {command}"
)
COMMON_OPTIONS = {"--bootstrap-server", "--bootstrap-controller", "--command-config"}
OLD_SPELLINGS: Mapping[str, str] = {"--broker-list": "--bootstrap-server", "--zookeeper": ZOOKEEPER_REMOVED}


class ToolParser(argparse.ArgumentParser):
    """Raises UsageError instead of ending the process."""

    def __init__(self, **settings: Any) -> None:
        settings.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(exit_on_error=False, **settings)
        self.old_spellings: dict[str, str] = dict(OLD_SPELLINGS)
        self.signed: set[str] = set()  # options whose value may start with a minus without being a number
        self.strict = False  # whether options that Kafka requires are required, without our defaults

    def read(self, arguments: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
        """The options, and a note for each old spelling."""
        modern, notes = replace_old_spellings(arguments, self.old_spellings, self.prog)
        modern = join_signed_values(modern, self.signed)
        if self._subparsers is not None:
            modern = move_to_front(modern, COMMON_OPTIONS & set(self._option_string_actions))
        try:
            options, unknown = self.parse_known_args(modern)
        except argparse.ArgumentError as error:
            raise UsageError(explain(error, modern)) from None
        for each in unknown:
            if each.startswith("-"):
                name = each.partition("=")[0].lstrip("-")
                raise UsageError(f"{name} is not a recognized option")
        if unknown:
            raise UsageError(f"{unknown[0]!r} is not expected here: options start with --")
        options.command_line = " ".join(arguments)
        return options, notes

    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


def replace_old_spellings(
    arguments: Sequence[str], spellings: Mapping[str, str], program: str = ""
) -> tuple[list[str], list[str]]:
    """The arguments with new option names instead of old ones, and a note for each change."""
    modern, notes = [], []
    for argument in arguments:
        name, equals, value = argument.partition("=")
        newer = spellings.get(name)
        if isinstance(newer, RemovedOption):
            raise UsageError(newer.format(command=f"{program} {with_bootstrap_server(arguments)}"))
        if newer is not None:
            notes.append(f"{name} is an old spelling: use {newer}")
            argument = f"{newer}{equals}{value}"
        modern.append(argument)
    return modern, notes


def with_bootstrap_server(arguments: Sequence[str]) -> str:
    """The same command with --bootstrap-server instead of --zookeeper."""
    kept = [*arguments]
    for place, argument in enumerate(arguments):
        if argument.partition("=")[0] == "--zookeeper":
            behind = place + 1 if "=" in argument else place + 2
            kept = [*arguments[:place], "--bootstrap-server", "localhost:9092", *arguments[behind:]]
            break
    return shlex.join(kept)


def move_to_front(arguments: Sequence[str], names: Collection[str]) -> list[str]:
    """Move options that argparse expects before a subcommand to the front, wherever the user typed them."""
    first, rest = [], []
    left = iter(arguments)
    for argument in left:
        name, equals, _ = argument.partition("=")
        if name not in names:
            rest.append(argument)
        else:
            first += [argument] if equals else [argument, *itertools.islice(left, 1)]
    return first + rest


def join_signed_values(arguments: Sequence[str], signed: Collection[str]) -> list[str]:
    """Turn `--by-duration -PT1H` into `--by-duration=-PT1H`: argparse would read the value as an option."""
    joined: list[str] = []
    for argument in arguments:
        if joined and joined[-1] in signed:
            joined[-1] += f"={argument}"
        else:
            joined.append(argument)
    return joined


def explain(error: argparse.ArgumentError, arguments: Sequence[str]) -> str:
    """Kafka's message for an error that argparse found."""
    names = (error.argument_name or "").split("/")
    name = names[0].split(" ")[0]
    bare = name.lstrip("-") or "command"
    message = str(error.message)
    if message.startswith("expected"):
        return f"Option {bare} requires an argument"
    if message.startswith("invalid choice"):
        given, _, choices = message.removeprefix("invalid choice: ").partition(" (choose from ")
        return f"{given} is not one of {choices.removesuffix(')')}"
    for position, argument in enumerate(arguments):
        given, equals, value = argument.partition("=")
        if given in names and "invalid" in message:
            if not equals and position + 1 < len(arguments):
                value = arguments[position + 1]
            return f"Cannot parse argument '{value}' of option {bare}"
    return f"{name}: {message}" if name else message


def required(options: argparse.Namespace, *names: str) -> None:
    for name in names:
        if getattr(options, name.replace("-", "_")) is None:
            raise UsageError(f'Missing required argument "[{name}]"')


def exactly_one(options: argparse.Namespace, *names: str) -> None:
    given = [name for name in names if getattr(options, name.replace("-", "_")) is not None]
    if len(given) != 1:
        every = ", ".join(f"[{name}]" for name in names)
        raise UsageError(f"Exactly one of the following arguments is required: {every}")


def key_values(pairs: Iterable[str] | None) -> dict[str, str]:
    """Parse `name=value` options; a missing value is an empty text, as in Kafka's tools."""
    found = {}
    for pair in pairs or ():
        name, _, value = pair.partition("=")
        found[name] = value
    return found


def check_bootstrap(text: str) -> None:
    try:
        parse_bootstrap(text)
    except ValueError as error:
        raise UsageError(f"{BAD_BOOTSTRAP} ({error})") from None


def version_text() -> str:
    return f"{KAFKA_VERSION} (barnabas {__version__})"
