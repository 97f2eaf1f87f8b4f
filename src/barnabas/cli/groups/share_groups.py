"""share-groups: list, describe and delete share groups, set and delete their offsets, as kafka-share-groups.

In: options. Out: tables in Kafka's columns. The checks of options and their order are Kafka's. Under Kafka's
name a failed command prints its error to the output and ends with status 0, as Kafka's tool does. Under our
name it ends with status 1.
"""

import argparse

from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolParser, UsageError
from barnabas.cli.groups.consumer_groups_problems import Problems, reason_of
from barnabas.cli.groups.group_options import (
    add_actions,
    add_execution,
    add_forms,
    add_selection,
    add_views,
    check_describe,
    check_execution,
    check_one_action,
    check_one_form,
    check_views,
    given,
    list_groups_of,
    listings_of,
    refuse,
    run_command,
    undeletable,
)
from barnabas.cli.groups.share_groups_describe import describe
from barnabas.cli.groups.share_groups_reset import FORMS, GroupInUse, reset
from barnabas.client.admin.admin import Admin
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
    texts = {
        "list": "list share groups",
        "describe": "start offsets and lag, members, or state",
        "delete": "delete groups that have no members",
        "reset-offsets": "set offsets of an inactive group",
        "delete-offsets": "let a group forget topics",
    }
    add_actions(parser, texts)
    add_selection(parser, "share group", "topic", "a topic", "every topic that the group has read")
    add_views(parser)
    parser.add_argument("--verbose", action="store_true", help="describe more: epochs")
    add_execution(parser, "set", "set the offsets")
    add_forms(parser, ("to-earliest", "to-latest", "to-datetime"))


async def run(options: argparse.Namespace, out: Output) -> int:
    check_options(options)
    problems = Problems(out, as_kafka=options.as_kafka)
    await run_command(
        options,
        problems,
        "share group",
        lambda admin: act(options, admin, out, problems),
        passes=GroupInUse,
    )
    return problems.status


async def act(options: argparse.Namespace, admin: Admin, out: Output, problems: Problems) -> None:
    if options.list:
        await list_groups_of(options, admin, out, SHARE, STATES)
        return
    groups = list(dict.fromkeys(options.group or ()))
    if options.describe:
        if options.all_groups:
            groups = [listing.group_id for listing in await listings_of(admin, SHARE)]
        await describe(options, groups, admin, out, problems)
    elif options.delete:
        await delete(None if options.all_groups else groups, admin, out, problems)
    elif options.delete_offsets:
        await delete_offsets(groups[-1], options.topic, admin, out, problems)
    else:
        await reset(options, groups[-1], admin, out)


def check_options(options: argparse.Namespace) -> None:
    """Check which options may be combined, in Kafka's order."""
    check_views(options)
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
    check_one_action(options, ACTIONS, ONE_ACTION)


def check_delete(options: argparse.Namespace) -> None:
    if not options.group and not options.all_groups:
        raise UsageError("Option [delete] takes the options [group] or [all-groups]")
    if options.group and options.all_groups:
        raise UsageError("Option [delete] takes either [group] or [all-groups], not both.")
    if options.topic:
        raise UsageError("Option [delete] does not take the option: [topic]")


def check_reset(options: argparse.Namespace) -> None:
    check_execution(options)
    if not options.group:
        raise UsageError("Option [reset-offsets] takes the option: [group]")
    if not options.topic and not options.all_topics:
        raise UsageError("Option [reset-offsets] takes one of these options: [all-topics], [topic]")
    if not any(given(options, form) for form in FORMS):
        forms = ", ".join(f"[{form}]" for form in FORMS)
        raise UsageError(f"Option [reset-offsets] takes one of these options: {forms}")
    check_one_form(options, FORMS)


async def delete(groups: list[str] | None, admin: Admin, out: Output, problems: Problems) -> None:
    """Delete the groups that are share groups without members (None: all of them)."""
    known = {listing.group_id: listing.state for listing in await listings_of(admin, SHARE)}
    failed = undeletable(known if groups is None else groups, known, "Share group", "is not a share group.")
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
