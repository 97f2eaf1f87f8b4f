"""share-groups: list, describe and delete share groups, set and delete their offsets, as kafka-share-groups.

In: options. Out: tables in Kafka's columns. The checks of options and their order are Kafka's. Under Kafka's
name a failed command prints its error to the output and ends with status 0, as Kafka's tool does. Under our
name it ends with status 1.
"""

import argparse

from barnabas.cli.frame.connecting import add_bootstrap, add_command_config, cluster_from
from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError, ToolParser, UsageError
from barnabas.cli.groups.consumer_groups import chosen, given, refuse
from barnabas.cli.groups.consumer_groups_problems import Problems, reason_of
from barnabas.cli.groups.consumer_groups_reset import whole_number
from barnabas.cli.groups.share_groups_describe import describe
from barnabas.cli.groups.share_groups_reset import FORMS, GroupInUse, reset
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.groups import GroupListing
from barnabas.client.core.errors import ClientError
from barnabas.protocol import ErrorCode, KafkaError

EXAMPLES = (
    "--list --state",
    "--describe --group workers",
    "--describe --all-groups --members --verbose",
    "--reset-offsets --group workers --topic orders --to-earliest --execute",
    "--delete-offsets --group workers --topic orders",
    "--delete --group workers",
)
ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets")
ONE_ACTION = f"Command must include exactly one action: {', '.join(f'--{each}' for each in ACTIONS)}."
TIMEOUT_MS = 30_000
ALL = "all"  # the value of an option that is given without one
STATES = ("Stable", "Dead", "Empty")
SHARE = "Share"
GROUP_ERRORS = (
    ErrorCode.INVALID_GROUP_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.NON_EMPTY_GROUP,
)
TOPIC_ERRORS = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def add_arguments(parser: ToolParser) -> None:
    parser.set_defaults(as_kafka=parser.strict)
    add_bootstrap(parser)
    add_command_config(parser)
    actions = parser.add_argument_group("actions (exactly one)")
    actions.add_argument("--list", action="store_true", help="list share groups")
    actions.add_argument("--describe", action="store_true", help="start offsets and lag, members, or state")
    actions.add_argument("--delete", action="store_true", help="delete groups that have no members")
    actions.add_argument("--reset-offsets", action="store_true", help="set offsets of an inactive group")
    actions.add_argument("--delete-offsets", action="store_true", help="let a group forget topics")
    parser.add_argument("--group", action="append", metavar="ID", help="a group; may be repeated")
    parser.add_argument("--all-groups", action="store_true", help="every share group")
    parser.add_argument(
        "--topic",
        action="append",
        metavar="TOPIC[:0,1]",
        help="a topic, or some of its partitions; may be repeated",
    )
    parser.add_argument("--all-topics", action="store_true", help="every topic that the group has read")
    parser.add_argument("--members", action="store_true", help="describe members")
    parser.add_argument("--offsets", action="store_true", help="describe offsets (the default)")
    parser.add_argument(
        "--state",
        nargs="?",
        const=ALL,
        metavar="STATE,...",
        help="describe the state; with --list: show states, and only groups in the given states",
    )
    parser.add_argument("--verbose", action="store_true", help="describe more: epochs")
    parser.add_argument("--dry-run", action="store_true", help="only show what would be set")
    parser.add_argument("--execute", action="store_true", help="set the offsets")
    forms = parser.add_argument_group("new offsets of --reset-offsets (exactly one)")
    forms.add_argument("--to-earliest", action="store_true", help="the first record")
    forms.add_argument("--to-latest", action="store_true", help="the end of the log")
    forms.add_argument("--to-datetime", metavar="YYYY-MM-DDThh:mm:ss.sss", help="first record at this time")
    parser.add_argument(
        "--timeout", default=str(TIMEOUT_MS), metavar="MS", help=f"how long to wait ({TIMEOUT_MS})"
    )


async def run(options: argparse.Namespace, out: Output) -> int:
    check_options(options)
    problems = Problems(out, as_kafka=options.as_kafka)
    try:
        cluster = cluster_from(options)
        cluster.api_timeout_ms = whole_number(options.timeout, "timeout")
        async with cluster:
            await act(options, Admin(cluster), out, problems)
    except (UsageError, GroupInUse):
        raise
    except (ToolError, ClientError, KafkaError) as error:
        reason = reason_of(error) if isinstance(error, KafkaError) else str(error)
        if not options.as_kafka:
            raise ToolError(reason) from error
        problems.report(f"Executing share group command failed due to {reason}")
    return problems.status


async def act(options: argparse.Namespace, admin: Admin, out: Output, problems: Problems) -> None:
    if options.list:
        await list_groups(options, admin, out)
        return
    groups = list(dict.fromkeys(options.group or ()))
    if options.describe:
        if options.all_groups:
            groups = [listing.group_id for listing in await share_groups(admin)]
        await describe(options, groups, admin, out, problems)
    elif options.delete:
        await delete(None if options.all_groups else groups, admin, out, problems)
    elif options.delete_offsets:
        await delete_offsets(groups[-1], options.topic, admin, out, problems)
    else:
        await reset(options, groups[-1], admin, out)


