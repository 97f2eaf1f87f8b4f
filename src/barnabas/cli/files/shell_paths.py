"""Paths and globs in a tree of metadata: `/image/topics/byName/orders-*`, `../{a,b}`, relative to a folder.

In: a tree, a working folder, a glob. Out: the nodes that match, in order. `*`, `?` and `{a,b}` match within
one part of a path; a backslash makes the next character literal.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from barnabas.cli.files.metadata_tree import Folder, Node


@dataclass(frozen=True, slots=True)
class Found:
    path: tuple[str, ...]
    node: Node

    @property
    def name(self) -> str:
        return self.path[-1] if self.path else "/"

    @property
    def absolute(self) -> str:
        return "/" + "/".join(self.path)


def find(tree: Folder, working: str, glob: str) -> list[Found]:
    """All nodes that match a glob."""
    whole = glob if glob.startswith("/") else f"{working}/{glob}"
    return list(_below(tree, (), _without_dots(whole)))


def _without_dots(path: str) -> list[str]:
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            parts[-1:] = []
        elif part not in ("", "."):
            parts.append(part)
    return parts


def _below(node: Node, path: tuple[str, ...], parts: list[str]) -> Iterator[Found]:
    if not parts:
        yield Found(path, node)
        return
    if not isinstance(node, Folder):
        return
    pattern = expression(parts[0])
    if pattern is None:
        names = [re.sub(r"\\(.)", r"\1", parts[0])]
    else:
        names = [name for name in node.names() if re.fullmatch(pattern, name)]
    for name in names:
        child = node.child(name)
        if child is not None:
            yield from _below(child, (*path, name), parts[1:])


def expression(glob: str) -> str | None:
    """A glob as a regular expression; None if it has no wildcards or is malformed."""
    parts: list[str] = []
    literal, in_group = True, False
    letters = iter(glob)
    for letter in letters:
        if letter in "?*":
            parts.append("." if letter == "?" else ".*")
            literal = False
        elif letter == "\\":
            parts.append(re.escape(next(letters, "\\")))
        elif letter == "{":
            if in_group:
                return None
            parts.append("(?:")
            in_group, literal = True, False
        elif letter == "," and in_group:
            parts.append("|")
        elif letter == "}" and in_group:
            parts.append(")")
            in_group = False
        else:
            parts.append(re.escape(letter))
    return None if literal or in_group else "".join(parts)


def completions(tree: Folder, working: str, start: str) -> list[str]:
    """The paths that begin with the given text."""
    before, slash, last = start.rpartition("/")
    folder = (before or "/") if slash else "."
    found = find(tree, working, folder)
    if len(found) != 1 or not isinstance(found[0].node, Folder):
        return []
    node = found[0].node
    prefix = f"{before}{slash}"
    return [
        f"{prefix}{name}{'/' if isinstance(node.child(name), Folder) else ''}"
        for name in node.names()
        if name.startswith(last)
    ]
