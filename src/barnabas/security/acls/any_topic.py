"""Any resource at all: whether some Allow rule is left after the Deny rules (KIP-679).

In: the rules of one caller for one operation, of one resource type. Out: the rule that decides. An Allow is
dominated by a Deny for the same name, or by a Deny prefix of it: then it allows nothing.
Does not know: principals, hosts, operations.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.security.acls.rules import Rule
from barnabas.security.acls.vocabulary import WILDCARD, PatternType, Permission


def allows_any(rules: Sequence[Rule]) -> Rule | None:
    """The rule that allows or denies some resource; None if no rule allows any."""
    denied_names: set[str] = set()
    denied_prefixes: set[str] = set()
    allows: list[Rule] = []
    for rule in rules:
        if rule.permission == Permission.ALLOW:
            allows.append(rule)
        elif rule.pattern_type == PatternType.PREFIXED:
            denied_prefixes.add(rule.name)
        elif rule.name == WILDCARD:
            return rule
        else:
            denied_names.add(rule.name)
    lengths = sorted({len(prefix) for prefix in denied_prefixes})
    for rule in allows:
        name = rule.name
        if rule.pattern_type != PatternType.PREFIXED:
            if name == WILDCARD:
                return rule
            if name in denied_names:
                continue
        if not any(name[:length] in denied_prefixes for length in lengths if length <= len(name)):
            return rule
    return None