def check_options(options: argparse.Namespace) -> None:
    """Check which options may be combined, in Kafka's order."""
    unavailable = [name for name in ("members", "offsets", "verbose") if given(options, name)]
    unavailable = [] if options.describe else unavailable
    if options.state is not None and not (options.describe or options.list):
        unavailable.append("state")
    if unavailable:
        names = ", ".join(sorted(unavailable))
        raise UsageError(f"Option(s) [{names}] are unavailable given other options on the command line")
    if options.bootstrap_server is None:
        raise UsageError('Missing required argument "[bootstrap-server]"')
    if options.describe:
        check_describe(options)
    if options.delete:
        check_delete(options)
    if options.delete_offsets and not (options.group and options.topic):
        raise UsageError("Option [delete-offsets] takes the following options: [group], [topic]")
    if options.reset_offsets:
        check_reset(options)
    refuse(options, "group", ("all-groups",))
    refuse(options, "group", ("list",))
    refuse(options, "topic", ("list", "describe"))
    if sum(given(options, action) for action in ACTIONS) != 1:
        raise UsageError(ONE_ACTION)


def check_describe(options: argparse.Namespace) -> None:
    if not options.group and not options.all_groups:
        raise UsageError("Option [describe] takes one of these options: [all-groups], [group]")
    if sum(given(options, name) for name in ("members", "offsets", "state")) > 1:
        raise UsageError(
            "Option [describe] takes at most one of these options: [members], [offsets], [state]"
        )
    if options.state not in (None, ALL):
        raise UsageError("Option [describe] does not take a value for [state]")


def check_delete(options: argparse.Namespace) -> None:
    if not options.group and not options.all_groups:
        raise UsageError("Option [delete] takes the options [group] or [all-groups]")
    if options.group and options.all_groups:
        raise UsageError("Option [delete] takes either [group] or [all-groups], not both.")
    if options.topic:
        raise UsageError("Option [delete] does not take the option: [topic]")


def check_reset(options: argparse.Namespace) -> None:
    if options.dry_run and options.execute:
        raise UsageError("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
    if not options.dry_run and not options.execute:
        raise UsageError("Option [reset-offsets] takes the option: [execute] or [dry-run]")
    if not options.group:
        raise UsageError("Option [reset-offsets] takes the option: [group]")
    if not options.topic and not options.all_topics:
        raise UsageError("Option [reset-offsets] takes one of these options: [all-topics], [topic]")
    if not any(given(options, form) for form in FORMS):
        forms = ", ".join(f"[{form}]" for form in FORMS)
        raise UsageError(f"Option [reset-offsets] takes one of these options: {forms}")
    for form in FORMS:
        refuse(options, form, [other for other in FORMS if other != form])


async def share_groups(admin: Admin, states: list[str] | None = None) -> list[GroupListing]:
    found = await admin.list_groups(states=states or (), types=[SHARE])
    return sorted(found, key=lambda listing: listing.group_id)


async def list_groups(options: argparse.Namespace, admin: Admin, out: Output) -> None:
    if options.state is None:
        for listing in await share_groups(admin):
            out.line(listing.group_id)
        return
    found = await share_groups(admin, chosen(options.state, STATES, "state", "state"))
    width = max([15, *(len(listing.group_id) for listing in found)])
    for name, state in [("GROUP", "STATE"), *((each.group_id, each.state) for each in found)]:
        out.line(f"{name:<{width}} {state}")


async def delete(groups: list[str] | None, admin: Admin, out: Output, problems: Problems) -> None:
    """Delete the groups that are share groups without members (None: all of them)."""
    known = {listing.group_id: listing.state for listing in await share_groups(admin)}
    failed: dict[str, str] = {}
    for group in known if groups is None else groups:
        if group not in known:
            failed[group] = f"Group '{group}' is not a share group."
        elif known[group] == "Dead":
            failed[group] = f"Share group '{group}' group state is DEAD."
        elif known[group] != "Empty":
            failed[group] = f"Share group '{group}' is not EMPTY."
    wanted = [group for group in (known if groups is None else groups) if group not in failed]
    results = await admin.delete_groups(wanted)
    failed |= {group: reason_of(error) for group, error in results.items() if error is not None}
    deleted = ", ".join(f"'{group}'" for group, error in results.items() if error is None)
    if not failed:
        out.line(f"Deletion of requested share groups ({deleted}) was successful.")
        return
    problems.report("Deletion of some share groups failed:")
    for group, reason in failed.items():
        out.line(f"* Group '{group}' could not be deleted due to: {reason}")
    if deleted:
        out.line(f"\nThese share groups were deleted successfully: {deleted}")


async def delete_offsets(
    group: str, topics: list[str], admin: Admin, out: Output, problems: Problems
) -> None:
    wanted = list(dict.fromkeys(topics))
    worst: KafkaError | None
    results: dict[str, KafkaError | None]
    try:
        results = await admin.delete_share_group_offsets(group, wanted)
        worst = next((error for error in results.values() if error is not None), None)
    except KafkaError as error:
        worst, results = error, dict.fromkeys(wanted, error)
    if worst is not None and worst.code in GROUP_ERRORS:
        problems.report(reason_of(worst))
    elif worst is not None and worst.code not in TOPIC_ERRORS:
        problems.report(f"Encounter some unknown error: {reason_of(worst)}")
    elif worst is not None:
        problems.count += 1
    width = max([15, *map(len, results)])
    out.line(f"\n{'TOPIC':<{width}} STATUS")
    for topic, result in sorted(results.items()):
        out.line(f"{topic:<{width}} {'Successful' if result is None else f'Error: {reason_of(result)}'}")
