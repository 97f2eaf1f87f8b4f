"""Options as Kafka's tools read them: long names, clear one-line errors, old spellings understood.

In: arguments. Out: an argparse Namespace, or a UsageError whose text is that of Kafka's tools where they
have one. Nothing here ends the process or prints, help and version apart.
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
    """A tool cannot go on; the text is one line for a person."""


class UsageError(ToolError):
    """The command line is wrong."""


class GoneOption(str):
    """An old option that has no successor: the text to answer with."""


ZOOKEEPER_IS_GONE = GoneOption("--zookeeper is gone since Kafka 3: tools talk to a broker. Use: {command}")
OF_EVERY_COMMAND = {"--bootstrap-server", "--bootstrap-controller", "--command-config"}
OLD_SPELLINGS: Mapping[str, str] = {"--broker-list": "--bootstrap-server", "--zookeeper": ZOOKEEPER_IS_GONE}


class ToolParser(argparse.ArgumentParser):
    """Raises UsageError instead of ending the process."""

    def __init__(self, **settings: Any) -> None:
        settings.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(exit_on_error=False, **settings)
        self.old_spellings: dict[str, str] = dict(OLD_SPELLINGS)
        self.signed: set[str] = set()  # options whose value may start with a minus and is no number
        self.strict = False  # whether what Kafka requires has no default of ours

    def read(self, arguments: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
        """Options, and notes on old spellings to show."""
        modern, notes = modernise(arguments, self.old_spellings, self.prog)
        modern = with_signed_values(modern, self.signed)
        if self._subparsers is not None:
            modern = with_first(modern, OF_EVERY_COMMAND & set(self._option_string_actions))
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


def modernise(
    arguments: Sequence[str], spellings: Mapping[str, str], program: str = ""
) -> tuple[list[str], list[str]]:
    """Arguments with old option names replaced, and a note for each that was."""
    modern, notes = [], []
    for argument in arguments:
        name, equals, value = argument.partition("=")
        newer = spellings.get(name)
        if isinstance(newer, GoneOption):
            raise UsageError(newer.format(command=f"{program} {without_zookeeper(arguments)}"))
        if newer is not None:
            notes.append(f"{name} is an old spelling: use {newer}")
            argument = f"{newer}{equals}{value}"
        modern.append(argument)
    return modern, notes


def without_zookeeper(arguments: Sequence[str]) -> str:
    """The same command, asked of a broker."""
    kept = [*arguments]
    for place, argument in enumerate(arguments):
        if argument.partition("=")[0] == "--zookeeper":
            behind = place + 1 if "=" in argument else place + 2
            kept = [*arguments[:place], "--bootstrap-server", "localhost:9092", *arguments[behind:]]
            break
    return shlex.join(kept)


def with_first(arguments: Sequence[str], names: Collection[str]) -> list[str]:
    """Options that belong in front of a command, wherever they were typed."""
    first, rest = [], []
    left = iter(arguments)
    for argument in left:
        name, equals, _ = argument.partition("=")
        if name not in names:
            rest.append(argument)
        else:
            first += [argument] if equals else [argument, *itertools.islice(left, 1)]
    return first + rest


def with_signed_values(arguments: Sequence[str], signed: Collection[str]) -> list[str]:
    """`--by-duration -PT1H` as `--by-duration=-PT1H`: argparse would take the value for an option."""
    joined: list[str] = []
    for argument in arguments:
        if joined and joined[-1] in signed:
            joined[-1] += f"={argument}"
        else:
            joined.append(argument)
    return joined


def explain(error: argparse.ArgumentError, arguments: Sequence[str]) -> str:
    """Kafka's words for what argparse found."""
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
    """`name=value` options; a missing value is empty, as Kafka has it."""
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
