"""Names of subjects and of the contexts that they lie in.

In: a name as clients write it, `subject` or `:.context:subject`. Out: the context and the qualified name.
Does not know: which subjects exist.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

DEFAULT_CONTEXT = "."
GLOBAL_CONTEXT = ".__GLOBAL"  # its configuration and mode apply where no other ones do
ALL_CONTEXTS = ":*:"
RESERVED = frozenset({"__GLOBAL", "__EMPTY"})
CONTROL_CHARACTER = re.compile(r"[\x00-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class SubjectName:
    """`subject` is empty where the name stands for the context itself."""

    context: str
    subject: str

    @property
    def qualified(self) -> str:
        """The name under which records and the state know the subject."""
        return self.subject if self.context == DEFAULT_CONTEXT else f":{self.context}:{self.subject}"

    @property
    def is_context(self) -> bool:
        return not self.subject


def is_qualified(text: str) -> bool:
    return text.startswith(":.")


def subject_name(text: str, context: str = DEFAULT_CONTEXT) -> SubjectName:
    """The parts of a name. A name that says no context lies in the given one."""
    if not is_qualified(text):
        return SubjectName(context, text)
    named, _, subject = text[1:].partition(":")
    return SubjectName(named, subject)


def qualified(text: str, context: str = DEFAULT_CONTEXT) -> str:
    return subject_name(text, context).qualified


def context_name(text: str) -> str:
    """A context as it is written in a URL: `.ctx`, `ctx` or `:.ctx:`."""
    text = text.strip(":")
    return text if text.startswith(".") else f".{text}"


def why_invalid(name: SubjectName, *, is_setting: bool = False) -> str | None:
    """The reason why a subject cannot have this name. Configurations and modes (`is_setting`) may also belong
    to a context, the global one included."""
    if CONTROL_CHARACTER.search(name.subject) or CONTROL_CHARACTER.search(name.context):
        return "a subject has no control characters"
    if name.subject in RESERVED:
        return f"{name.subject} is a reserved name"
    if not is_setting and name.context == GLOBAL_CONTEXT:
        return f"the context {GLOBAL_CONTEXT} holds no subjects"
    if not is_setting and name.is_context:
        return "the subject is empty"
    return None
