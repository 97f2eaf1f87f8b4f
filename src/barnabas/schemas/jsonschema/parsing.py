"""JSON schemas, parsed and checked.

In: a schema's text, and the texts of the schemas that it refers to. Out: a `JsonSchema`, or InvalidSchema.
Does not know: subjects, versions, ids, HTTP.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import urldefrag

from barnabas.schemas.jsonschema import comparing
from barnabas.schemas.jsonschema.differences import COMPATIBLE, Difference, incompatibility
from barnabas.schemas.jsonschema.drafts import check, children, draft_of, subschemas
from barnabas.schemas.jsonschema.nodes import Nodes, reference_of
from barnabas.schemas.jsonschema.references import Documents, Scope
from barnabas.schemas.jsonschema.texts import Json, read, written
from barnabas.schemas.model import (
    CompatibilityPolicy,
    Incompatibility,
    InvalidSchema,
    Reference,
    ResolvedReference,
    SchemaType,
)


def parse(text: str, references: Sequence[ResolvedReference] = (), *, strict: bool = False) -> JsonSchema:
    """Parse and check a schema. `strict` changes nothing: the drafts leave no choice."""
    if not text.strip():
        raise InvalidSchema("The schema is empty")
    tree = read(text)
    draft = draft_of(tree)
    check(tree, draft)
    referenced = {}
    for found in references:
        name = found.reference.name
        referenced[name] = read(found.text)
        check(referenced[name], draft_of(referenced[name], draft), name)
    documents = Documents(tree, draft, referenced)
    nodes = Nodes(tree, documents)
    check_references(nodes, documents, referenced)
    of_others = {inner for found in references for inner in found.references}
    used = {
        urldefrag(reference).url
        for _, schema in subschemas(tree, draft)
        if (reference := reference_of(schema, draft))
    }
    own = tuple(
        found.reference
        for found in references
        if found.reference not in of_others or found.reference.name in used
    )
    return JsonSchema(written(tree), own, nodes)


def check_references(nodes: Nodes, documents: Documents, referenced: Mapping[str, Json]) -> None:
    """InvalidSchema unless every reference leads to a schema, and not only back to itself.

    A reference may lead to a place where the draft expects no schema, such as an object of a keyword that it
    does not know. That place is checked then.
    """
    draft = documents.root.draft
    checked = {id(schema) for _, schema in subschemas(nodes.tree, draft)}
    for document in referenced.values():
        checked.update(id(schema) for _, schema in subschemas(document, draft_of(document, draft)))
    walked: set[int] = set()
    waiting: list[tuple[str, Json, Scope]] = [("#", nodes.tree, documents.root)]
    while waiting:
        path, schema, outer = waiting.pop()
        if not isinstance(schema, dict) or id(schema) in walked:
            continue
        walked.add(id(schema))
        scope = outer.entered(schema)
        reference = reference_of(schema, scope.draft)
        if reference is not None:
            try:
                target, its_scope = documents.target(reference, scope)
            except InvalidSchema as error:
                raise InvalidSchema(f"{path}/$ref: {error}") from None
            if isinstance(target, dict) and id(target) not in checked:
                check(target, its_scope.draft, reference)
                checked.update(id(inner) for _, inner in subschemas(target, its_scope.draft))
            nodes.node(schema, outer)
            waiting.append((reference, target, its_scope))
        waiting.extend((f"{path}/{inner}", child, scope) for inner, child in children(schema, scope.draft))


@dataclass(frozen=True, slots=True)
class JsonSchema:
    """A parsed JSON schema. Two are equal if their canonical texts and references are."""

    canonical: str
    references: tuple[Reference, ...]
    nodes: Nodes = field(compare=False, repr=False)

    @property
    def schema_type(self) -> SchemaType:
        return SchemaType.JSON

    @property
    def name(self) -> str | None:
        title = self.nodes.tree.get("title") if isinstance(self.nodes.tree, dict) else None
        return title if isinstance(title, str) else None

    def normalized(self) -> JsonSchema:
        # Java sorts by subject and version alone, and keeps the order of those that are equal by that.
        references = sorted(dict.fromkeys(self.references), key=lambda one: (one.subject, one.version))
        return replace(self, canonical=written(self.nodes.tree, in_order=True), references=tuple(references))

    def formatted(self, form: str) -> str:
        return self.canonical

    def field_names(self) -> frozenset[str]:
        properties = self.nodes.root().raw.get("properties")
        return frozenset(properties) if isinstance(properties, dict) else frozenset()

    def differences(self, writer: JsonSchema, policy: CompatibilityPolicy) -> list[Difference]:
        """All that changed from the writer's schema to this one, compatible changes too."""
        return comparing.differences(writer.nodes.root(), self.nodes.root(), COMPATIBLE[policy])

    def incompatibilities(self, writer: JsonSchema, policy: CompatibilityPolicy) -> list[Incompatibility]:
        if self.canonical == writer.canonical and self.references == writer.references:
            return []
        found = self.differences(writer, policy)
        return [incompatibility(one) for one in found if one.kind not in COMPATIBLE[policy]]
