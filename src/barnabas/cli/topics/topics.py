"""topics: create, list, describe, alter and delete topics, with the options and columns of kafka-topics.

In: options. Out: lines. The checks of options and their order are Kafka's. An error of the broker is printed
with the broker's message. `--alter` warns if a topic holds records with keys: keys move to other partitions.
"""

import argparse
import re
from collections.abc import Callable

from barnabas.cli.frame.connecting import add_bootstrap, add_command_config, cluster_from
from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError, ToolParser, UsageError
from barnabas.cli.frame.topic_filter import TopicFilter
from barnabas.cli.topics.topic_description import Report, TopicConfig, describe
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.configs import ConfigResource, ResourceType
from barnabas.client.admin.topics import BROKER_DEFAULT, PARTITIONS_PER_RESPONSE, NewTopic
from barnabas.client.cluster import Cluster
from barnabas.client.core.errors import ClientError
from barnabas.client.core.topology import Topic
from barnabas.client.keys import has_keys
from barnabas.protocol import ErrorCode, KafkaError, uuid
from barnabas.protocol.types import NULL_UUID

PREFIX = "Error while executing topic command : "
EXAMPLES = (
    "--create --topic orders --partitions 3 --config retention.ms=86400000",
    "--list",
    "--describe --topic orders",
    "--alter --topic orders --partitions 6",
    "--delete --topic 'test-.*'",
)
ACTIONS = ("create", "list", "alter", "describe", "delete")
REPORTS = (
    "under-replicated-partitions",
    "unavailable-partitions",
    "under-min-isr-partitions",
    "at-min-isr-partitions",
)
VISIBLE_MS_MAX = 5_000
NOT_YET = ClientError("the broker does not show the change yet")
REPLICATION_FACTOR_MAX = 32_767
COLLISION_WARNING = (
    "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') "
    "could collide. To avoid issues it is best to use either, but not both."
)
KEYS_MOVE_WARNING = (
    "WARNING: {topic} holds records with keys. From now on a key may go to another partition than its "
    "earlier records: order per key holds only among records written after this change."
)


def add_arguments(parser: ToolParser) -> None:
    add_bootstrap(parser)
    add_command_config(parser)
    actions = parser.add_argument_group("actions (exactly one)")
    actions.add_argument("--create", action="store_true", help="create a topic")
    actions.add_argument("--list", action="store_true", help="list topics")
    actions.add_argument("--describe", action="store_true", help="leader, replicas and ISR of each partition")
    actions.add_argument("--alter", action="store_true", help="raise the number of partitions")
    actions.add_argument("--delete", action="store_true", help="delete topics")
    parser.add_argument("--topic", help="a name; a regular expression too, except with --create")
    parser.add_argument("--topic-id", metavar="ID", help="the topic to describe, by its id")
    parser.add_argument("--partitions", type=int, metavar="N", help="partitions of the new or altered topic")
    parser.add_argument("--replication-factor", type=int, metavar="N", help="replicas of each partition")
    parser.add_argument(
        "--replica-assignment",
        metavar="1:2,2:3",
        help="brokers of each partition: ':' between brokers, ',' between partitions",
    )
    parser.add_argument(
        "--config", action="append", metavar="NAME=VALUE", help="a setting of the new topic; may be repeated"
    )
    parser.add_argument("--delete-config", metavar="NAME", help=argparse.SUPPRESS)
    parser.add_argument("--if-exists", action="store_true", help="no error if the topic does not exist")
    parser.add_argument("--if-not-exists", action="store_true", help="no error if the topic exists already")
    parser.add_argument("--exclude-internal", action="store_true", help="leave internal topics out")
    parser.add_argument(
        "--topics-with-overrides", action="store_true", help="only topics with settings of their own"
    )
    for report in REPORTS:
        parser.add_argument(
            f"--{report}", action="store_true", help=f"describe only {report.replace('-', ' ')}"
        )
    parser.add_argument(
        "--partition-size-limit-per-response",
        type=int,
        metavar="N",
        default=PARTITIONS_PER_RESPONSE,
        help="partitions to describe with one request",
    )


async def run(options: argparse.Namespace, out: Output) -> None:
    check_options(options, out)
    cluster = cluster_from(options)
    async with cluster:
        admin = Admin(cluster)
        if options.create:
            await create(options, admin, cluster, out)
        elif options.list:
            out.line("\n".join(await matching(options, admin)))
        elif options.alter:
            await alter(options, admin, cluster, out)
        elif options.describe:
            await describe_topics(options, admin, out)
        else:
            names = await matching(options, admin)
            ensure_found(names, options)
            await admin.delete_topics(names)
            await wait_until_visible(cluster, names, lambda topic: topic is None or topic.error_code != 0)


