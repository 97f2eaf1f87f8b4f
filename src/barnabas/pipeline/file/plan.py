"""The plan: what a run would create, change and remove, compared with the file of the last run.

In: a pipeline, and the description that the last run left in `<state>/applied.json`. Out: changes with their
consequences, as lines for a person. Descriptions hold references to secrets, never values.
Does not know: Spark. A plan does not touch the lake.
"""

from __future__ import annotations

import dataclasses
import difflib
import enum
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from barnabas.engine.secrets import Secret, shown
from barnabas.pipeline.spec.durations import duration_text
from barnabas.pipeline.spec.model import Pipeline

FILE_NAME = "applied.json"
SHORT = 60
SECTIONS = ("sources", "staging", "trusted", "refined", "views")
WHOLE = ("serving", "spark", "maintenance", "retention_s", "lineage", "audit")
SINGULAR = {"sources": "source", "views": "view"}

FOLLOWS: Mapping[tuple[str, str], str] = {
    ("staging", "key"): "existing rows stay; `replay` deduplicates them again",
    ("staging", "within_s"): "rows that are there stay; `replay` deduplicates them again",
    ("staging", "source"): "rows of the old source stay; `replay` fills the table again",
    (
        "trusted",
        "rules",
    ): "new rows are checked by the new rules; `replay` checks old rows, `release` releases quarantined ones",
    ("trusted", "mask"): "existing rows stay as they are; `replay` masks them",
    ("trusted", "hash"): "existing rows stay as they are; `replay` hashes them",
    ("trusted", "encrypt"): "existing rows stay as they are; `replay` encrypts them",
    ("trusted", "tokenise"): "existing rows stay as they are; `replay` tokenises them",
    ("trusted", "key"): "existing rows keep the old key; `replay` uses the new one",
    ("trusted", "salt"): "existing rows keep the old hashes; `replay` makes new ones",
    ("sources", "schema"): "new rows are parsed with it; `replay` parses old rows from raw again",
    ("sources", "format"): "new rows are parsed with it; `replay` parses old rows from raw again",
    ("sources", "subscribe"): "the new topic is read from its start",
    (
        "sources",
        "bootstrap_servers",
    ): "positions are those of the old cluster, and valid only if the new one is a copy",
    ("refined", "sql"): "the next run recomputes it",
    ("refined", "python"): "the next run recomputes it",
    ("views", "sql"): "the next run recomputes it from its table",
    ("views", "keys"): "the next run recomputes it from its table",
    ("views", "measures"): "the next run recomputes it from its table",
    ("views", "source"): "the next run recomputes it from its table",
    ("serving", "store"): "views are recomputed into the new store",
}
REMOVED: Mapping[str, str] = {
    "sources": "is not read any more; its rows stay in the lake",
    "staging": "is not filled any more; its rows stay in the lake",
    "trusted": "is not filled any more; its rows stay in the lake",
    "refined": "is not computed any more; its rows stay in the lake",
    "views": "is not served any more",
}


class LakeOfAnotherPipeline(Exception):
    """The lake belongs to another pipeline; the message says which."""


class Sign(enum.StrEnum):
    CREATE = "+"
    CHANGE = "~"
    REMOVE = "-"


@dataclass(frozen=True, slots=True)
class Difference:
    """One changed field; None if it is absent."""

    field: str
    before: Any
    after: Any
    follows: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    sign: Sign
    section: str  # sources, staging, …
    name: str
    summary: str = ""
    differences: tuple[Difference, ...] = ()

    @property
    def title(self) -> str:
        kind = SINGULAR.get(self.section, self.section.removesuffix("_s"))
        return f"{kind} {self.name}" if self.name else kind


def described(pipeline: Pipeline) -> dict[str, Any]:
    """The pipeline as plain values, without the values of secrets and without defaults."""
    sections: dict[str, Any] = {"pipeline": pipeline.name}
    for section in SECTIONS:
        sections[section] = {each.name: plain(each, skip=("name",)) for each in getattr(pipeline, section)}
    for section in WHOLE:
        value = getattr(pipeline, section)
        sections[section] = plain(value) if dataclasses.is_dataclass(value) else named("", value)
    return sections


def plain(value: Any, skip: Sequence[str] = ()) -> dict[str, Any]:
    """The fields of a value that differ from their defaults."""
    found: dict[str, Any] = {"kind": type(value).__name__} if skip else {}
    for field in dataclasses.fields(value):
        if field.name in skip:
            continue
        now = named(field.name, getattr(value, field.name))
        if now != named(field.name, default_of(field)):
            found[field.name] = now
    return found


