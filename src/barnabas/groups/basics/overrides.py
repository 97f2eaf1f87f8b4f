"""Settings that a single group overrides, read once and again when settings change.

In: a metadata image. Out: the values of a group, within the limits that the broker sets at that moment.
Does not know: which settings a kind of group has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from barnabas.metadata.configs import ConfigResource, ConfigsImage, ResourceType
from barnabas.metadata.image import MetadataImage

Values = TypeVar("Values")


class GroupOverrides(Generic[Values]):
    __slots__ = ("_by_group", "_configs", "_read")

    def __init__(self, read: Callable[[Mapping[str, str]], Values]) -> None:
        """`read` makes the values of a group from the text of its overrides."""
        self._read = read
        self._configs: ConfigsImage | None = None
        self._by_group: dict[str, Values] = {}

    def of(self, group_id: str, image: MetadataImage) -> Values:
        if image.configs is not self._configs:
            self._configs = image.configs
            self._by_group.clear()
        values = self._by_group.get(group_id)
        if values is None:
            own = image.configs.of(ConfigResource(ResourceType.GROUP, group_id))
            values = self._by_group[group_id] = self._read(own)
        return values

    def clear(self) -> None:
        """Read everything again: the broker's settings changed."""
        self._by_group.clear()


def within(own: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    """The group's own value within the limits, or the broker's value."""
    text = own.get(name)
    return default if text is None else min(max(int(text), least), most)
