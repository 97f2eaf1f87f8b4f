"""Filters topic names by regular expression, as Kafka's tools do: a comma means `or`, quotes are dropped."""

import re
from collections.abc import Iterable

from barnabas.cli.frame.parsing import ToolError


class TopicFilter:
    def __init__(self, text: str) -> None:
        self.text = re.sub(r"^[\"']+|[\"']+$", "", text.strip().replace(",", "|").replace(" ", ""))
        try:
            self._pattern = re.compile(self.text)
        except re.error as error:
            raise ToolError(f"{self.text} is an invalid regex. ({error})") from None

    def matches(self, name: str) -> bool:
        return self._pattern.fullmatch(name) is not None

    def select(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if self.matches(name)]


def compile_include(text: str) -> re.Pattern[str]:
    """The value of --include."""
    try:
        return re.compile(text)
    except re.error as error:
        raise ToolError(f"--include {text} is not a regular expression: {error}") from None
