"""streams-groups: list, describe and delete streams groups, and reset their offsets, as kafka-streams-groups.

In: options. Out: tables in Kafka's columns. The checks of options and their order are Kafka's. Under Kafka's
name a problem of one group is printed to the output and the status stays 0, as with Kafka's tool. Under our
name the status is 1.
"""

import argparse

from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolParser, UsageError
from barnabas.cli.groups.consumer_groups import PARTITION_ERRORS, show_deletions
from barnabas.cli.groups.consumer_groups_problems import Problems, reason_of
from barnabas.cli.groups.consumer_groups_reset import FORMS
from barnabas.cli.groups.consumer_groups_topics import partitions_named
from barnabas.cli.groups.group_options import (
    add_actions,
    add_execution,
    add_export,
    add_forms,
    add_selection,
    add_views,
    check_describe,
    check_execution,
    check_one_action,
    check_one_form,
    check_views,
    list_groups_of,
    listings_of,
    needs_groups,
    refuse,
    run_command,
    undeletable,
)
from barnabas.cli.groups.streams_groups_describe import describe
from barnabas.cli.groups.streams_groups_reset import input_topics, internal_topics, reset
from barnabas.client.admin.admin import Admin
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import ErrorCode, KafkaError

EXAMPLES = (
    "--list --state",
    "--describe --group word-count",
    "--describe --all-groups --members --verbose",
    "--reset-offsets --group word-count --all-input-topics --to-earliest --execute "
    "--delete-all-internal-topics",
    "--delete-offsets --group word-count --input-topic lines",
    "--delete --group word-count --delete-all-internal-topics",
)
ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets")
ONE_ACTION = (
    "Command must include exactly one action: --list, --describe, --delete, --reset-offsets, or "
    "--delete-offsets."
)
STATES = ("Stable", "Dead", "Empty", "Assigning", "Reconciling", "NotReady")
STREAMS = "Streams"
GROUP_ERRORS = (
    ErrorCode.INVALID_GROUP_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.NON_EMPTY_GROUP,
)


def add_arguments(parser: ToolParser) -> None:
    parser.signed |= {"--by-duration"}
    texts = {
        "list": "list streams groups",
        "describe": "lag, members with their tasks, or state",
        "delete": "delete groups that have no members",
        "reset-offsets": "reset offsets of inactive groups",
        "delete-offsets": "delete offsets of a group",
    }
    add_actions(parser, texts)
    every = "every source topic of the topology"
    add_selection(parser, "streams group", "input-topic", "a source topic", every)
    add_views(parser)
    parser.add_argument("--verbose", action="store_true", help="describe more: epochs and target tasks")
    add_execution(parser, "reset", "reset")
    add_export(parser)
    parser.add_argument(
        "--delete-internal-topic", action="append", metavar="TOPIC", help="delete an internal topic as well"
    )
    parser.add_argument(
        "--delete-all-internal-topics", action="store_true", help="delete the group's internal topics as well"
    )
    add_forms(parser)


async def run(options: argparse.Namespace, out: Output) -> int:
    check_options(options)
    problems = Problems(out, as_kafka=options.as_kafka)
    reason = await run_command(
        options, problems, "streams group", lambda admin: act(options, admin, out, problems)
    )
    if reason is not None:
        out.note(reason)  # where Kafka's tool has a stack trace
        return 1
    return problems.status


async def act(options: argparse.Namespace, admin: Admin, out: Output, problems: Problems) -> None:
    if options.list:
        await list_groups_of(options, admin, out, STREAMS, STATES)
        return
    groups = list(dict.fromkeys(options.group or ()))
    if options.all_groups:
        groups = [listing.group_id for listing in await listings_of(admin, STREAMS)]
    if options.describe:
        await describe(options, groups, admin, out, problems)
    elif options.delete:
        await delete(options, groups, admin, out, problems)
    elif options.delete_offsets:
        await delete_offsets(options, groups[-1], admin, out, problems)
    else:
        await reset(options, groups, admin, out, problems)


def check_options(options: argparse.Namespace) -> None:
    """Check which options may be combined, in Kafka's order."""
    check_views(options)
    if options.bootstrap_server is None:
        raise UsageError('Missing required argument "[bootstrap-server]"')
    if options.describe:
        check_describe(options)
    if options.delete:
        needs_groups(options, "delete")
        if options.input_topic or options.all_input_topics:
            raise UsageError(
                "Kafka Streams does not support topic-specific offset deletion from a streams group."
            )
    if options.delete_offsets:
        check_delete_offsets(options)
    if options.reset_offsets:
        check_reset(options)
    check_internal_topics(options)
    if (options.dry_run or options.execute) and not options.reset_offsets:
        raise UsageError("Only Option [reset-offsets] accepts [execute] or [dry-run]")
    refuse(options, "list", ("members", "offsets"))
    refuse(options, "group", ("all-groups", "list"))
    refuse(options, "input-topic", ("list", "describe", "delete"))
    check_one_action(options, ACTIONS, ONE_ACTION)