def default_of(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return None if field.default is dataclasses.MISSING else field.default


def named(name: str, value: Any) -> Any:
    """The plain form of a field's value."""
    if isinstance(value, Secret):
        return value.template  # references only
    if dataclasses.is_dataclass(value):
        return plain(value)
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): named(str(key), each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [named(name, each) for each in value]
    if isinstance(value, Path):
        return str(value)
    return shown(name, value) if isinstance(value, str) else value


def read_applied(folder: Path) -> dict[str, Any] | None:
    """The description of the last run; None if there was none."""
    try:
        found = json.loads((folder / FILE_NAME).read_text())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise LakeOfAnotherPipeline(f"{folder / FILE_NAME} cannot be understood: {error}") from None
    return found if isinstance(found, dict) else None


def apply(pipeline: Pipeline, folder: Path) -> list[Change]:
    """Save the description of this run; the changes since the last one."""
    found = changes(read_applied(folder), described(pipeline))
    folder.mkdir(parents=True, exist_ok=True)
    beside = folder / f"{FILE_NAME}.new"
    beside.write_text(json.dumps(described(pipeline), indent=1, ensure_ascii=False))
    beside.replace(folder / FILE_NAME)
    return found


def changes(before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> list[Change]:
    if before is not None and before.get("pipeline") != after["pipeline"]:
        raise LakeOfAnotherPipeline(
            f"this lake belongs to the pipeline {before.get('pipeline')!r}, not to {after['pipeline']!r}:"
            " give this one a lake of its own, or `destroy` the other one first"
        )
    old: Mapping[str, Any] = before or {}
    found: list[Change] = []
    for section in SECTIONS:
        found += section_changes(section, old.get(section, {}), after[section])
    found = [with_reach_of_replay(change, after["retention_s"].get("raw")) for change in found]
    for section in WHOLE:
        differences = differing(section, old.get(section, {}), after[section])
        if differences:
            found.append(Change(Sign.CREATE if before is None else Sign.CHANGE, section, "", "", differences))
    return found


def with_reach_of_replay(change: Change, raw_s: float | None) -> Change:
    """Say how far back a `replay` reaches, where retention removes rows from raw."""
    if raw_s is None:
        return change
    reach = f" (raw keeps {duration_text(raw_s)}: rows that it has removed stay as they are)"
    return dataclasses.replace(
        change,
        differences=tuple(
            dataclasses.replace(each, follows=each.follows + reach) if "`replay`" in each.follows else each
            for each in change.differences
        ),
    )


def section_changes(section: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Change]:
    found = []
    for name, value in new.items():
        if name not in old:
            found.append(Change(Sign.CREATE, section, name, summary(value)))
        elif differences := differing(section, old[name], value):
            found.append(Change(Sign.CHANGE, section, name, "", differences))
    for name, value in old.items():
        if name not in new:
            found.append(Change(Sign.REMOVE, section, name, REMOVED.get(section, summary(value))))
    return found


def differing(section: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[Difference, ...]:
    return tuple(
        Difference(name, old.get(name), new.get(name), FOLLOWS.get((section, name), ""))
        for name in dict.fromkeys((*old, *new))
        if old.get(name) != new.get(name)
    )


def summary(value: Mapping[str, Any]) -> str:
    shown_fields = [f"{name}: {brief(each)}" for name, each in value.items() if name != "kind"]
    return ", ".join(shown_fields)


def whole(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return " ".join(text.split())


def brief(value: Any) -> str:
    text = whole(value)
    return text if len(text) <= SHORT else text[: SHORT - 1] + "…"


def lines(found: Sequence[Change]) -> list[str]:
    """The changes as lines for a person, like a diff."""
    if not found:
        return ["Nothing to do: the lake is as the file says."]
    width = max(len(change.title) for change in found)
    shown_lines: list[str] = []
    for change in found:
        shown_lines.append(f"{change.sign} {change.title:<{width}}  {change.summary}".rstrip())
        for difference in change.differences:
            shown_lines += difference_lines(difference, change.sign)
    counts = {sign: sum(change.sign is sign for change in found) for sign in Sign}
    shown_lines.append("")
    shown_lines.append(
        f"{counts[Sign.CREATE]} to create, {counts[Sign.CHANGE]} to change, {counts[Sign.REMOVE]} to remove."
    )
    return shown_lines


def difference_lines(difference: Difference, sign: Sign) -> list[str]:
    name, before, after = difference.field, difference.before, difference.after
    if isinstance(before, str) and isinstance(after, str) and ("\n" in before or len(before) > SHORT):
        compared = difflib.ndiff(before.splitlines(), after.splitlines())
        found = [f"    {name}:", *(f"      {line}" for line in compared if line[:1] in "+- ")]
    elif isinstance(before, list) and isinstance(after, list):
        found = [f"    {name}:"]
        found += [f"      - {whole(each)}" for each in before if each not in after]
        found += [f"      + {whole(each)}" for each in after if each not in before]
    elif before is None:
        found = [f"    {name}: {whole(after)}"]
    elif after is None or len(whole(before)) + len(whole(after)) <= SHORT:
        found = [f"    {name}: {whole(before)} -> {'(default)' if after is None else whole(after)}"]
    else:
        found = [f"    {name}:", f"      - {whole(before)}", f"      + {whole(after)}"]
    if difference.follows and sign is Sign.CHANGE:
        found.append(f"      ! {difference.follows}")
    return found
