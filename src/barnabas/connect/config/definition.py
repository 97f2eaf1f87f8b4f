"""Definitions of settings: names, types, defaults, checks, and how a form shows them.

In: a map of texts. Out: typed `Settings`, or a list of `ConfigValue` with every error, as Kafka's ConfigDef
gives them. Definitions can be embedded in others under a prefix, as transforms are in a connector.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, Protocol, Self

from barnabas.connect.config.errors import ConfigError, invalid
from barnabas.connect.config.settings import Settings
from barnabas.connect.config.types import (
    REQUIRED,
    ConfigType,
    Importance,
    Missing,
    Width,
    config_text,
    parse_type,
)
from barnabas.connect.config.validators import Validator

IMPORTANCES = list(Importance)
LIKENESS = 0.9  # of a misspelt name


class Recommender(Protocol):
    """Values that a form offers for a setting, and whether the form shows it."""

    def valid_values(self, name: str, parsed: Mapping[str, Any]) -> Sequence[Any]: ...

    def visible(self, name: str, parsed: Mapping[str, Any]) -> bool: ...


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """The definition of one setting."""

    name: str
    type: ConfigType
    default: Any = REQUIRED
    importance: Importance = Importance.MEDIUM
    doc: str = ""
    group: str | None = None
    order: int = -1
    width: Width = Width.NONE
    display_name: str = ""
    validator: Callable[[str, Any], None] | None = None
    dependents: tuple[str, ...] = ()
    recommender: Recommender | None = None
    no_effect: str = ""  # the reason, for a setting that users know and that changes nothing here

    @property
    def is_required(self) -> bool:
        return isinstance(self.default, Missing)

    def parse(self, value: object) -> Any:
        return parse_type(self.name, value, self.type)


@dataclass(slots=True)
class ConfigValue:
    """One setting after validation: its value, offered values, errors, and whether a form shows it."""

    name: str
    value: Any = None
    recommended_values: list[Any] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    visible: bool = True


class ConfigDef:
    """Settings by name, in the order in which they were defined."""

    def __init__(self, *keys: ConfigKey) -> None:
        self.keys: dict[str, ConfigKey] = {}
        self.groups: list[str] = []
        for key in keys:
            self.add(key)

    def define(
        self,
        name: str,
        type: ConfigType | str,
        default: Any = REQUIRED,
        importance: Importance | str = Importance.MEDIUM,
        doc: str = "",
        group: str | None = None,
        width: Width | str = Width.NONE,
        display_name: str | None = None,
        validator: Callable[[str, Any], None] | None = None,
        dependents: Sequence[str] = (),
        recommender: Recommender | None = None,
        order: int | None = None,
    ) -> Self:
        """Add a setting. The order in its group is counted where it is not given."""
        if order is None:
            order = -1 if group is None else 1 + sum(key.group == group for key in self.keys.values())
        key = ConfigKey(
            name, ConfigType(type.upper()), default, Importance(importance.upper()), doc, group, order,
            Width(width.upper()), display_name or name, validator, tuple(dependents), recommender,
        )  # fmt: skip
        return self.add(key)

    def without_effect(self, settings: Mapping[str, tuple[str | None, str]]) -> Self:
        """Add settings that users bring along and that change nothing here: defaults and reasons."""
        for name, (default, reason) in settings.items():
            doc = f"Has no effect here: {reason}."
            if (key := self.keys.get(name)) is not None:
                self.keys[name] = replace(key, doc=doc, no_effect=reason)
            else:
                self.add(ConfigKey(name, ConfigType.STRING, default, Importance.LOW, doc, no_effect=reason))
        return self

    def refused(self, settings: Mapping[str, tuple[str | None, str]]) -> Self:
        """Add settings that are not built: any value but the default is an error, which says the reason."""
        for name, (default, reason) in settings.items():
            self.define(name, "STRING", default, "LOW", f"Only the default: {reason}.",
                        validator=only_default(default, reason))  # fmt: skip
        return self

    def ignored(self, given: Mapping[str, str | None]) -> dict[str, str]:
        """Settings that are given, are not as by default, and have no effect; with the reasons."""
        return {
            name: key.no_effect
            for name, key in self.keys.items()
            if key.no_effect and given.get(name) not in (None, "", config_text(key.default))
        }

    def misspelt(self, given: Iterable[str], others: Iterable[str]) -> dict[str, str]:
        """Names that are no settings but almost one, with that one. `others` are known elsewhere."""
        known = [*self.keys, *others]
        found: dict[str, str] = {}
        for name in set(given) - set(known):
            near = next(iter(get_close_matches(name, known, 1, LIKENESS)), None)
            # A name below another one, such as that of a table, is no misspelling.
            if near is not None and not name.startswith(f"{near}.") and not near.endswith(f".{name}"):
                found[name] = near
        return found

    def add(self, key: ConfigKey) -> Self:
        """Add a definition; its default is parsed and checked."""
        if key.name in self.keys:
            raise ConfigError(f"Configuration {key.name} is defined twice.")
        if not key.is_required:
            key = replace(key, default=key.parse(key.default))
            if key.validator is not None:
                key.validator(key.name, key.default)
        self.keys[key.name] = key
        if key.group is not None and key.group not in self.groups:
            self.groups.append(key.group)
        return self

    def copy(self) -> ConfigDef:
        return ConfigDef(*self.keys.values())

    def __contains__(self, name: object) -> bool:
        return name in self.keys

    def __iter__(self) -> Iterator[ConfigKey]:
        return iter(self.keys.values())

    def embed(self, prefix: str, group: str, order: int, child: ConfigDef) -> Self:
        """Add the settings of another definition under a prefix, in the order of a form."""
        for position, key in enumerate(child.sorted(), order):
            self.add(
                replace(
                    key,
                    name=prefix + key.name,
                    group=group + (f": {key.group}" if key.group else ""),
                    order=position,
                    validator=embedded(prefix, key.validator),
                    dependents=tuple(prefix + name for name in key.dependents),
                    recommender=Embedded(prefix, key.recommender) if key.recommender else None,
                )
            )
        return self

    def sorted(self) -> list[ConfigKey]:
        """Definitions in the order of a form: group, place, required first, importance, name."""
        return sorted(
            self.keys.values(),
            key=lambda key: (
                -1 if key.group is None else self.groups.index(key.group),
                key.order,
                not key.is_required,
                IMPORTANCES.index(key.importance),
                key.name,
            ),
        )

    def parse(self, given: Mapping[str, Any]) -> Settings:
        """Typed values; raises ConfigError with all errors. Repeated entries of lists are dropped."""
        values = self._validated(given, drops_repeated=True)
        errors = {value.name: value.errors for value in values if value.errors}
        if errors:
            raise ConfigError.of(errors)
        return Settings({value.name: value.value for value in values if value.name in self.keys}, given)

    def validate(self, given: Mapping[str, Any]) -> list[ConfigValue]:
        """Every setting with its value and its errors; names that dependents miss at the end."""
        return self._validated(given, drops_repeated=False)

    def _validated(self, given: Mapping[str, Any], *, drops_repeated: bool) -> list[ConfigValue]:
        """As Kafka: entries of lists that repeat are errors of a form, and dropped when settings are used."""
        found = {name: self._parsed(key, given, drops_repeated) for name, key in self.keys.items()}
        for name in self.undefined():
            found[name] = ConfigValue(
                name, errors=[f"{name} is referred in the dependents, but not defined."], visible=False
            )
        parsed = {name: value.value for name, value in found.items()}
        for name, key in self.keys.items():
            if key.recommender is not None:
                recommend(found[name], key.recommender, parsed)
        return list(found.values())

    def undefined(self) -> list[str]:
        """Dependents that nothing defines."""
        named = [name for key in self.keys.values() for name in key.dependents]
        return list(dict.fromkeys(name for name in named if name not in self.keys))

    @staticmethod
    def _parsed(key: ConfigKey, given: Mapping[str, Any], drops_repeated: bool) -> ConfigValue:
        result = ConfigValue(key.name)
        if key.name in given:
            try:
                result.value = key.parse(given[key.name])
            except ConfigError as error:
                result.errors.append(error.message)
        elif key.is_required:
            result.errors.append(missing(key.name))
        else:
            result.value = key.default
        if drops_repeated and key.type is ConfigType.LIST and result.value:
            result.value = list(dict.fromkeys(result.value))
        if key.validator is not None:
            try:
                key.validator(key.name, result.value)
            except ConfigError as error:
                result.errors.append(error.message)
        if key.type is ConfigType.LIST and "" in (result.value or ()) and not result.errors:
            result.errors.append(f"Configuration '{key.name}' values must not be empty.")
        return result


def only_default(default: str | None, reason: str) -> Validator:
    def check(name: str, value: Any) -> None:
        if (value or "").strip().lower() not in ("", (default or "").lower()):
            raise invalid(name, value, reason)

    return Validator(f"only {default or 'empty'}", check)


def missing(name: str) -> str:
    return f'Missing required configuration "{name}" which has no default value.'


def recommend(value: ConfigValue, recommender: Recommender, parsed: Mapping[str, Any]) -> None:
    try:
        value.recommended_values = list(recommender.valid_values(value.name, parsed))
        value.visible = recommender.visible(value.name, parsed)
    except ConfigError as error:
        value.errors.append(error.message)


def embedded(prefix: str, validator: Callable[[str, Any], None] | None) -> Validator | None:
    """A validator that sees the name without the prefix, as in Kafka: messages have the short name."""
    if validator is None:
        return None
    return Validator(str(validator), lambda name, value: validator(name.removeprefix(prefix), value))


@dataclass(frozen=True, slots=True)
class Embedded:
    """A recommender that sees names without a prefix."""

    prefix: str
    recommender: Recommender

    def _inner(self, parsed: Mapping[str, Any]) -> dict[str, Any]:
        return {
            name.removeprefix(self.prefix): value
            for name, value in parsed.items()
            if name.startswith(self.prefix)
        }

    def valid_values(self, name: str, parsed: Mapping[str, Any]) -> Sequence[Any]:
        return self.recommender.valid_values(name.removeprefix(self.prefix), self._inner(parsed))

    def visible(self, name: str, parsed: Mapping[str, Any]) -> bool:
        return self.recommender.visible(name.removeprefix(self.prefix), self._inner(parsed))
