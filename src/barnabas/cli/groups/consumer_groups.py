"""consumer-groups: list, describe and delete groups, and reset their offsets, as kafka-consumer-groups.

In: options. Out: tables in Kafka's columns. The checks of options and their order are Kafka's. Under Kafka's
name a failed command prints its error to the output and ends with status 0, as Kafka's tool does. Under our
name it ends with status 1.
"""

import argparse
from collections.abc import Iterable, Mapping

from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolParser, UsageError
from barnabas.cli.groups.consumer_groups_describe import describe
from barnabas.cli.groups.consumer_groups_problems import Problems, reason_of
from barnabas.cli.groups.consumer_groups_reset import FORMS, reset
from barnabas.cli.groups.consumer_groups_topics import partitions_named
from barnabas.cli.groups.group_options import (
    ALL,
    add_actions,
    add_execution,
    add_export,
    add_forms,
    add_selection,
    add_views,
    check_describe,
    check_one_action,
    check_one_execution,
    check_one_form,
    check_views,
    chosen,
    needs_groups,
    refuse,
    run_command,
)
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.groups import CONSUMER, GroupListing
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import ErrorCode, KafkaError

PREFIX = "Error: "
EXAMPLES = (
    "--list --state",
    "--describe --group readers",
    "--describe --all-groups --members --verbose",
    "--reset-offsets --group readers --topic orders --to-earliest --execute",
    "--reset-offsets --group readers --topic orders:0,1 --by-duration PT1H --dry-run",
    "--delete --group readers",
)
ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets", "validate-regex")
ONE_ACTION = f"Command must include exactly one action: {', '.join(f'--{each}' for each in ACTIONS)}"
STATES = (
    "PreparingRebalance",
    "CompletingRebalance",
    "Stable",
    "Dead",
    "Empty",
    "Assigning",
    "Reconciling",
)
TYPES = ("Consumer", "Classic")
NO_EXECUTE = (
    "WARN: No action will be performed as the --execute option is missing. In version 5.0, this command "
    "will require either --dry-run or --execute to be specified. You should add the --dry-run option "
    "explicitly if you are scripting this command and want to keep the current default behavior without "
    "prompting."
)
PARTITION_ERRORS = (
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)


def add_arguments(parser: ToolParser) -> None:
    parser.signed |= {"--by-duration"}
    texts = {
        "list": "list groups",
        "describe": "offsets and lag, members, or state",
        "delete": "delete groups that have no members",
        "reset-offsets": "reset offsets of inactive groups",
        "delete-offsets": "delete offsets of a group",
    }
    actions = add_actions(parser, texts)
    actions.add_argument("--validate-regex", metavar="REGEX", help="check a regular expression (RE2 syntax)")
    add_selection(parser, "group", "topic", "a topic", "every topic that the group has offsets of")
    add_views(parser)
    parser.add_argument(
        "--type", nargs="?", const=ALL, metavar="TYPE,...", help="with --list: classic, consumer or both"
    )
    parser.add_argument("--verbose", action="store_true", help="describe more: epochs and assignments")
    add_execution(parser, "reset", "reset")
    add_export(parser)
    add_forms(parser)


async def run(options: argparse.Namespace, out: Output) -> int:
    check_options(options, out)
    problems = Problems(out, as_kafka=options.as_kafka)
    if options.validate_regex is not None:
        validate_regex(options.validate_regex, out, problems)
        return problems.status
    await run_command(options, problems, "consumer group", lambda admin: act(options, admin, out, problems))
    return problems.status


async def act(options: argparse.Namespace, admin: Admin, out: Output, problems: Problems) -> None:
    if options.list:
        await list_groups(options, admin, out)
        return
    groups = list(dict.fromkeys(options.group or ()))
    if options.all_groups:
        groups = sorted(listing.group_id for listing in await consumer_groups(admin))
    if options.describe:
        await describe(options, groups, admin, out)
    elif options.delete:
        await delete(groups, admin, out, problems)
    elif options.delete_offsets:
        await delete_offsets(groups[-1], options.topic, admin, out, problems)
    else:
        await reset(options, groups, admin, out, problems)