def check_delete_offsets(options: argparse.Namespace) -> None:
    if not (options.group and (options.input_topic or options.all_input_topics)):
        raise UsageError(
            "Option [delete-offsets] takes the [group] and one of these options: [all-input-topics], "
            "[input-topic]"
        )
    if len(options.group) > 1:
        found = ", ".join(options.group)
        raise UsageError(f"Option [delete-offsets] supports only one [group] at a time, but found: [{found}]")


def check_reset(options: argparse.Namespace) -> None:
    check_execution(options)
    needs_groups(options, "reset-offsets")
    check_one_form(options, FORMS)


def check_internal_topics(options: argparse.Namespace) -> None:
    if options.delete_all_internal_topics:
        name = "Option [delete-all-internal-topics]"
        if not options.reset_offsets and not options.delete:
            raise UsageError(f"{name} takes one of these options: [delete], [reset-offsets]")
        if options.reset_offsets and not options.execute:
            raise UsageError(f"{name} takes [execute] when [reset-offsets] is used.")
    elif options.delete_internal_topic and not (options.reset_offsets and options.execute):
        raise UsageError("Option [delete-internal-topic] takes [reset-offsets] when [execute] is used.")


async def delete(
    options: argparse.Namespace, groups: list[str], admin: Admin, out: Output, problems: Problems
) -> None:
    known = {listing.group_id: listing.state for listing in await listings_of(admin, STREAMS)}
    failed = undeletable(groups, known, "Streams group", "does not exist or is not a streams group.")
    wanted = [group for group in groups if group not in failed]
    internal: dict[str, list[str]] = {}
    if options.delete_all_internal_topics:
        internal = await internal_topics_of(wanted, admin, problems)
    results = await admin.delete_groups(wanted)
    failed |= {group: reason_of(error) for group, error in results.items() if error is not None}
    deleted = [group for group, error in results.items() if error is None]
    errors = await delete_topics_of(deleted, internal, admin, out)
    names = ", ".join(f"'{group}'" for group in deleted)
    if failed:
        problems.report("Deletion of some streams groups failed:")
        for group, reason in failed.items():
            out.line(f"* Group '{group}' could not be deleted due to: {reason}")
        if deleted:
            out.line(f"\nThese streams groups were deleted successfully: {names}.")
    else:
        out.line(f"Deletion of requested streams groups ({names}) was successful.")
    if internal and deleted:
        if errors:
            out.line("Deletion of some associated internal topics failed:")
            for group, reason in errors.items():
                out.line(
                    f"* Internal topics of the streams group '{group}' could not be deleted due to: {reason}"
                )
        else:
            names = ", ".join(f"'{group}'" for group in deleted if group in internal)
            out.line(
                f"Deletion of associated internal topics of the streams groups ({names}) was successful."
            )


async def internal_topics_of(groups: list[str], admin: Admin, problems: Problems) -> dict[str, list[str]]:
    found = {}
    for group, description in (await admin.describe_streams_groups(groups)).items():
        if isinstance(description, KafkaError):
            problems.report(f"Retrieving internal topics failed due to {reason_of(description)}")
            return {}
        topics = internal_topics(description, problems)
        if topics:
            found[group] = topics
    return found


async def delete_topics_of(
    groups: list[str], internal: dict[str, list[str]], admin: Admin, out: Output
) -> dict[str, str]:
    """Delete the internal topics of deleted groups. Out: why that failed, by group."""
    errors: dict[str, str] = {}
    for group in groups:
        for topic in internal.get(group, ()):
            try:
                await admin.delete_topics([topic])
            except KafkaError as error:
                out.line(f"Failed to delete internal topic: {topic}")
                errors.setdefault(group, reason_of(error))
    return errors


async def delete_offsets(
    options: argparse.Namespace, group: str, admin: Admin, out: Output, problems: Problems
) -> None:
    missing: list[tuple[str, KafkaError]] = []
    if options.all_input_topics:
        description = (await admin.describe_streams_groups([group]))[group]
        if isinstance(description, KafkaError):
            raise description
        sources = input_topics(description)
        committed = await admin.committed_offsets(group)
        partitions = [topic_partition for topic_partition in committed if topic_partition.topic in sources]
    else:
        partitions, missing = await partitions_named(options.input_topic, admin)
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
    elif worst.code in GROUP_ERRORS:
        problems.report(reason_of(worst))
    else:
        problems.report(f"Encountered some unknown error: {worst.code.name}")
    problems.count += len(missing)
    show_deletions(results, out)
