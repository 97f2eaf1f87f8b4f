"""Parser of regular expressions in RE2's syntax. It refuses the same expressions as RE2.

In: the text of an expression. Out: a tree of nodes, or `RegexError` with RE2's description of the error.
Character sets are masks (`chars`), with one bit for all characters beyond ASCII.
Does not know: matching (`matching`), topics.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from barnabas.expressions.chars import (
    ALL,
    ESCAPED_CHARS,
    PERL_CLASSES,
    POSIX_CLASSES,
    RegexError,
    folded,
    span,
    unicode_class,
)

PATTERN_CHARS_MAX = 4096
REPEAT_MAX = 1000
NESTING_MAX = 100


class Assertion(Enum):
    BEGIN = "begin of text"
    END = "end of text"
    WORD_BOUNDARY = "word boundary"
    NO_WORD_BOUNDARY = "no word boundary"


@dataclass(frozen=True, slots=True)
class Chars:
    mask: int


@dataclass(frozen=True, slots=True)
class Zero:
    """Matches the empty text, if an assertion about the position holds."""

    assertion: Assertion


@dataclass(frozen=True, slots=True)
class Sequence:
    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    options: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    node: Node
    least: int
    most: int | None  # None: without limit


Node = Chars | Zero | Sequence | Choice | Repeat


def parse(pattern: str) -> Node:
    if len(pattern) > PATTERN_CHARS_MAX:
        raise RegexError(f"expression is longer than {PATTERN_CHARS_MAX} characters")
    parser = Parser(pattern)
    tree = parser.choice(0)
    if parser.at < len(pattern):
        raise RegexError("unexpected )")
    return tree


class Parser:
    """A recursive descent parser. `fold` (ignore case) is valid from where it is set to the end of the
    group."""

    __slots__ = ("at", "fold", "names", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.fold = False
        self.names: set[str] = set()  # of captures

    def peek(self, what: str) -> bool:
        return self.text.startswith(what, self.at)

    def accept(self, what: str) -> bool:
        found = self.peek(what)
        if found:
            self.at += len(what)
        return found

    def next(self, missing: str) -> str:
        if self.at >= len(self.text):
            raise RegexError(missing)
        self.at += 1
        return self.text[self.at - 1]

    def choice(self, depth: int) -> Node:
        if depth > NESTING_MAX:
            raise RegexError("expression nests too deeply")
        options = [self.sequence(depth)]
        while self.accept("|"):
            options.append(self.sequence(depth))
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def sequence(self, depth: int) -> Node:
        parts: list[Node] = []
        while self.at < len(self.text) and not self.peek("|") and not self.peek(")"):
            if self.accept("\\Q"):
                literal, _, rest = self.text[self.at :].partition("\\E")
                self.at = len(self.text) - len(rest)
                parts.extend(self.char(char) for char in literal)
                if literal and (repeat := self.repetition()):
                    parts[-1] = self.repeated(parts[-1], repeat)
                continue
            atom = self.atom(depth)
            if atom is not None:  # flags are not an atom: a following operator repeats the atom before them
                parts.append(atom)
            if repeat := self.repetition():
                if not parts:
                    raise RegexError("missing argument to repetition operator")
                parts[-1] = self.repeated(parts[-1], repeat)
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def repeated(self, node: Node, bounds: tuple[int, int | None]) -> Node:
        if self.repetition():
            raise RegexError("invalid nested repetition operator")
        return Repeat(node, *bounds)

    def repetition(self) -> tuple[int, int | None] | None:
        """Parse a repetition operator. A `?` after it makes it lazy, which does not change what matches."""
        bounds: tuple[int, int | None]
        if self.accept("*"):
            bounds = (0, None)
        elif self.accept("+"):
            bounds = (1, None)
        elif self.accept("?"):
            bounds = (0, 1)
        else:
            counted = self.counted()
            if counted is None:
                return None
            bounds = counted
        self.accept("?")
        return bounds

    def counted(self) -> tuple[int, int | None] | None:
        """`{2}`, `{2,}` or `{2,5}`; anything else in braces is plain text, as in RE2."""
        end = self.text.find("}", self.at)
        if not self.peek("{") or end < 0:
            return None
        least, comma, most = self.text[self.at + 1 : end].partition(",")
        if not is_number(least) or (most and not is_number(most)):
            return None
        self.at = end + 1
        low = int(least)
        high = low if not comma else int(most) if most else None
        if low > REPEAT_MAX or (high is not None and not low <= high <= REPEAT_MAX):
            raise RegexError("invalid repeat count")
        return low, high

    def atom(self, depth: int) -> Node | None:
        char = self.next("")
        if char == "(":
            return self.group(depth)
        if char == "[":
            return Chars(self.char_class())
        if char == ".":
            return Chars(ALL)
        if char == "^":
            return Zero(Assertion.BEGIN)
        if char == "$":
            return Zero(Assertion.END)
        if char in "*+?" or (char == "{" and self.is_counted_before()):
            raise RegexError("missing argument to repetition operator")
        if char == "\\":
            return self.escape()
        return self.char(char)

    def is_counted_before(self) -> bool:
        self.at -= 1
        found = self.counted()
        if found is None:
            self.at += 1
        return found is not None

    def char(self, char: str) -> Chars:
        mask = span(ord(char), ord(char))
        return Chars(folded(mask) if self.fold else mask)

    def group(self, depth: int) -> Node | None:
        outer = self.fold
        if self.accept("?"):
            if self.accept("P<") or self.accept("<"):
                self.name_capture()
            elif not self.flags():
                return None
        inner = self.choice(depth + 1)
        if not self.accept(")"):
            raise RegexError("missing closing )")
        self.fold = outer
        return inner

    def name_capture(self) -> None:
        name, closed, _ = self.text[self.at :].partition(">")
        if not closed or not name or not all(char == "_" or char.isalnum() for char in name):
            raise RegexError("invalid named capture")
        if name in self.names:
            raise RegexError("duplicate capture group name")
        self.names.add(name)
        self.at += len(name) + 1

    def flags(self) -> bool:
        """Parse flags. True for flags of a group (`(?i:`), False for flags up to the end of the enclosing
        group (`(?i)`)."""
        on, seen = True, False
        fold = self.fold
        while True:
            char = self.next("invalid or unsupported Perl syntax")
            if char == "i":
                fold, seen = on, True
            elif char in "msU":
                seen = True
            elif char == "-" and on:
                on, seen = False, False
            elif char in ":)":
                if not on and not seen:
                    raise RegexError("invalid or unsupported Perl syntax")
                self.fold = fold
                return char == ":"
            else:
                raise RegexError("invalid or unsupported Perl syntax")

    def escape(self) -> Node:
        char = self.next("trailing backslash at end of expression")
        if char == "A":
            return Zero(Assertion.BEGIN)
        if char == "z":
            return Zero(Assertion.END)
        if char == "b":
            return Zero(Assertion.WORD_BOUNDARY)
        if char == "B":
            return Zero(Assertion.NO_WORD_BOUNDARY)
        found = self.named_class(char)
        if found is not None:
            return Chars(found)
        code = self.escaped(char)
        mask = span(code, code)
        return Chars(folded(mask) if self.fold else mask)

    def named_class(self, char: str) -> int | None:
        """The character class after a backslash, or None if it is a single character."""
        if char.lower() in PERL_CLASSES:
            mask = PERL_CLASSES[char.lower()]
            return mask if char.islower() else ALL & ~mask
        if char not in "pP":
            return None
        name = self.next("invalid character class range")
        if name == "{":
            name, closed, _ = self.text[self.at :].partition("}")
            if not closed:
                raise RegexError("invalid character class range")
            self.at += len(name) + 1
        negated = (char == "P") != name.startswith("^")
        mask = unicode_class(name.removeprefix("^"))
        return ALL & ~mask if negated else mask

    def escaped(self, char: str) -> int:
        """The code point that an escape of a single character stands for."""
        if char == "0" or (char in "1234567" and self.text[self.at : self.at + 1] in tuple("01234567")):
            digits = char
            while len(digits) < 3 and self.text[self.at : self.at + 1] in tuple("01234567"):
                digits += self.next("")
            return int(digits, 8)
        if char == "x":
            return self.hexadecimal()
        if char in ESCAPED_CHARS:
            return ESCAPED_CHARS[char]
        if not (char.isascii() and char.isalnum()):
            return ord(char)
        raise RegexError("invalid escape sequence")

    def hexadecimal(self) -> int:
        if self.accept("{"):
            digits, closed, _ = self.text[self.at :].partition("}")
            self.at += len(digits) + 1
        else:
            digits, closed = self.text[self.at : self.at + 2], "}"
            self.at += 2
            if len(digits) != 2:
                raise RegexError("invalid escape sequence")
        if not closed or not digits or not all(digit in "0123456789abcdefABCDEF" for digit in digits):
            raise RegexError("invalid escape sequence")
        code = int(digits, 16)
        if code > 0x10FFFF:
            raise RegexError("invalid escape sequence")
        return code

    def char_class(self) -> int:
        negated = self.accept("^")
        mask, first = 0, True
        while first or not self.peek("]"):
            if self.at >= len(self.text):
                raise RegexError("missing closing ]")
            first = False
            mask |= self.class_item()
        self.at += 1
        return ALL & ~mask if negated else mask

    def class_item(self) -> int:
        if self.accept("[:"):
            name, closed, _ = self.text[self.at :].partition(":]")
            if closed:
                mask = POSIX_CLASSES.get(name.removeprefix("^"))
                if mask is None:
                    raise RegexError("invalid character class range")
                self.at += len(name) + 2
                return ALL & ~mask if name.startswith("^") else mask
            self.at -= 2
        if self.peek("\\") and self.at + 1 < len(self.text):
            start = self.at
            self.at += 2
            named = self.named_class(self.text[start + 1])
            if named is not None:
                return named
            self.at = start
        low = self.class_char()
        high = low
        if self.peek("-") and self.text[self.at + 1 : self.at + 2] not in ("]", ""):
            self.at += 1
            high = self.class_char()
            if high < low:
                raise RegexError("invalid character class range")
        mask = span(low, high)
        return folded(mask) if self.fold else mask

    def class_char(self) -> int:
        char = self.next("missing closing ]")
        if char != "\\":
            return ord(char)
        return self.escaped(self.next("trailing backslash at end of expression"))


def is_number(text: str) -> bool:
    """Whether RE2 accepts this as a count: digits without leading zeros."""
    return text.isascii() and text.isdigit() and (len(text) == 1 or text[0] != "0") and len(text) < 9
