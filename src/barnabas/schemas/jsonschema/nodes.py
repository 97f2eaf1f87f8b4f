"""Schemas as nodes that can be compared: one kind for each node, and combinations of nodes.

A JSON schema may mix keywords for texts, numbers, objects and so on. Such a schema becomes a combination by
`allOf` of nodes that have one kind each; a list of types becomes one by `anyOf`. References are followed.
In: the tree of a schema. Out: its node; nodes inside it are made when somebody asks for them.
Does not know: comparing.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from barnabas.schemas.jsonschema.drafts import DRAFTS, Draft
from barnabas.schemas.jsonschema.references import CHAIN_MAX, Documents, Scope
from barnabas.schemas.jsonschema.texts import Json, frozen
from barnabas.schemas.model import InvalidSchema


class Kind(Enum):
    EMPTY = "empty"  # also `true`
    FALSE = "false"
    STRING = "string"
    NUMBER = "number"  # also `integer`
    BOOLEAN = "boolean"
    NULL = "null"
    OBJECT = "object"
    ARRAY = "array"
    ENUM = "enum"
    CONST = "const"
    NOT = "not"
    CONDITIONAL = "if"
    COMBINED = "combined"


ALL_OF, ANY_OF, ONE_OF = "allOf", "anyOf", "oneOf"
KIND_OF_TYPE = {
    "string": Kind.STRING,
    "number": Kind.NUMBER,
    "integer": Kind.NUMBER,
    "boolean": Kind.BOOLEAN,
    "null": Kind.NULL,
    "object": Kind.OBJECT,
    "array": Kind.ARRAY,
}
# Keywords that say something about values of one type, with the first draft that has them.
KEYWORDS: dict[Kind, dict[str, int]] = {
    Kind.ARRAY: {
        "items": 4,
        "additionalItems": 4,
        "minItems": 4,
        "maxItems": 4,
        "uniqueItems": 4,
        "contains": 6,
        "unevaluatedItems": 2019,
        "prefixItems": 2020,
    },
    Kind.OBJECT: {
        "properties": 4,
        "required": 4,
        "minProperties": 4,
        "maxProperties": 4,
        "dependencies": 4,
        "patternProperties": 4,
        "additionalProperties": 4,
        "propertyNames": 6,
        "dependentRequired": 2019,
        "dependentSchemas": 2019,
        "unevaluatedProperties": 2019,
    },
    Kind.NUMBER: {
        "minimum": 4,
        "maximum": 4,
        "multipleOf": 4,
        "exclusiveMinimum": 4,
        "exclusiveMaximum": 4,
    },
    Kind.STRING: {"minLength": 4, "maxLength": 4, "pattern": 4, "format": 4},
    Kind.CONDITIONAL: {"if": 7, "then": 7, "else": 7},
}
DROPPED = {"dependencies": 2019, "additionalItems": 2020}  # the first draft without the keyword
# The keywords of a draft, by kind.
OF_DRAFT = {
    draft.number: {
        kind: frozenset(
            name
            for name, since in keywords.items()
            if since <= draft.number < DROPPED.get(name, draft.number + 1)
        )
        for kind, keywords in KEYWORDS.items()
    }
    for draft in DRAFTS
}


class Node:
    """A schema of one kind. A node is equal only to itself."""

    __slots__ = ("_members", "_parts", "criterion", "is_integer", "kind", "nodes", "raw", "scope")

    def __init__(self, nodes: Nodes, kind: Kind, raw: dict[str, Json], scope: Scope) -> None:
        self.nodes = nodes
        self.kind = kind
        self.raw = raw  # all keywords of the schema, also those of other kinds
        self.scope = scope
        self.is_integer = False
        self.criterion = ""  # of a combination
        self._parts: list[Node] = []  # members that are no schemas of their own
        self._members: list[Node] | None = None

    def __repr__(self) -> str:
        return f"Node({self.kind.value}, {self.raw})"

    @property
    def draft(self) -> Draft:
        return self.scope.draft

    def inner(self, schema: Json) -> Node:
        """The node of a schema inside this one."""
        return self.nodes.node(schema, self.scope)

    def members(self) -> list[Node]:
        """The members of a combination, each schema once. References among them are followed only now."""
        if self._members is None:
            reference = reference_of(self.raw, self.draft)
            schemas = self.raw.get(self.criterion)
            if self._parts and self.criterion == ALL_OF and reference is not None:
                self._members = [self.nodes.target(reference, self.scope), *self._parts]
            elif self._parts:
                self._members = self._parts
            else:
                assert isinstance(schemas, list)  # the draft says so
                different = {frozen(schema): schema for schema in schemas}
                self._members = [self.inner(schema) for schema in different.values()]
        return self._members


class Nodes:
    """The nodes of one schema and of the schemas that it refers to, each made once."""

    def __init__(self, tree: Json, documents: Documents) -> None:
        self._documents = documents
        self._made: dict[int, Node] = {}  # by the identity of the tree's objects, which live as long
        self.tree = tree

    def root(self) -> Node:
        return self.node(self.tree, self._documents.root)

    def node(self, schema: Json, scope: Scope) -> Node:
        """The node of a schema in some scope. References are followed to what they mean."""
        followed: list[int] = []
        while isinstance(schema, dict):
            made = self._made.get(id(schema))
            if made is not None:
                break
            scope = scope.entered(schema)
            reference = reference_of(schema, scope.draft)
            if reference is None or self._has_siblings(schema, scope):
                made = self._build(schema, scope)
                break
            followed.append(id(schema))
            if len(followed) > CHAIN_MAX:
                raise InvalidSchema(f"The reference {reference[:200]!r} leads back to itself")
            schema, scope = self._documents.target(reference, scope)
        else:
            made = Node(self, Kind.EMPTY if schema else Kind.FALSE, {}, scope)
        assert made is not None
        for identity in followed:
            self._made[identity] = made
        return made

    def target(self, reference: str, scope: Scope) -> Node:
        return self.node(*self._documents.target(reference, scope))

    def _has_siblings(self, schema: dict[str, Json], scope: Scope) -> bool:
        """Whether keywords beside `$ref` count: they do from draft 2019-09 on."""
        return scope.draft.number >= 2019 and bool(next(self._parts(schema, scope), None))

    def _build(self, schema: dict[str, Json], scope: Scope) -> Node:
        parts = list(self._parts(schema, scope))
        if len(parts) > 1 or reference_of(schema, scope.draft) is not None:
            made = self._combination(ALL_OF, parts, schema, scope)
        else:
            made = parts[0] if parts else Node(self, Kind.EMPTY, schema, scope)
        if schema.get("nullable") is True:
            made = self._combination(ANY_OF, [made, Node(self, Kind.NULL, schema, scope)], schema, scope)
        self._made[id(schema)] = made
        return made

    def _parts(self, schema: dict[str, Json], scope: Scope) -> Iterator[Node]:
        """One node for each kind that the keywords of a schema speak about."""
        if "enum" in schema:
            yield Node(self, Kind.ENUM, schema, scope)
        for criterion in (ALL_OF, ANY_OF, ONE_OF):
            if criterion in schema:
                node = Node(self, Kind.COMBINED, schema, scope)
                node.criterion = criterion
                yield node
        if "not" in schema:
            yield Node(self, Kind.NOT, schema, scope)
        if "const" in schema and scope.draft.number >= 6:
            yield Node(self, Kind.CONST, schema, scope)
        named: set[Kind] = set()
        types = schema.get("type")
        if isinstance(types, str):
            yield self._typed(types, schema, scope)
            named.add(KIND_OF_TYPE[types])
        elif isinstance(types, list):
            typed = [self._typed(str(name), schema, scope) for name in types]
            named.update(node.kind for node in typed)
            yield self._combination(ANY_OF, typed, schema, scope)
        for kind, keywords in OF_DRAFT[scope.draft.number].items():
            if kind not in named and not keywords.isdisjoint(schema):
                yield Node(self, kind, schema, scope)

    def _typed(self, name: str, schema: dict[str, Json], scope: Scope) -> Node:
        node = Node(self, KIND_OF_TYPE[name], schema, scope)
        node.is_integer = name == "integer"
        return node

    def _combination(self, criterion: str, parts: list[Node], schema: dict[str, Json], scope: Scope) -> Node:
        node = Node(self, Kind.COMBINED, schema, scope)
        node.criterion = criterion
        node._parts = parts
        return node


def reference_of(schema: dict[str, Json], draft: Draft) -> str | None:
    """The text of `$ref`, or of the references that newer drafts have for recursive schemas."""
    for key, since in (("$ref", 4), ("$recursiveRef", 2019), ("$dynamicRef", 2020)):
        found = schema.get(key)
        if isinstance(found, str) and draft.number >= since:
            return found
    return None
