"""A YAML document as plain values, with the line of everything in it.

In: text. Out: dicts, lists and `Written` scalars; the line of each name; problems of YAML itself, such as a
name that is given twice. Does not know: what a pipeline is.
"""

from __future__ import annotations

from typing import Any

import yaml
from yaml.constructor import SafeConstructor
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from barnabas.pipeline.file.problems import Problem

DEPTH_MAX = 40
NULL = "tag:yaml.org,2002:null"

Tree = Any  # dict[str, Tree], list[Tree], Written, or None


class Written(str):
    """A scalar as it was written; `plain` is its value by YAML's rules: a number, a boolean, a date."""

    plain: Any

    def __new__(cls, text: str, plain: Any) -> Written:
        found = super().__new__(cls, text)
        found.plain = plain
        return found


class Document:
    """A document: its values, and what is wrong with it so far."""

    def __init__(self, text: str) -> None:
        self.problems: list[Problem] = []
        self.lines: dict[str, int] = {}
        self.tree: dict[str, Tree] | None = self._read(text)

    def wrong(self, path: str, message: str, hint: str = "") -> None:
        self.problems.append(Problem(path, message, hint))

    def _read(self, text: str) -> dict[str, Tree] | None:
        try:
            node = yaml.compose(text, Loader=yaml.SafeLoader)
            found = None if node is None else self._tree(node, "", 0)
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            what = getattr(error, "problem", None) or str(error)
            self.problems.append(Problem("file", f"is not YAML: {what}", "", mark.line + 1 if mark else 0))
            return None
        except RecursionError:
            self.wrong("file", "is nested too deeply")
            return None
        if found is None:
            self.wrong("file", "is empty", "begin with name, lake and sources")
            return None
        self.lines["file"] = self.lines[""] = line_of(node)
        if not isinstance(found, dict):
            self.wrong("file", f"must hold names with values, this is {kind_of(found)}")
            return None
        return found

    def _tree(self, node: Node, path: str, depth: int) -> Tree:
        if depth > DEPTH_MAX:
            raise RecursionError
        if isinstance(node, MappingNode):
            return self._names(node, path, depth)
        if isinstance(node, SequenceNode):
            found = []
            for index, each in enumerate(node.value):
                place = f"{path}[{index}]"
                self.lines[place] = line_of(each)
                found.append(self._tree(each, place, depth + 1))
            return found
        if isinstance(node, ScalarNode) and node.tag != NULL:
            return Written(str(node.value), plain(node))
        return None

    def _names(self, node: MappingNode, path: str, depth: int) -> dict[str, Tree]:
        found: dict[str, Tree] = {}
        for key, value in node.value:
            if not isinstance(key, ScalarNode):
                self.problems.append(
                    Problem(path or "file", "a name must be a single word", "", line_of(key))
                )
                continue
            place = f"{path}.{key.value}" if path else str(key.value)
            if key.value in found:
                self.problems.append(Problem(place, "is given twice", "keep one of them", line_of(key)))
                continue
            self.lines[place] = line_of(key)
            found[str(key.value)] = self._tree(value, place, depth + 1)
        return found


def line_of(node: Node | None) -> int:
    return node.start_mark.line + 1 if node is not None and node.start_mark is not None else 0


def plain(node: Node) -> Any:
    """The value of a node: number, text, list and so on."""
    try:
        return SafeConstructor().construct_document(node)
    except (yaml.YAMLError, ValueError):
        return None


def plain_tree(tree: Tree) -> Any:
    """Values by YAML's rules."""
    if isinstance(tree, dict):
        return {name: plain_tree(each) for name, each in tree.items()}
    if isinstance(tree, list):
        return [plain_tree(each) for each in tree]
    return tree.plain if isinstance(tree, Written) else tree


def kind_of(tree: Tree) -> str:
    if isinstance(tree, dict):
        return "names with values"
    return "a list" if isinstance(tree, list) else "a single value"
