"""Character sets of regular expressions as bit masks, with RE2's names: one bit for each ASCII character.

All other characters share one bit, since names of topics rarely have them: `.` and `[^a]` match it, but no
expression can distinguish two such characters.
Does not know: syntax, matching.
"""

from __future__ import annotations

from unicodedata import category

ASCII = (1 << 128) - 1
BEYOND_ASCII = 128  # the bit of all other characters
ALL = ASCII | 1 << BEYOND_ASCII


class RegexError(ValueError):
    """RE2 would not accept this expression."""


def mask_of(chars: str) -> int:
    return sum(1 << ord(char) for char in set(chars))


def span(first: int, last: int) -> int:
    """The ASCII part of a range of characters."""
    last = min(last, 127)
    return ((1 << last + 1) - (1 << first)) if first <= last else 0


DIGITS = span(ord("0"), ord("9"))
LOWER = span(ord("a"), ord("z"))
UPPER = span(ord("A"), ord("Z"))
WORDS = DIGITS | LOWER | UPPER | mask_of("_")
SPACES = mask_of("\t\n\f\r ")
PERL_CLASSES = {"d": DIGITS, "w": WORDS, "s": SPACES}
POSIX_CLASSES = {
    "alnum": DIGITS | LOWER | UPPER,
    "alpha": LOWER | UPPER,
    "ascii": ASCII,
    "blank": mask_of("\t "),
    "cntrl": span(0, 31) | span(127, 127),
    "digit": DIGITS,
    "graph": span(33, 126),
    "lower": LOWER,
    "print": span(32, 126),
    "punct": span(33, 126) & ~(DIGITS | LOWER | UPPER),
    "space": mask_of("\t\n\v\f\r "),
    "upper": UPPER,
    "word": WORDS,
    "xdigit": DIGITS | mask_of("abcdefABCDEF"),
}
ESCAPED_CHARS = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
SCRIPTS_IN_ASCII = {"Latin": LOWER | UPPER, "Common": ASCII & ~(LOWER | UPPER), "Any": ALL}


def folded(mask: int) -> int:
    """The characters in both cases."""
    return mask | (mask & LOWER) >> 32 | (mask & UPPER) << 32


def unicode_class(name: str) -> int:
    """The ASCII part of a general category or a script."""
    if name in SCRIPTS_IN_ASCII:
        return SCRIPTS_IN_ASCII[name]
    if not name or not name[0].isupper() or not name.replace("_", "").isalpha():
        raise RegexError("invalid character class range")
    if len(name) <= 2:
        found = sum(1 << code for code in range(128) if category(chr(code)).startswith(name))
        if not found and name not in CATEGORIES:
            raise RegexError("invalid character class range")
        return found
    if name not in SCRIPTS_BEYOND_ASCII:
        raise RegexError("invalid character class range")
    return 0


SCRIPTS_BEYOND_ASCII = {
    *(
        "Arabic",
        "Armenian",
        "Bengali",
        "Bopomofo",
        "Cherokee",
        "Cyrillic",
        "Devanagari",
        "Ethiopic",
        "Georgian",
    ),
    *(
        "Greek",
        "Gujarati",
        "Gurmukhi",
        "Han",
        "Hangul",
        "Hebrew",
        "Hiragana",
        "Inherited",
        "Kannada",
        "Katakana",
    ),
    *("Khmer", "Lao", "Malayalam", "Mongolian", "Myanmar", "Oriya", "Sinhala", "Syriac", "Tamil", "Telugu"),
    *("Thaana", "Thai", "Tibetan", "Yi"),
}
CATEGORIES = {
    *(
        "C",
        "Cc",
        "Cf",
        "Co",
        "Cs",
        "L",
        "Ll",
        "Lm",
        "Lo",
        "Lt",
        "Lu",
        "M",
        "Mc",
        "Me",
        "Mn",
        "N",
        "Nd",
        "Nl",
        "No",
    ),
    *("P", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S", "Sc", "Sk", "Sm", "So", "Z", "Zl", "Zp", "Zs"),
}
