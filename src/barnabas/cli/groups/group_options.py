"""Options that the tools of consumer, share and streams groups have in common, and their checks.

In: a parser, or parsed options. Out: arguments, UsageError in Kafka's words, the run of a command. Does not
know: what the tools do with groups.
"""

import argparse
from collections.abc import Awaitable, Callable, Iterable, Mapping

from barnabas.cli.frame.connecting import add_bootstrap, add_command_config, cluster_from
from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError, ToolParser, UsageError
from barnabas.cli.groups.consumer_groups_problems import Problems, reason_of
from barnabas.cli.groups.consumer_groups_reset import whole_number
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.groups import GroupListing
from barnabas.client.core.errors import ClientError
from barnabas.protocol import KafkaError

TIMEOUT_MS = 30_000
ALL = "all"  # the value of an option that is given without one
FORM_OPTIONS: Mapping[str, tuple[str | None, str]] = {  # of new offsets: the value's name, and what it means
    "to-earliest": (None, "the first record"),
    "to-latest": (None, "the end of the log"),
    "to-current": (None, "the committed offset, else the end"),
    "to-offset": ("N", "an offset, or the nearer end of the log"),
    "shift-by": ("N", "forward by this many offsets, or back"),
    "to-datetime": ("YYYY-MM-DDThh:mm:ss.sss", "first record at this time"),
    "by-duration": ("PnDTnHnMnS", "first record of this recent time"),
    "from-file": ("CSV", "offsets in a file that --export wrote"),
}


# -- arguments ---------------------------------------------------------------------------------------------


def add_actions(parser: ToolParser, texts: Mapping[str, str]) -> argparse._ArgumentGroup:
    """Add the options of the connection, and actions with their help."""
    parser.set_defaults(as_kafka=parser.strict)
    add_bootstrap(parser)
    add_command_config(parser)
    actions = parser.add_argument_group("actions (exactly one)")
    for name, text in texts.items():
        actions.add_argument(f"--{name}", action="store_true", help=text)
    return actions


def add_selection(parser: ToolParser, kind: str, topic: str, a_topic: str, all_topics: str) -> None:
    """Add options that choose groups and topics; `topic` is the name of the option for topics."""
    parser.add_argument("--group", action="append", metavar="ID", help="a group; may be repeated")
    parser.add_argument("--all-groups", action="store_true", help=f"every {kind}")
    text = f"{a_topic}, or some of its partitions; may be repeated"
    parser.add_argument(f"--{topic}", action="append", metavar="TOPIC[:0,1]", help=text)
    parser.add_argument(f"--all-{topic}s", action="store_true", help=all_topics)


def add_views(parser: ToolParser) -> None:
    """Add the options that say what --describe shows."""
    parser.add_argument("--members", action="store_true", help="describe members")
    parser.add_argument("--offsets", action="store_true", help="describe offsets (the default)")
    parser.add_argument(
        "--state",
        nargs="?",
        const=ALL,
        metavar="STATE,...",
        help="describe the state; with --list: show states, and only groups in the given states",
    )


def add_execution(parser: ToolParser, done: str, does: str) -> None:
    parser.add_argument("--dry-run", action="store_true", help=f"only show what would be {done}")
    parser.add_argument("--execute", action="store_true", help=does)


def add_export(parser: ToolParser) -> None:
    parser.add_argument("--export", action="store_true", help="print the new offsets as CSV")


def add_forms(parser: ToolParser, names: Iterable[str] = FORM_OPTIONS) -> None:
    """Add the forms in which new offsets can be given, and the timeout."""
    forms = parser.add_argument_group("new offsets of --reset-offsets (exactly one)")
    for name in names:
        metavar, text = FORM_OPTIONS[name]
        if metavar is None:
            forms.add_argument(f"--{name}", action="store_true", help=text)
        else:
            forms.add_argument(f"--{name}", metavar=metavar, help=text)
    parser.add_argument(
        "--timeout", default=str(TIMEOUT_MS), metavar="MS", help=f"how long to wait ({TIMEOUT_MS})"
    )


# -- checks, in Kafka's words ------------------------------------------------------------------------------


def given(options: argparse.Namespace, name: str) -> bool:
    return getattr(options, name.replace("-", "_")) not in (None, False, [])


def refuse(options: argparse.Namespace, used: str, others: Iterable[str]) -> None:
    if given(options, used):
        for other in others:
            if given(options, other):
                raise UsageError(f'Option "[{used}]" can\'t be used with option "[{other}]"')


def needs_groups(options: argparse.Namespace, action: str) -> None:
    if not options.group and not options.all_groups:
        raise UsageError(f"Option [{action}] takes one of these options: [all-groups], [group]")


