"""The index of rules: finds the rules that cover a resource for a principal without looking at the others.

In: rules, added and removed one by one or all of a source at once. Out: rules by resource and principal. A
lookup takes one step for the literal name, one for `*`, and one for each length that prefixes have.
Does not know: hosts, operations, which rule wins.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from barnabas.security.acls.rules import Rule
from barnabas.security.acls.vocabulary import ANY_USER, WILDCARD, PatternType

Bucket = dict[str, dict[Rule, int]]
"""The rules of one pattern by principal, each with the number of times it was added."""


class OneType:
    """Rules of one resource type."""

    __slots__ = ("lengths", "literal", "prefixed", "sizes")

    def __init__(self) -> None:
        self.literal: dict[str, Bucket] = {}
        self.prefixed: dict[str, Bucket] = {}
        self.sizes: Counter[int] = Counter()  # how many prefixes have this length
        self.lengths: list[int] = []  # of prefixes, ascending

    def buckets(self, name: str) -> Iterator[Bucket]:
        """The patterns that cover a name."""
        literal = self.literal
        found = literal.get(name)
        if found is not None:
            yield found
        if name != WILDCARD and (found := literal.get(WILDCARD)) is not None:
            yield found
        prefixed, size = self.prefixed, len(name)
        for length in self.lengths:
            if length > size:
                break
            found = prefixed.get(name[:length])
            if found is not None:
                yield found

    def add(self, rule: Rule) -> None:
        by_name = self._by_name(rule)
        bucket = by_name.get(rule.name)
        if bucket is None:
            bucket = by_name[rule.name] = {}
            if by_name is self.prefixed:
                self._count(len(rule.name), 1)
        times = bucket.setdefault(rule.principal, {})
        times[rule] = times.get(rule, 0) + 1

    def remove(self, rule: Rule) -> None:
        by_name = self._by_name(rule)
        bucket = by_name.get(rule.name, {})
        times = bucket.get(rule.principal, {})
        if rule not in times:
            return
        times[rule] -= 1
        if not times[rule]:
            del times[rule]
        if not times:
            del bucket[rule.principal]
        if not bucket:
            del by_name[rule.name]
            if by_name is self.prefixed:
                self._count(len(rule.name), -1)

    def _by_name(self, rule: Rule) -> dict[str, Bucket]:
        return self.prefixed if rule.pattern_type == PatternType.PREFIXED else self.literal

    def _count(self, length: int, change: int) -> None:
        self.sizes[length] += change
        if not self.sizes[length]:
            del self.sizes[length]
        if len(self.sizes) != len(self.lengths):
            self.lengths = sorted(self.sizes)


class RuleIndex:
    def __init__(self) -> None:
        self._types: dict[int, OneType] = {}
        self._of_sources: dict[str, tuple[Rule, ...]] = {}

    def add(self, rule: Rule) -> None:
        found = self._types.get(rule.resource_type)
        if found is None:
            found = self._types[rule.resource_type] = OneType()
        found.add(rule)

    def remove(self, rule: Rule) -> None:
        """Remove a rule that was added; nothing happens if it was not."""
        found = self._types.get(rule.resource_type)
        if found is not None:
            found.remove(rule)

    def replace_source(self, source: str, rules: Iterable[Rule]) -> None:
        """Replace all rules that came from a source other than ACLs, such as roles."""
        for rule in self._of_sources.pop(source, ()):
            self.remove(rule)
        kept = tuple(rules)
        for rule in kept:
            self.add(rule)
        if kept:
            self._of_sources[source] = kept

    def covering(self, resource_type: int, name: str, principal: str) -> tuple[list[Rule], bool]:
        """The rules for a principal that cover a resource, and whether any rule at all covers it."""
        rules: list[Rule] = []
        is_covered = False
        found = self._types.get(resource_type)
        if found is not None:
            for bucket in found.buckets(name):
                is_covered = True
                if principal in bucket:
                    rules += bucket[principal]
                if ANY_USER in bucket and principal != ANY_USER:
                    rules += bucket[ANY_USER]
        return rules, is_covered

    def of_principal(self, resource_type: int, principal: str) -> Iterator[Rule]:
        """All rules of a resource type for a principal. Looks at every pattern of the type."""
        found = self._types.get(resource_type)
        if found is None:
            return
        for by_name in (found.literal, found.prefixed):
            for bucket in by_name.values():
                yield from bucket.get(principal, ())
                if principal != ANY_USER:
                    yield from bucket.get(ANY_USER, ())
