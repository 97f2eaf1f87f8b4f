"""Matching of regular expressions in time linear in the length of the text.

In: a tree of `syntax`. Out: whether a whole text matches. The tree is compiled to an automaton whose states
are computed on demand and cached, up to a bound. There is no backtracking, so no expression can make it hang.
Does not know: topics.
"""

from __future__ import annotations

from functools import lru_cache

from barnabas.expressions.chars import BEYOND_ASCII, WORDS, RegexError
from barnabas.expressions.syntax import (
    Assertion,
    Chars,
    Choice,
    Node,
    Repeat,
    Sequence,
    Zero,
    parse,
)

INSTRUCTIONS_MAX = 3_000
STATES_MAX = 2_000
PATTERNS_CACHED_MAX = 1_000

END_OF_TEXT = -1
MATCH = 0  # the instruction that ends every program


class Program:
    """Instructions by number: characters with one successor, splits with several, assertions, and MATCH."""

    __slots__ = ("assertions", "chars", "next")

    def __init__(self) -> None:
        self.chars: list[int] = [0]  # the mask; 0 for instructions that consume no character
        self.assertions: list[Assertion | None] = [None]
        self.next: list[tuple[int, ...]] = [()]

    def add(self, next: tuple[int, ...], chars: int = 0, assertion: Assertion | None = None) -> int:
        if len(self.next) >= INSTRUCTIONS_MAX:
            raise RegexError("expression is too large")
        self.chars.append(chars)
        self.assertions.append(assertion)
        self.next.append(next)
        return len(self.next) - 1

    def compile(self, node: Node, then: int) -> int:
        """Add instructions that match `node` and continue with `then`. Returns the first one."""
        if isinstance(node, Chars):
            return self.add((then,), node.mask) if node.mask else self.add(())
        if isinstance(node, Zero):
            return self.add((then,), assertion=node.assertion)
        if isinstance(node, Sequence):
            for part in reversed(node.parts):
                then = self.compile(part, then)
            return then
        if isinstance(node, Choice):
            return self.add(tuple(self.compile(option, then) for option in node.options))
        return self.repeat(node, then)

    def repeat(self, node: Repeat, then: int) -> int:
        if node.most is None:
            loop = self.add(())
            self.next[loop] = (self.compile(node.node, loop), then)
            then = loop
        else:
            end = then
            for _ in range(node.most - node.least):
                then = self.add((self.compile(node.node, then), end))
        for _ in range(node.least):
            then = self.compile(node.node, then)
        return then


class State:
    """The instructions that may be active between two characters, and the transitions to other states."""

    __slots__ = ("after_word", "instructions", "is_begin", "to")

    def __init__(self, instructions: tuple[int, ...], is_begin: bool, after_word: bool) -> None:
        self.instructions = instructions
        self.is_begin = is_begin
        self.after_word = after_word
        self.to: dict[int, State] = {}


class Matcher:
    __slots__ = ("_program", "_start", "_states", "effort")

    def __init__(self, tree: Node) -> None:
        self._program = Program()
        begin = self._program.compile(tree, MATCH)
        self._start = State((begin,), is_begin=True, after_word=False)
        self._states: dict[tuple[tuple[int, ...], bool], State] = {}
        self.effort = 0  # instructions executed so far; cached states cost nothing

    def matches(self, text: str) -> bool:
        """Whether the whole text matches."""
        state = self._start
        for char in text:
            code = min(ord(char), BEYOND_ASCII)
            after = state.to.get(code)
            if after is None:
                after = self._step(state, code)
            if not after.instructions:
                return False
            state = after
        return MATCH in self._closure(state, END_OF_TEXT)

    def _step(self, state: State, code: int) -> State:
        bit = 1 << code
        chars, following = self._program.chars, self._program.next
        reached = {following[at][0] for at in self._closure(state, code) if chars[at] & bit}
        after_word = bool(WORDS & bit)
        key = (tuple(sorted(reached)), after_word)
        if len(self._states) >= STATES_MAX:
            self._states.clear()
            self._start.to.clear()
        after = self._states.get(key)
        if after is None:
            after = self._states[key] = State(key[0], is_begin=False, after_word=after_word)
        state.to[code] = after
        return after

    def _closure(self, state: State, code: int) -> set[int]:
        """All instructions that are reachable without consuming a character, if `code` comes next."""
        before_word = code != END_OF_TEXT and bool(WORDS >> code & 1)
        boundary = before_word != state.after_word
        holds = {
            None: True,
            Assertion.BEGIN: state.is_begin,
            Assertion.END: code == END_OF_TEXT,
            Assertion.WORD_BOUNDARY: boundary,
            Assertion.NO_WORD_BOUNDARY: not boundary,
        }
        program = self._program
        found = set(state.instructions)
        open_ = list(found)
        while open_:
            at = open_.pop()
            if program.chars[at] or not holds[program.assertions[at]]:
                continue
            for following in program.next[at]:
                if following not in found:
                    found.add(following)
                    open_.append(following)
        self.effort += len(found)
        return found


@lru_cache(maxsize=PATTERNS_CACHED_MAX)
def matcher(pattern: str) -> Matcher:
    """Compile an expression. `RegexError` with RE2's description if it is invalid."""
    return Matcher(parse(pattern))
