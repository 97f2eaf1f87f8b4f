"""Folders in which applications keep their state beside the data: one layout for all.

In: the root of a place (a folder or URL), names of applications and queries. Out: paths. Does not know: what
is kept there.

    <root>/checkpoints/<application>/<query>/    of Spark's streaming queries, and of our own loops
    <root>/plans/<application>/<query>.json      what the state means (`upgrades`)
    <root>/catalogue/<application>/              running queries (`catalogue`)
    <root>/leases/<application>/                 which host may work (`lease`)
"""

from __future__ import annotations

import re

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
CHECKPOINTS = "checkpoints"
PLANS = "plans"
LEASES = "leases"


class WrongName(ValueError):
    """A name that cannot be a folder; the message says which."""


def checked(name: str) -> str:
    """The name, if it can be a folder on every kind of storage."""
    if not NAME.fullmatch(name):
        raise WrongName(
            f"{name!r} cannot name an application or query: use letters, digits, '.', '_' and '-', at most"
            " 200 of them, and begin with a letter or digit"
        )
    return name


def checkpoint_of(root: str, application: str, query: str) -> str:
    """The folder or URL for `checkpointLocation` of a query."""
    return "/".join((root.rstrip("/"), CHECKPOINTS, checked(application), checked(query)))


def plan_file(application: str, query: str) -> str:
    return f"{PLANS}/{checked(application)}/{checked(query)}.json"


def leases_of(root: str, application: str) -> str:
    return "/".join((root.rstrip("/"), LEASES, checked(application)))
