"""delegation-tokens: create, describe, renew and expire delegation tokens.

In: options. Out: the lines of kafka-delegation-tokens. Dates are in the local time zone. Without owners,
--describe shows every token that the caller may see; Kafka's tool shows none.
"""

import argparse
import base64
import binascii
import time
from collections.abc import Iterable

from barnabas.cli.frame.connecting import add_bootstrap, add_command_config, cluster_from
from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError, ToolParser, UsageError
from barnabas.cli.frame.visibility import wait_until_visible
from barnabas.cli.security.acl_options import checked_principal
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.tokens import DelegationToken
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.security.principal import Principal, parse_principal

EXAMPLES = (
    "--create --max-life-time-period -1 --renewer-principal User:ann --command-config client.properties",
    "--describe --owner-principal User:ann --command-config client.properties",
    "--renew --renew-time-period -1 --hmac HMAC --command-config client.properties",
    "--expire --expiry-time-period -1 --hmac HMAC --command-config client.properties",
)
ACTIONS = ("create", "renew", "expire", "describe")
NEEDED = {
    "create": ("max-life-time-period",),
    "renew": ("hmac", "renew-time-period"),
    "expire": ("hmac", "expiry-time-period"),
}
REFUSED = {
    "create": ("hmac", "renew-time-period", "expiry-time-period"),
    "renew": ("renewer-principal", "max-life-time-period", "expiry-time-period", "owner-principal"),
    "expire": ("renew-time-period", "max-life-time-period", "renewer-principal", "owner-principal"),
    "describe": ("renewer-principal", "renew-time-period", "hmac", "expiry-time-period"),
}
COLUMNS = "{:<15} {:<30} {:<15} {:<15} {:<25} {:<15} {:<15} {:<15}"
REASONS = {  # a response has no text of its own
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: "Delegation Token feature is not enabled.",
    ErrorCode.DELEGATION_TOKEN_NOT_FOUND: "Delegation Token is not found on server.",
    ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH: "Specified Principal is not valid Owner/Renewer.",
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: (
        "Delegation Token requests are not allowed on PLAINTEXT/1-way SSL channels and on delegation token "
        "authenticated channels."
    ),
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: "Delegation Token authorization failed.",
    ErrorCode.DELEGATION_TOKEN_EXPIRED: "Delegation Token is expired.",
}
HEADER = ("TOKENID", "HMAC", "OWNER", "REQUESTER", "RENEWERS", "ISSUEDATE", "EXPIRYDATE", "MAXDATE")


def add_arguments(parser: ToolParser) -> None:
    add_bootstrap(parser)
    add_command_config(parser)
    actions = parser.add_argument_group("actions (exactly one)")
    actions.add_argument("--create", action="store_true", help="create a token")
    actions.add_argument("--renew", action="store_true", help="let a token live longer")
    actions.add_argument("--expire", action="store_true", help="let a token end")
    actions.add_argument("--describe", action="store_true", help="show the tokens that you may see")
    parser.add_argument(
        "--owner-principal", action="append", metavar="User:NAME", help="owner of tokens; default: you"
    )
    parser.add_argument(
        "--renewer-principal", action="append", metavar="User:NAME", help="may renew the new token"
    )
    parser.add_argument(
        "--max-life-time-period", type=int, metavar="MS", help="longest life of the new token; -1: default"
    )
    parser.add_argument("--renew-time-period", type=int, metavar="MS", help="-1: the broker's default")
    parser.add_argument("--expiry-time-period", type=int, metavar="MS", help="-1: at once")
    parser.add_argument("--hmac", metavar="TEXT", help="the HMAC of the token, in base64")


async def run(options: argparse.Namespace, out: Output) -> None:
    check_options(options)
    try:
        async with cluster_from(options) as cluster:
            await act(options, Admin(cluster), out)
    except KafkaError as error:
        raise ToolError(REASONS.get(error.code, error.message)) from None


