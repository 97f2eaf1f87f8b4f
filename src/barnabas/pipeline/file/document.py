"""A YAML document with the line of everything in it.

In: text. Out: sections, whose values are read by name and kind. A value that is missing, of another kind,
given twice or unknown becomes a problem with its line. Does not know: what a pipeline is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import Any, TypeVar

import yaml
from yaml.constructor import SafeConstructor
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from barnabas.pipeline.file.problems import Problem, did_you_mean

E = TypeVar("E", bound=StrEnum)
T = TypeVar("T")
KINDS = {MappingNode: "names with values", SequenceNode: "a list", ScalarNode: "a single value"}
DEPTH_MAX = 40


class Document:
    """Problems and lines that were found while reading a document."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.lines: dict[str, int] = {}

    def wrong(self, path: str, message: str, hint: str = "", node: Node | None = None) -> None:
        self.problems.append(Problem(path, message, hint, line_of(node)))

    def root(self, text: str) -> Section | None:
        try:
            node = yaml.compose(text, Loader=yaml.SafeLoader)
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            what = getattr(error, "problem", None) or str(error)
            self.problems.append(Problem("file", f"is not YAML: {what}", "", mark.line + 1 if mark else 0))
            return None
        except RecursionError:
            self.problems.append(Problem("file", "is nested too deeply"))
            return None
        if node is None:
            self.wrong("file", "is empty", "begin with name, lake and sources")
            return None
        if not isinstance(node, MappingNode):
            self.wrong("file", f"must hold names with values, this is {KINDS[type(node)]}", node=node)
            return None
        return Section(self, node, "")


def line_of(node: Node | None) -> int:
    return node.start_mark.line + 1 if node is not None and node.start_mark is not None else 0


def plain(node: Node) -> Any:
    """The value of a node: number, text, list and so on."""
    try:
        return SafeConstructor().construct_document(node)
    except yaml.YAMLError:
        return None


class Section:
    """Names with values. Read the known names, then call `finish`, which reports all others."""

    def __init__(self, document: Document, node: MappingNode, path: str) -> None:
        self.document = document
        self.path = path
        self.node = node
        self.asked: dict[str, None] = {}
        self.values: dict[str, Node] = {}
        for key, value in node.value:
            if not isinstance(key, ScalarNode):
                document.wrong(path or "file", "a name must be a single word", node=key)
                continue
            if key.value in self.values:
                document.wrong(self.at(key.value), "is given twice", "keep one of them", key)
                continue
            document.lines[self.at(key.value)] = line_of(key)
            self.values[key.value] = value

    def at(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def wrong(self, name: str, message: str, hint: str = "") -> None:
        self.document.wrong(
            self.at(name) if name else self.path, message, hint, self.values.get(name, self.node)
        )

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def names(self) -> Iterator[str]:
        self.asked.update(dict.fromkeys(self.values))
        yield from self.values

    def _get(self, name: str) -> Node | None:
        self.asked[name] = None
        node = self.values.get(name)
        if isinstance(node, ScalarNode) and node.tag == "tag:yaml.org,2002:null":
            return None
        return node

    def node_of(self, name: str) -> Node | None:
        return self._get(name)

    def text(self, name: str, default: str = "", *, required: bool = False, hint: str = "") -> str:
        node = self._get(name)
        if node is None:
            if required:
                self.wrong(name, "is missing", hint)
            return default
        if not isinstance(node, ScalarNode):
            self.wrong(name, f"must be a single value, this is {KINDS[type(node)]}", hint)
            return default
        return str(node.value)

    def read(self, name: str, reader: Callable[[str], T], default: T) -> T:
        """A text, converted by `reader`; its ValueError becomes a problem."""
        if self._get(name) is None:
            return default
        text = self.text(name)
        try:
            return reader(text)
        except ValueError as error:
            self.wrong(name, str(error))
            return default

    def number(self, name: str, default: T, least: int = 0, most: int = 2**62) -> int | T:
        node = self._get(name)
        if node is None:
            return default
        value = plain(node)
        if not isinstance(value, int) or isinstance(value, bool):
            self.wrong(name, f"must be a whole number, this is {getattr(node, 'value', value)!r}")
            return default
        if not least <= value <= most:
            self.wrong(name, f"is {value}, it must be from {least} to {most}")
            return default
        return value

    def flag(self, name: str, default: bool) -> bool:
        node = self._get(name)
        if node is None:
            return default
        value = plain(node)
        if not isinstance(value, bool):
            self.wrong(name, "must be true or false")
            return default
        return value

    def choice(self, name: str, kind: type[E], default: E) -> E:
        text = self.text(name)
        if not text:
            return default
        if text not in set(kind):
            self.wrong(name, f"is {text!r}", did_you_mean(text, kind))
            return default
        return kind(text)

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts, or one text."""
        node = self._get(name)
        if node is None:
            return ()
        if isinstance(node, ScalarNode):
            return (str(node.value),)
        if isinstance(node, SequenceNode) and all(isinstance(each, ScalarNode) for each in node.value):
            return tuple(str(each.value) for each in node.value)
        self.wrong(name, "must be a list of names")
        return ()

    def settings(self, name: str) -> dict[str, str]:
        """Names with single values, as texts; booleans as true and false."""
        section = self.section(name)
        if section is None:
            return {}
        found = {}
        for key in section.names():
            value = plain(section.values[key])
            if isinstance(value, bool):
                found[key] = str(value).lower()
            else:
                found[key] = section.text(key)
        return found

    def section(self, name: str, *, required: bool = False, hint: str = "") -> Section | None:
        node = self._get(name)
        if node is None:
            if required:
                self.wrong(name, "is missing", hint)
            return None
        if not isinstance(node, MappingNode):
            self.wrong(name, f"must hold names with values, this is {KINDS[type(node)]}", hint)
            return None
        return Section(self.document, node, self.at(name))

    def sections(self, name: str) -> list[tuple[str, Section]]:
        """Parts by name: the entries of sources, staging and so on."""
        whole = self.section(name)
        if whole is None:
            return []
        found = [(each, whole.section(each, required=True)) for each in whole.names()]
        return [(each, section) for each, section in found if section is not None]

    def items(self, name: str) -> list[Section]:
        """The entries of a list, as sections."""
        node = self._get(name)
        if node is None:
            return []
        if not isinstance(node, SequenceNode):
            self.wrong(name, f"must be a list, this is {KINDS[type(node)]}")
            return []
        found = []
        for index, each in enumerate(node.value):
            path = f"{self.at(name)}[{index}]"
            self.document.lines[path] = line_of(each)
            if isinstance(each, MappingNode):
                found.append(Section(self.document, each, path))
            else:
                self.document.wrong(
                    path, f"must hold names with values, this is {KINDS[type(each)]}", node=each
                )
        return found

    def finish(self, others: Iterable[str] = ()) -> None:
        for name in self.values:
            if name not in self.asked:
                self.wrong(name, "is unknown here", did_you_mean(name, [*self.asked, *others]))
