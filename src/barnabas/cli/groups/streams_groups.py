"""streams-groups: list, describe and delete streams groups, and reset their offsets, as kafka-streams-groups.

In: options. Out: tables in Kafka's columns. The checks of options and their order are Kafka's. Under Kafka's
name a problem of one group is printed to the output and the status stays 0, as with Kafka's tool. Under our
name the status is 1.
"""

import argparse

from barnabas.cli.frame.connecting import add_bootstrap, add_command_config, cluster_from
from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError, ToolParser, UsageError
from barnabas.cli.groups.consumer_groups import (
    PARTITION_ERRORS,
    check_describe_options,
    chosen,
    given,
    needs_groups,
    refuse,
    show_deletions,
)
from barnabas.cli.groups.consumer_groups_problems import Problems, reason_of
from barnabas.cli.groups.consumer_groups_reset import FORMS, whole_number
from barnabas.cli.groups.consumer_groups_topics import partitions_named
from barnabas.cli.groups.streams_groups_describe import describe
from barnabas.cli.groups.streams_groups_reset import input_topics, internal_topics, reset
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.groups import GroupListing
from barnabas.client.core.errors import ClientError
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
TIMEOUT_MS = 30_000
ALL = "all"  # the value of an option that is given without one
STATES = ("Stable", "Dead", "Empty", "Assigning", "Reconciling", "NotReady")
STREAMS = "Streams"
GROUP_ERRORS = (
    ErrorCode.INVALID_GROUP_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.NON_EMPTY_GROUP,
)


def add_arguments(parser: ToolParser) -> None:
    parser.set_defaults(as_kafka=parser.strict)
    parser.signed |= {"--by-duration"}
    add_bootstrap(parser)
    add_command_config(parser)
    actions = parser.add_argument_group("actions (exactly one)")
    actions.add_argument("--list", action="store_true", help="list streams groups")
    actions.add_argument("--describe", action="store_true", help="lag, members with their tasks, or state")
    actions.add_argument("--delete", action="store_true", help="delete groups that have no members")
    actions.add_argument("--reset-offsets", action="store_true", help="reset offsets of inactive groups")
    actions.add_argument("--delete-offsets", action="store_true", help="delete offsets of a group")
    parser.add_argument("--group", action="append", metavar="ID", help="a group; may be repeated")
    parser.add_argument("--all-groups", action="store_true", help="every streams group")
    parser.add_argument(
        "--input-topic",
        action="append",
        metavar="TOPIC[:0,1]",
        help="a source topic, or some of its partitions; may be repeated",
    )
    parser.add_argument("--all-input-topics", action="store_true", help="every source topic of the topology")
    parser.add_argument("--members", action="store_true", help="describe members")
    parser.add_argument("--offsets", action="store_true", help="describe offsets (the default)")
    parser.add_argument(
        "--state",
        nargs="?",
        const=ALL,
        metavar="STATE,...",
        help="describe the state; with --list: show states, and only groups in the given states",
    )
    parser.add_argument("--verbose", action="store_true", help="describe more: epochs and target tasks")
    parser.add_argument("--dry-run", action="store_true", help="only show what would be reset")
    parser.add_argument("--execute", action="store_true", help="reset")
    parser.add_argument("--export", action="store_true", help="print the new offsets as CSV")
    parser.add_argument(
        "--delete-internal-topic", action="append", metavar="TOPIC", help="delete an internal topic as well"
    )
    parser.add_argument(
        "--delete-all-internal-topics", action="store_true", help="delete the group's internal topics as well"
    )
    forms = parser.add_argument_group("new offsets of --reset-offsets (exactly one)")
    forms.add_argument("--to-earliest", action="store_true", help="the first record")
    forms.add_argument("--to-latest", action="store_true", help="the end of the log")
    forms.add_argument("--to-current", action="store_true", help="the committed offset, else the end")
    forms.add_argument("--to-offset", metavar="N", help="an offset, or the nearer end of the log")
    forms.add_argument("--shift-by", metavar="N", help="forward by this many offsets, or back")
    forms.add_argument("--to-datetime", metavar="YYYY-MM-DDThh:mm:ss.sss", help="first record at this time")
    forms.add_argument("--by-duration", metavar="PnDTnHnMnS", help="first record of this recent time")
    forms.add_argument("--from-file", metavar="CSV", help="offsets in a file that --export wrote")
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
    except UsageError:
        raise
    except (ToolError, ClientError, KafkaError) as error:
        reason = reason_of(error) if isinstance(error, KafkaError) else str(error)
        if not options.as_kafka:
            raise ToolError(reason) from error
        problems.report(f"Executing streams group command failed due to {reason}")
        out.note(reason)  # where Kafka's tool has a stack trace
        return 1
    return problems.status


async def act(options: argparse.Namespace, admin: Admin, out: Output, problems: Problems) -> None:
    if options.list:
        await list_groups(options, admin, out)
        return
    groups = list(dict.fromkeys(options.group or ()))
    if options.all_groups:
        groups = [listing.group_id for listing in await streams_groups(admin)]
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
        check_describe_options(options)
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
    if sum(given(options, action) for action in ACTIONS) != 1:
        raise UsageError(ONE_ACTION)


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
    if options.dry_run and options.execute:
        raise UsageError("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
    if not options.dry_run and not options.execute:
        raise UsageError("Option [reset-offsets] takes the option: [execute] or [dry-run]")
    needs_groups(options, "reset-offsets")
    for form in FORMS:
        refuse(options, form, [other for other in FORMS if other != form])


def check_internal_topics(options: argparse.Namespace) -> None:
    if options.delete_all_internal_topics:
        name = "Option [delete-all-internal-topics]"
        if not options.reset_offsets and not options.delete:
            raise UsageError(f"{name} takes one of these options: [delete], [reset-offsets]")
        if options.reset_offsets and not options.execute:
            raise UsageError(f"{name} takes [execute] when [reset-offsets] is used.")
    elif options.delete_internal_topic and not (options.reset_offsets and options.execute):
        raise UsageError("Option [delete-internal-topic] takes [reset-offsets] when [execute] is used.")


async def streams_groups(admin: Admin, states: list[str] | None = None) -> list[GroupListing]:
    found = await admin.list_groups(states=states or (), types=[STREAMS])
    return sorted(found, key=lambda listing: listing.group_id)


async def list_groups(options: argparse.Namespace, admin: Admin, out: Output) -> None:
    if options.state is None:
        for listing in await streams_groups(admin):
            out.line(listing.group_id)
        return
    found = await streams_groups(admin, chosen(options.state, STATES, "state", "state"))
    width = max([15, *(len(listing.group_id) for listing in found)])
    for name, state in [("GROUP", "STATE"), *((each.group_id, each.state) for each in found)]:
        out.line(f"{name:<{width}} {state}")


async def delete(
    options: argparse.Namespace, groups: list[str], admin: Admin, out: Output, problems: Problems
) -> None:
    known = {listing.group_id: listing.state for listing in await streams_groups(admin)}
    failed: dict[str, str] = {}
    for group in groups:
        if group not in known:
            failed[group] = f"Group '{group}' does not exist or is not a streams group."
        elif known[group] == "Dead":
            failed[group] = f"Streams group '{group}' group state is DEAD."
        elif known[group] != "Empty":
            failed[group] = f"Streams group '{group}' is not EMPTY."
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