def check_options(options: argparse.Namespace, out: Output) -> None:
    """Check which options may be combined, in Kafka's order."""
    given = {name for name, value in vars(options).items() if value not in (None, False)}
    if sum(action in given for action in ACTIONS) != 1:
        raise UsageError(
            "Command must include exactly one action: --list, --describe, --create, --alter or --delete"
        )
    if "delete_config" in given:
        out.note("--delete-config does nothing since Kafka 4: use kafka-configs --alter --delete-config")
    if options.bootstrap_server is None:
        raise UsageError("--bootstrap-server must be specified")
    if options.describe and options.if_exists:
        if options.topic is None and options.topic_id is None:
            raise UsageError("--topic or --topic-id is required to describe a topic")
        if options.topic is not None and options.topic_id is not None:
            out.line(
                "Only topic id will be used when both --topic and --topic-id are specified "
                "and topicId is not Uuid.ZERO_UUID"
            )
    if not options.list and not options.describe and options.topic is None:
        raise UsageError('Missing required argument "[topic]"')
    if options.alter:
        if options.config:
            raise UsageError(
                'Option combination "[bootstrap-server],[config]" can\'t be used with option "[alter]" '
                "(the kafka-configs tool can be used to alter topic configurations)"
            )
        if options.partitions is None:
            raise UsageError('Missing required argument "[partitions]"')
    for used, allowed in ALLOWED_WITH.items():
        refuse(options, used, [action for action in ACTIONS if action not in allowed])
    if options.create and options.replica_assignment is not None:
        refuse(options, "replica-assignment", ["partitions", "replication-factor"])
    for report in REPORTS:
        refuse(options, report, [*(a for a in ACTIONS if a != "describe"), "topics-with-overrides"])


ALLOWED_WITH = {
    "config": ("alter", "create"),
    "partitions": ("alter", "create"),
    "replication-factor": ("create",),
    "replica-assignment": ("alter", "create"),
    "topics-with-overrides": ("describe",),
    "if-exists": ("alter", "delete", "describe"),
    "if-not-exists": ("create",),
    "exclude-internal": ("list", "describe"),
}


def refuse(options: argparse.Namespace, used: str, others: list[str]) -> None:
    if getattr(options, used.replace("-", "_")) in (None, False):
        return
    for other in others:
        if getattr(options, other.replace("-", "_")) not in (None, False):
            raise UsageError(f'Option "[{used}]" can\'t be used with option "[{other}]"')


async def create(options: argparse.Namespace, admin: Admin, cluster: Cluster, out: Output) -> None:
    topic = new_topic(options)
    if "." in topic.name or "_" in topic.name:
        out.line(COLLISION_WARNING)
    if (
        topic.replication_factor != BROKER_DEFAULT
        and not 1 <= topic.replication_factor <= REPLICATION_FACTOR_MAX
    ):
        raise ToolError(f"The replication factor must be between 1 and {REPLICATION_FACTOR_MAX} inclusive")
    if topic.partitions != BROKER_DEFAULT and topic.partitions < 1:
        raise ToolError("The partitions must be greater than 0")
    try:
        await admin.create_topic(topic)
    except KafkaError as error:
        if options.if_not_exists and error.code == ErrorCode.TOPIC_ALREADY_EXISTS:
            return
        raise
    await wait_until_visible(cluster, [topic.name], lambda found: found is not None and found.error_code == 0)
    out.line(f"Created topic {topic.name}.")


async def wait_until_visible(
    cluster: Cluster, names: list[str], is_visible: Callable[[Topic | None], bool]
) -> None:
    """Wait until the broker shows a change: the controller acknowledges it a moment before brokers apply it.

    A timeout is no error, because the change is made.
    """
    patience = cluster.patience(VISIBLE_MS_MAX)
    while True:
        topics = (await cluster.refresh(names)).topics
        if all(is_visible(topics.get(name)) for name in names):
            return
        try:
            await patience.pause(NOT_YET)
        except ClientError:
            return


