"""Rules for topic names, and names that collide in metrics because `.` and `_` are the same there.

In: a name. Out: Kafka's error message for an invalid one, and the form in which colliding names are equal.
Does not know: which topics exist.
"""

from __future__ import annotations

import re

NAME_LENGTH_MAX = 249
_ALLOWED = re.compile(r"[a-zA-Z0-9._-]+")
CLUSTER_METADATA_TOPIC = "__cluster_metadata"


def reason_invalid(name: str) -> str | None:
    """Why a name is invalid, as a sentence; None for a valid one."""
    if not name:
        reason = "the empty string is not allowed"
    elif name in (".", ".."):
        reason = f"'{name}' is not allowed"
    elif len(name) > NAME_LENGTH_MAX:
        reason = f"the length of '{name}' is longer than the max allowed length {NAME_LENGTH_MAX}"
    elif _ALLOWED.fullmatch(name) is None:
        reason = f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    else:
        return None
    return f"Topic name is invalid: {reason}"


def can_collide(name: str) -> bool:
    return "." in name or "_" in name


def collision_form(name: str) -> str:
    return name.replace(".", "_")