def check_views(options: argparse.Namespace, more: Iterable[str] = ()) -> None:
    """Refuse options of --describe and --list without these; `more` are refused whatever the action is."""
    views = ("members", "offsets", "verbose")
    unavailable = [] if options.describe else [name for name in views if given(options, name)]
    if options.state is not None and not (options.describe or options.list):
        unavailable.append("state")
    unavailable += more
    if unavailable:
        names = ", ".join(sorted(unavailable))
        raise UsageError(f"Option(s) [{names}] are unavailable given other options on the command line")


def check_describe(options: argparse.Namespace) -> None:
    needs_groups(options, "describe")
    if sum(given(options, name) for name in ("members", "offsets", "state")) > 1:
        raise UsageError(
            "Option [describe] takes at most one of these options: [members], [offsets], [state]"
        )
    if options.state not in (None, ALL):
        raise UsageError("Option [describe] does not take a value for [state]")


def check_one_execution(options: argparse.Namespace) -> None:
    if options.dry_run and options.execute:
        raise UsageError("Option [reset-offsets] only accepts one of [execute] and [dry-run]")


def check_execution(options: argparse.Namespace) -> None:
    check_one_execution(options)
    if not options.dry_run and not options.execute:
        raise UsageError("Option [reset-offsets] takes the option: [execute] or [dry-run]")


def check_one_form(options: argparse.Namespace, forms: Iterable[str]) -> None:
    names = list(forms)
    for form in names:
        refuse(options, form, [other for other in names if other != form])


def check_one_action(options: argparse.Namespace, actions: Iterable[str], text: str) -> None:
    if sum(given(options, action) for action in actions) != 1:
        raise UsageError(text)


# -- commands ----------------------------------------------------------------------------------------------


async def run_command(
    options: argparse.Namespace,
    problems: Problems,
    kind: str,
    act: Callable[[Admin], Awaitable[None]],
    *,
    passes: type[Exception] = UsageError,
) -> str | None:
    """Run a command with an admin client. Out: why it failed, if Kafka's tool would only print that. Errors
    of usage and those of `passes` are raised; under our name of the tool all others too."""
    try:
        cluster = cluster_from(options)
        cluster.api_timeout_ms = whole_number(options.timeout, "timeout")
        async with cluster:
            await act(Admin(cluster))
    except (UsageError, passes):
        raise
    except (ToolError, ClientError, KafkaError) as error:
        reason = reason_of(error) if isinstance(error, KafkaError) else str(error)
        if not options.as_kafka:
            raise ToolError(reason) from error
        problems.report(f"Executing {kind} command failed due to {reason}")
        return reason
    return None


def chosen(text: str | None, known: tuple[str, ...], what: str, listed: str) -> list[str]:
    """The names of a comma-separated list, in the spelling of brokers."""
    if text in (None, ALL, ""):
        return []
    assert text is not None
    names = {each.lower().replace("_", ""): each for each in known}
    parts = [part.strip().lower().replace("_", "") for part in text.split(",")]
    if any(part not in names for part in parts):
        raise UsageError(f"Invalid {listed} list '{text}'. Valid {what}s are: {', '.join(known)}")
    return list(dict.fromkeys(names[part] for part in parts))


async def listings_of(admin: Admin, kind: str, states: Iterable[str] = ()) -> list[GroupListing]:
    """Groups of one type, by name."""
    found = await admin.list_groups(states=list(states), types=[kind])
    return sorted(found, key=lambda listing: listing.group_id)


async def list_groups_of(
    options: argparse.Namespace, admin: Admin, out: Output, kind: str, states: tuple[str, ...]
) -> None:
    """Print the groups of one type: their names, or with --state a table."""
    if options.state is None:
        for listing in await listings_of(admin, kind):
            out.line(listing.group_id)
        return
    found = await listings_of(admin, kind, chosen(options.state, states, "state", "state"))
    width = max([15, *(len(listing.group_id) for listing in found)])
    for name, state in [("GROUP", "STATE"), *((each.group_id, each.state) for each in found)]:
        out.line(f"{name:<{width}} {state}")


def undeletable(groups: Iterable[str], known: Mapping[str, str], kind: str, unknown: str) -> dict[str, str]:
    """Why groups cannot be deleted, by name. `known` has their states; `unknown` ends the sentence about a
    group that is not among them."""
    failed: dict[str, str] = {}
    for group in groups:
        if group not in known:
            failed[group] = f"Group '{group}' {unknown}"
        elif known[group] == "Dead":
            failed[group] = f"{kind} '{group}' group state is DEAD."
        elif known[group] != "Empty":
            failed[group] = f"{kind} '{group}' is not EMPTY."
    return failed