def check_options(options: argparse.Namespace, out: Output) -> None:
    """Check which options may be combined, in Kafka's order."""
    check_views(options, ["type"] if options.type is not None and not options.list else ())
    if options.bootstrap_server is None and options.validate_regex is None:
        raise UsageError('Missing required argument "[bootstrap-server]"')
    if options.describe:
        check_describe(options)
    if options.delete:
        needs_groups(options, "delete")
        if options.topic:
            raise UsageError(
                "The consumer does not support topic-specific offset deletion from a consumer group."
            )
    if options.delete_offsets and not (options.group and options.topic):
        raise UsageError("Option [delete-offsets] takes the following options: [group], [topic]")
    if options.reset_offsets:
        check_reset(options, out)
    refuse(options, "group", ("all-groups", "list"))
    refuse(options, "topic", ("describe", "list"))
    check_one_action(options, ACTIONS, ONE_ACTION)


def check_reset(options: argparse.Namespace, out: Output) -> None:
    check_one_execution(options)
    if not options.dry_run and not options.execute:
        out.note(NO_EXECUTE)
    needs_groups(options, "reset-offsets")
    check_one_form(options, FORMS)


def validate_regex(text: str, out: Output, problems: Problems) -> None:
    from barnabas.expressions.chars import RegexError
    from barnabas.expressions.syntax import parse

    try:
        parse(text)
    except RegexError as wrong:
        out.line(f"The regular expression `{text}` is invalid: {wrong}.")
        problems.count += 1
    else:
        out.line(f"The regular expression `{text}` is valid.")


async def consumer_groups(
    admin: Admin, *, states: Iterable[str] = (), types: Iterable[str] = ()
) -> list[GroupListing]:
    """Groups of the classic and the consumer protocol, and groups that only hold offsets."""
    return [
        listing
        for listing in await admin.list_groups(states=states, types=types)
        if listing.protocol_type in (CONSUMER, "") and listing.type in ("", *TYPES)
    ]


async def list_groups(options: argparse.Namespace, admin: Admin, out: Output) -> None:
    states = chosen(options.state, STATES, "state", "state")
    types = chosen(options.type, TYPES, "type", "types")
    found = sorted(await consumer_groups(admin, states=states, types=types), key=lambda one: one.group_id)
    if options.state is None and options.type is None:
        for listing in found:
            out.line(listing.group_id)
        return
    width = max([15, *(len(listing.group_id) for listing in found)]) + 10
    rows = [("GROUP", "TYPE", "STATE"), *((each.group_id, each.type, each.state) for each in found)]
    for name, kind, state in rows:
        line = f"{name:<{width}}"
        if options.type is not None:
            line += f" {kind:<20}"
        if options.state is not None:
            line += f" {state:<20}"
        out.line(line)


async def delete(groups: list[str], admin: Admin, out: Output, problems: Problems) -> None:
    results = await admin.delete_groups(groups)
    deleted = ", ".join(f"'{group}'" for group, error in results.items() if error is None)
    failed = {group: error for group, error in results.items() if error is not None}
    if not failed:
        out.line(f"Deletion of requested consumer groups ({deleted}) was successful.")
        return
    problems.report("Deletion of some consumer groups failed:")
    for group, error in failed.items():
        out.line(f"* Group '{group}' could not be deleted due to: {reason_of(error)}")
    if deleted:
        out.line(f"\nThese consumer groups were deleted successfully: {deleted}")


async def delete_offsets(
    group: str, topics: list[str], admin: Admin, out: Output, problems: Problems
) -> None:
    partitions, missing = await partitions_named(topics, admin)
    results: dict[TopicPartition, KafkaError | None] = {
        TopicPartition(name, -1): why for name, why in missing
    }
    worst: KafkaError | None = None
    try:
        deleted = await admin.delete_offsets(group, partitions)
        worst = next((error for error in deleted.values() if error is not None), None)
        results |= deleted
    except KafkaError as error:
        worst = error
        results |= dict.fromkeys(partitions, error)
    if worst is None:
        out.line(f"Request succeeded for deleting offsets from group {group}.")
    elif worst.code in PARTITION_ERRORS:
        problems.report("Encountered some partition-level error, see the follow-up details.")
    else:
        problems.report(reason_of(worst))
    problems.count += len(missing)
    show_deletions(results, out)


def show_deletions(results: Mapping[TopicPartition, KafkaError | None], out: Output) -> None:
    width = max([15, *(len(topic_partition.topic) for topic_partition in results)])
    out.line(f"\n{'TOPIC':<{width}} {'PARTITION':<10} {'STATUS':<15}")
    for topic_partition, result in sorted(results.items()):
        index = "-" if topic_partition.partition < 0 else str(topic_partition.partition)
        status = "Successful" if result is None else f"Error: {reason_of(result)}"
        out.line(f"{topic_partition.topic:<{width}} {index:<10} {status:<15}")