def new_topic(options: argparse.Namespace) -> NewTopic:
    configs = {}
    for pair in options.config or ():
        parts = re.split(r"\s*=\s*", pair)
        if len(parts) != 2:
            raise ToolError(
                "requirement failed: Invalid topic config: all configs to be added must be in the format "
                f'"key=val".{"" if "=" not in pair else f" ({pair!r} has more than one =)"}'
            )
        configs[parts[0].strip()] = parts[1].strip()
    return NewTopic(
        name=options.topic,
        partitions=BROKER_DEFAULT if options.partitions is None else options.partitions,
        replication_factor=BROKER_DEFAULT
        if options.replication_factor is None
        else options.replication_factor,
        assignments=parse_assignment(options.replica_assignment),
        configs=configs,
    )


def parse_assignment(text: str | None) -> list[list[int]]:
    """Parse `1:2,2:3`: the brokers of partition 0, of partition 1, and so on."""
    assignments: list[list[int]] = []
    for index, part in enumerate(text.split(",") if text else ()):
        try:
            brokers = [int(each) for each in part.split(":")]
        except ValueError:
            raise ToolError(
                f"--replica-assignment {text}: {part!r} is not a list of broker ids like 1:2"
            ) from None
        twice = sorted({broker for broker in brokers if brokers.count(broker) > 1})
        if twice:
            listed = ",".join(map(str, twice))
            raise ToolError(f"Partition replica lists may not contain duplicate entries: {listed}")
        assignments.append(brokers)
        if len(brokers) != len(assignments[0]):
            raise ToolError(f"Partition {index} has different replication factor: {brokers}")
    return assignments


async def matching(options: argparse.Namespace, admin: Admin) -> list[str]:
    listed = [topic.name for topic in await admin.list_topics(internal=not options.exclude_internal)]
    return listed if options.topic is None else TopicFilter(options.topic).select(listed)


def ensure_found(names: list[str], options: argparse.Namespace) -> None:
    if options.topic and not names and not options.if_exists:
        raise ToolError(f"Topic '{options.topic}' does not exist as expected")


async def alter(options: argparse.Namespace, admin: Admin, cluster: Cluster, out: Output) -> None:
    assignments = parse_assignment(options.replica_assignment)
    names = await matching(options, admin)
    ensure_found(names, options)
    if not names:
        return
    described = await admin.describe_topics(names)
    chosen = (
        {topic.name: assignments[len(topic.partitions) :] for topic in described} if assignments else None
    )
    grows = [topic for topic in described if len(topic.partitions) < options.partitions]
    keyed = [topic.name for topic in grows if await has_keys(cluster, topic.name, len(topic.partitions))]
    await admin.create_partitions(dict.fromkeys(names, options.partitions), chosen)
    await wait_until_visible(
        cluster, names, lambda topic: topic is not None and topic.partition_count >= options.partitions
    )
    for name in keyed:
        out.note(KEYS_MOVE_WARNING.format(topic=name))


async def describe_topics(options: argparse.Namespace, admin: Admin, out: Output) -> None:
    names = await names_to_describe(options, admin)
    described = await admin.describe_topics(names, options.partition_size_limit_per_response)
    resources = [ConfigResource(ResourceType.TOPIC, topic.name) for topic in described]
    configs = await admin.describe_configs(resources)
    live = {node.id for node in (await admin.describe_cluster()).nodes}
    reassignments = await admin.reassignments()
    report = Report(
        under_replicated=options.under_replicated_partitions,
        unavailable=options.unavailable_partitions,
        under_min_isr=options.under_min_isr_partitions,
        at_min_isr=options.at_min_isr_partitions,
        overrides_only=options.topics_with_overrides,
        live_brokers=frozenset(live),
    )
    for topic in described:
        config = TopicConfig(configs[ConfigResource(ResourceType.TOPIC, topic.name)])
        for line in describe(topic, config, reassignments, report):
            out.line(line)


async def names_to_describe(options: argparse.Namespace, admin: Admin) -> list[str]:
    topic_id = parse_topic_id(options.topic_id)
    if topic_id == NULL_UUID:
        names = await matching(options, admin)
        ensure_found(names, options)
        return names
    name = await admin.topic_name(topic_id)
    if name is not None:
        return [name]
    if not options.if_exists:
        raise ToolError(f"TopicId '{options.topic_id}' does not exist as expected")
    return []


def parse_topic_id(text: str | None) -> bytes:
    if text is None:
        return NULL_UUID
    try:
        return uuid.from_text(text)
    except ValueError as error:
        raise ToolError(str(error)) from None