async def act(options: argparse.Namespace, admin: Admin, out: Output) -> None:
    if options.create:
        await create(options, admin, out)
    elif options.renew:
        out.line(
            f"Calling renew token operation with hmac :{options.hmac} , renew-time-period "
            f":{options.renew_time_period}"
        )
        expiry = await admin.renew_token(hmac_of(options.hmac), options.renew_time_period)
        out.line(f"Completed renew operation. New expiry date : {date(expiry)}")
    elif options.expire:
        out.line(
            f"Calling expire token operation with hmac :{options.hmac} , expire-time-period "
            f":{options.expiry_time_period}"
        )
        expiry = await admin.expire_token(hmac_of(options.hmac), options.expiry_time_period)
        out.line(f"Completed expire operation. New expiry date : {date(expiry)}")
    else:
        await describe(options, admin, out)


def check_options(options: argparse.Namespace) -> None:
    def is_given(name: str) -> bool:
        return getattr(options, name.replace("-", "_")) not in (None, False)

    if options.bootstrap_server is None:
        raise UsageError('Missing required argument "[bootstrap-server]"')
    if options.command_config is None:
        raise UsageError('Missing required argument "[command-config]"')
    if [is_given(action) for action in ACTIONS].count(True) != 1:
        raise UsageError("Command must include exactly one action: --create, --renew, --expire or --describe")
    [action] = [action for action in ACTIONS if is_given(action)]
    for name in NEEDED.get(action, ()):
        if not is_given(name):
            raise UsageError(f'Missing required argument "[{name}]"')
    for name in REFUSED[action]:
        if is_given(name):
            raise UsageError(f'Option "[{action}]" can\'t be used with option "[{name}]"')


async def create(options: argparse.Namespace, admin: Admin, out: Output) -> None:
    owners = principals(options.owner_principal)
    renewers = principals(options.renewer_principal)
    out.line(
        f"Calling create token operation with renewers :[{listed(renewers)}] , max-life-time-period "
        f":{options.max_life_time_period}"
    )
    token = await admin.create_token(
        renewers, owner=owners[0] if owners else None, max_lifetime_ms=options.max_life_time_period
    )
    await wait_until_visible(admin, lambda: is_visible(admin, token))
    out.line(f"Created delegation token with tokenId : {token.token_id}\n")
    show([token], out)


async def is_visible(admin: Admin, token: DelegationToken) -> bool:
    """Whether the broker that we ask knows the token; the controller has made it a moment before."""
    return any(each.token_id == token.token_id for each in await admin.describe_tokens([token.owner]))


async def describe(options: argparse.Namespace, admin: Admin, out: Output) -> None:
    owners = principals(options.owner_principal)
    if owners:
        out.line(f"Calling describe token operation for owners: [{listed(owners)}]")
    else:
        out.line("Calling describe token operation for current user.")
    tokens = await admin.describe_tokens(owners or None)
    out.line(f"Total number of tokens : {len(tokens)}")
    show(tokens, out)


def show(tokens: Iterable[DelegationToken], out: Output) -> None:
    out.line(COLUMNS.format(*HEADER))
    for token in tokens:
        row = COLUMNS.format(
            token.token_id,
            base64.b64encode(token.hmac).decode(),
            str(token.owner),
            str(token.requester),
            f"[{listed(token.renewers)}]",
            date(token.issue_ms),
            date(token.expiry_ms),
            date(token.max_ms),
        )
        out.line(f"\n{row.rstrip()}")


def principals(texts: Iterable[str] | None) -> list[Principal]:
    return [parse_principal(checked_principal(text)) for text in texts or ()]


def listed(some: Iterable[Principal]) -> str:
    return ", ".join(map(str, some))


def hmac_of(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ToolError("--hmac is not base64: copy it from the column HMAC") from None


def date(milliseconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M", time.localtime(milliseconds / 1000))
