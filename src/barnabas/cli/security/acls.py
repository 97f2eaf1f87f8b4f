"""acls: add, remove and list ACLs, and explain a decision.

In: options. Out: the lines of kafka-acls. Kafka prints resources and entries in an arbitrary order; here they
are sorted. `--explain` is our addition.
"""

import argparse
import sys
from collections.abc import Iterable

from barnabas.cli.frame.connecting import (
    add_bootstrap,
    add_bootstrap_controller,
    add_command_config,
    cluster_from,
)
from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolParser, UsageError
from barnabas.cli.frame.visibility import wait_until_visible
from barnabas.cli.security.acl_options import (
    Entry,
    Resource,
    check_options,
    checked_principal,
    filter_of,
    pattern_type,
    resources,
    rule_of,
    split_rule,
    wanted_acls,
)
from barnabas.client.admin.acls import EVERY_ACL, AclFilter
from barnabas.client.admin.admin import Admin
from barnabas.security.acls.rules import Rule
from barnabas.security.acls.vocabulary import PatternType

PREFIX = "Error while executing ACL command: "
EXAMPLES = (
    "--add --allow-principal User:ann --operation Read --topic orders",
    "--add --allow-principal User:ann --consumer --topic orders --group billing",
    "--remove --topic orders --force",
    "--list --principal User:ann",
    "--explain --principal User:ann --operation Read --topic orders",
)
Acls = dict[Resource, list[Entry]]


def add_arguments(parser: ToolParser) -> None:
    add_bootstrap(parser)
    add_bootstrap_controller(parser)
    add_command_config(parser)
    actions = parser.add_argument_group("actions (exactly one)")
    actions.add_argument("--add", action="store_true", help="add ACLs")
    actions.add_argument("--remove", action="store_true", help="remove ACLs")
    actions.add_argument("--list", action="store_true", help="list the ACLs of resources, or all")
    actions.add_argument(
        "--explain", action="store_true", help="say whether an operation is allowed, and by which rule"
    )
    where = parser.add_argument_group("resources")
    where.add_argument("--topic", action="append", metavar="NAME", help="a topic; * for all")
    where.add_argument("--group", action="append", metavar="NAME", help="a group; * for all")
    where.add_argument("--transactional-id", action="append", metavar="ID", help="a transactional id")
    where.add_argument("--delegation-token", action="append", metavar="ID", help="a delegation token")
    where.add_argument("--user-principal", action="append", metavar="User:NAME", help="a user")
    where.add_argument("--cluster", action="store_true", help="the cluster itself")
    where.add_argument(
        "--resource-pattern-type",
        metavar="TYPE",
        default="LITERAL",
        help="literal (default) or prefixed; to list and remove also match (all that apply to the name) "
        "and any",
    )
    who = parser.add_argument_group("rights")
    for permission in ("allow", "deny"):
        who.add_argument(f"--{permission}-principal", action="append", metavar="User:NAME", help=permission)
        who.add_argument(
            f"--{permission}-host",
            action="append",
            metavar="ADDRESS",
            help=f"address of the --{permission}-principal; * (default) for all",
        )
    who.add_argument(
        "--operation",
        action="append",
        metavar="WORD",
        help="Read, Write, Create, Delete, Alter, Describe, ClusterAction, DescribeConfigs, AlterConfigs, "
        "IdempotentWrite, CreateTokens, DescribeTokens, TwoPhaseCommit or All (default)",
    )
    who.add_argument("--producer", action="store_true", help="the rights that a producer needs")
    who.add_argument("--consumer", action="store_true", help="the rights that a consumer needs")
    who.add_argument("--idempotent", action="store_true", help="with --producer: IdempotentWrite")
    who.add_argument("--principal", action="append", metavar="User:NAME", help="with --list and --explain")
    who.add_argument("--host", metavar="ADDRESS", help="with --explain: the address of the caller")
    who.add_argument(
        "--server-properties", metavar="FILE", help="with --explain: settings of a node, for super.users"
    )
    parser.add_argument("--force", action="store_true", help="remove without a question")


