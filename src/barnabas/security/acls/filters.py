"""Filters of DescribeAcls and DeleteAcls: which ACLs they match.

In: a filter's fields, where ANY and None match everything. Out: whether a rule matches. The pattern type
MATCH finds every rule that covers a name: literal, prefixed, or `*`. Does not know: requests.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.security.acls.vocabulary import WILDCARD, Operation, PatternType, Permission, ResourceType


class AclFilter(NamedTuple):
    resource_type: int = ResourceType.ANY
    name: str | None = None
    pattern_type: int = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: int = Operation.ANY
    permission: int = Permission.ANY

    def matches(
        self,
        resource_type: int,
        name: str,
        pattern_type: int,
        principal: str,
        host: str,
        operation: int,
        permission: int,
    ) -> bool:
        return (
            self.resource_type in (ResourceType.ANY, resource_type)
            and self.operation in (Operation.ANY, operation)
            and self.permission in (Permission.ANY, permission)
            and (self.principal is None or self.principal == principal)
            and (self.host is None or self.host == host)
            and self._matches_pattern(name, pattern_type)
        )

    def _matches_pattern(self, name: str, pattern_type: int) -> bool:
        wanted = self.pattern_type
        if wanted not in (PatternType.ANY, PatternType.MATCH, pattern_type):
            return False
        if self.name is None:
            return True
        if wanted != PatternType.MATCH:
            return self.name == name
        if pattern_type == PatternType.PREFIXED:
            return self.name.startswith(name)
        return name in (self.name, WILDCARD)