async def run(options: argparse.Namespace, out: Output) -> int:
    check_options(options)
    if options.explain:
        from barnabas.cli.security.acl_explain import explain

        return await explain(options, out)
    if options.add and pattern_type(options) not in (PatternType.LITERAL, PatternType.PREFIXED):
        shown = pattern_type(options).name
        raise UsageError(f"A '--resource-pattern-type' value of '{shown}' is not valid when adding acls.")
    wanted = {} if options.list else wanted_acls(options)
    if options.add and not all(wanted.values()):
        raise UsageError(
            "You must specify one of: --allow-principal, --deny-principal when trying to add ACLs."
        )
    principals = [checked_principal(text) for text in options.principal or ()]
    async with cluster_from(options) as cluster:
        admin = Admin(cluster)
        if options.add:
            await add(wanted, admin, out)
        elif options.remove:
            await remove(wanted, admin, out, is_forced=options.force)
        else:
            await show(resources(options, needed=False), principals, admin, out)
    return 0


async def add(wanted: Acls, admin: Admin, out: Output) -> None:
    for resource, entries in wanted.items():
        known = set(await admin.describe_acls(filter_of(resource)))
        new = []
        for entry in entries:
            if rule_of(resource, entry) in known:
                out.line(f"Acl (pattern={resource}, entry={entry}) already exists.")
            else:
                new.append(entry)
        if not new:
            continue
        out.line(f"Adding ACLs for resource `{resource}`: \n " + lines_of(new) + "\n")
        rules = [rule_of(resource, entry) for entry in new]
        await admin.create_acls(rules)
        await wait_until(admin, filter_of(resource), there=rules)


async def remove(wanted: Acls, admin: Admin, out: Output, *, is_forced: bool) -> None:
    for resource, entries in wanted.items():
        if entries:
            question = (
                f"Are you sure you want to remove ACLs: \n {lines_of(entries)}\n "
                f"from resource filter `{resource}`? (y/n)"
            )
        else:
            question = f"Are you sure you want to delete all ACLs for resource filter `{resource}`? (y/n)"
        if not is_forced:
            out.line(question)
            out.flush()
            if sys.stdin.readline().strip().lower() != "y":
                continue
        removed = await admin.delete_acls(
            [filter_of(resource, entry) for entry in entries] if entries else [filter_of(resource)]
        )
        await wait_until(admin, filter_of(resource), gone=removed)


async def wait_until(
    admin: Admin, wanted: AclFilter, *, there: Iterable[Rule] = (), gone: Iterable[Rule] = ()
) -> None:
    """Wait until the broker that we ask has applied the change."""
    new, old = set(there), set(gone)

    async def is_visible() -> bool:
        found = set(await admin.describe_acls(wanted))
        return new <= found and not old & found

    if new or old:
        await wait_until_visible(admin, is_visible)


async def show(named: list[Resource], principals: list[str], admin: Admin, out: Output) -> None:
    rules: set[Rule] = set()
    for each in [filter_of(resource) for resource in named] or [EVERY_ACL]:
        rules |= set(await admin.describe_acls(each))
    acls: Acls = {}
    for rule in sorted(rules):
        resource, entry = split_rule(rule)
        acls.setdefault(resource, []).append(entry)
    if not principals:
        show_acls(acls, out)
    for principal in principals:
        out.line(f"ACLs for principal `{principal}`")
        own = {
            resource: [entry for entry in entries if entry.principal == principal]
            for resource, entries in acls.items()
        }
        show_acls(own, out)


def show_acls(acls: Acls, out: Output) -> None:
    for resource, entries in acls.items():
        if entries:
            out.line(f"Current ACLs for resource `{resource}`:\n{lines_of(entries)}\n")


def lines_of(entries: Iterable[Entry]) -> str:
    return "\n".join(f"\t{entry}" for entry in entries)
