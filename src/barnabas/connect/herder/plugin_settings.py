"""Settings of a connector that belong to plugins: transforms, predicates, converters, Kafka's clients.

In: a configuration, the plugins. Out: definitions under the plugins' prefixes, values with errors. Does not
know: what a connector itself defines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from barnabas.connect.config.client_overrides import client_settings, override_value
from barnabas.connect.config.definition import ConfigDef, ConfigKey, ConfigValue
from barnabas.connect.config.errors import ConfigError
from barnabas.connect.config.secrets import HIDDEN, is_secret
from barnabas.connect.plugins import Kind, Plugins
from barnabas.connect.plugins.errors import ConnectError
from barnabas.connect.plugins.versions import mismatch, spans_of

ALIASES_MAX = 100
PRINCIPAL = ("sasl.jaas.config", "sasl.mechanism", "security.protocol")
SIDES = {"key": Kind.CONVERTER, "value": Kind.CONVERTER, "header": Kind.HEADER_CONVERTER}
HEADER_DEFAULT = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
VERSION = ".plugin.version"
NOT_FOUND = "could not be found."


@dataclass(frozen=True, slots=True)
class Offered:
    """A recommender that always offers the same values."""

    values: tuple[str, ...]

    def valid_values(self, name: str, parsed: Mapping[str, Any]) -> Sequence[Any]:
        return self.values

    def visible(self, name: str, parsed: Mapping[str, Any]) -> bool:
        return True


def aliases(given: Mapping[str, str], word: str) -> list[str]:
    return [alias.strip() for alias in given.get(word, "").split(",") if alias.strip()]


INTERFACES = {
    Kind.CONVERTER: "Converter",
    Kind.HEADER_CONVERTER: "HeaderConverter",
    Kind.TRANSFORMATION: "Transformation",
    Kind.PREDICATE: "Predicate",
}


def no_class(setting: str, name: str, kind: Kind, plugins: Plugins) -> str:
    """The message for a name that means no plugin of this kind."""
    known = plugins.list((kind,))
    parts = [each.name for each in known if each.name in (f"{name}$Key", f"{name}$Value")]
    if parts:
        return f"This class is abstract and cannot be created. Did you mean {', '.join(parts)}?"
    for each in plugins.list():
        if name.strip() in each.spellings():
            return f"Class class {each.name} does not implement the {INTERFACES[kind]} interface"
    return f"Invalid value {name} for configuration {setting}: Class {name} {NOT_FOUND}"


def version_of(plugins: Plugins, name: str | None, kinds: Sequence[Kind]) -> str | None:
    try:
        return plugins.find(name, kinds).version if name else None
    except ConnectError:
        return None


def version_problem(
    plugins: Plugins, name: str | None, kinds: Sequence[Kind], wanted: str | None
) -> str | None:
    """The error for a version that the plugin does not have (KIP-891); ValueError for a demand that makes no
    sense, which is checked where no plugin is named, too."""
    try:
        known = plugins.find(name, kinds) if name else None
    except ConnectError:
        known = None
    if known is not None:
        return mismatch(known.name, known.version, wanted)
    if wanted is not None:
        spans_of(wanted)
    return None


def named_plugins(given: Mapping[str, str], kind: str) -> Iterator[tuple[str, str, Sequence[Kind]]]:
    """Settings that name plugins: that of the class, that of its version, the kinds it may have."""
    yield "connector.class", f"connector{VERSION}", (Kind(kind),) if kind else ()
    for side, wanted in SIDES.items():
        yield f"{side}.converter", f"{side}.converter{VERSION}", (wanted,)
    for word, wanted in (("transforms", Kind.TRANSFORMATION), ("predicates", Kind.PREDICATE)):
        for alias in dict.fromkeys(aliases(given, word)[:ALIASES_MAX]):
            yield f"{word}.{alias}.type", f"{word}.{alias}{VERSION}", (wanted,)


def version_problems(given: Mapping[str, str], plugins: Plugins, kind: str) -> list[tuple[str, str]]:
    """Errors by setting, of versions and of the classes that do not have them."""
    found: list[tuple[str, str]] = []
    for setting, version, kinds in named_plugins(given, kind):
        named: tuple[str, ...] = (setting, version)
        try:
            problem = version_problem(plugins, given.get(setting), kinds, given.get(version))
        except ValueError as error:
            problem, named = str(error), (version,) if setting.endswith(".converter") else named
        if problem is not None:
            found += [(each, problem) for each in named if each in given]
    return found


def names_of(plugins: Plugins, kind: Kind) -> tuple[str, ...]:
    return tuple(each.name for each in plugins.list((kind,)))


# -- common settings that name plugins ---------------------------------------------------------------


def offer_plugins(definition: ConfigDef, given: Mapping[str, str], plugins: Plugins, kind: str) -> None:
    """Offer the converters that are known, and the versions of the plugins that are named."""

    def change(name: str, **changes: Any) -> None:
        definition.keys[name] = replace(definition.keys[name], **changes)

    def offer_version(name: str, version: str | None) -> None:
        if version is not None:
            change(name, default=version, recommender=Offered((version,)))

    offer_version(
        f"connector{VERSION}",
        version_of(plugins, given.get("connector.class"), (Kind(kind),) if kind else ()),
    )
    for side, wanted in SIDES.items():
        name = f"{side}.converter"
        change(name, recommender=Offered(names_of(plugins, wanted)))
        if side == "header" and definition.keys[name].default is None:
            change(name, default=HEADER_DEFAULT)
        used = given.get(name) or definition.keys[name].default
        offer_version(f"{name}{VERSION}", version_of(plugins, used, (wanted,)))


# -- transforms and predicates -----------------------------------------------------------------------


def add_aliases(definition: ConfigDef, given: Mapping[str, str], plugins: Plugins) -> list[tuple[str, str]]:
    """Add the settings of transforms and predicates; returns errors by setting."""
    problems: list[tuple[str, str]] = []
    for word, title, kind in (
        ("transforms", "Transformation", Kind.TRANSFORMATION),
        ("predicates", "Predicate", Kind.PREDICATE),
    ):
        for alias in dict.fromkeys(aliases(given, word)[:ALIASES_MAX]):
            prefix, group = f"{word}.{alias}.", f"{word.capitalize()}: {alias}"
            definition.define(
                f"{prefix}type", "CLASS", importance="HIGH", doc="Its class.", group=group, width="LONG",
                display_name=f"{title} type for {alias}", order=0,
                recommender=Offered(names_of(plugins, kind)),
            )  # fmt: skip
            version = version_of(plugins, given.get(f"{prefix}type"), (kind,))
            definition.define(
                f"{prefix}plugin.version", "STRING", version, "HIGH", "Its version.", group, "LONG",
                f"{title} version for {alias}", order=1,
                recommender=Offered((version,)) if version is not None else None,
            )  # fmt: skip
            if kind is Kind.TRANSFORMATION:
                problems += predicate_problems(given, prefix)
            child = ConfigDef()
            problems += add_plugin(child, given, plugins, f"{prefix}type", kind)
            definition.embed(prefix, group, 2, child)
            problems += plugin_problems(given, plugins, prefix, kind)
    return problems


def add_plugin(
    child: ConfigDef, given: Mapping[str, str], plugins: Plugins, setting: str, kind: Kind
) -> list[tuple[str, str]]:
    name = given.get(setting)
    if name is None:
        return []
    try:
        own = getattr(plugins.load(name, kind), "CONFIG", None)
    except ConnectError:
        return [(setting, no_class(setting, name, kind, plugins))]
    if kind is Kind.TRANSFORMATION:
        child.define("predicate", "STRING", None, "MEDIUM", "Alias of a predicate.")
        child.define("negate", "BOOLEAN", "false", "MEDIUM", "Negate the predicate.")
    for key in own if isinstance(own, ConfigDef) else ():
        child.add(key)
    return []


def plugin_problems(
    given: Mapping[str, str], plugins: Plugins, prefix: str, kind: Kind
) -> list[tuple[str, str]]:
    """Errors that only the plugin itself sees in its settings, as a type that Cast does not know."""
    own = {name.removeprefix(prefix): text for name, text in given.items() if name.startswith(prefix)}
    try:
        found = plugins.load(own.pop("type"), kind)
        if isinstance(found.CONFIG, ConfigDef) and any(each.errors for each in found.CONFIG.validate(own)):
            return []
        found().configure(own)
    except (KeyError, ConnectError):
        return []
    except ConfigError as error:
        return [(prefix + (name or "type"), text) for name, texts in error.errors.items() for text in texts]
    return []


def predicate_problems(given: Mapping[str, str], prefix: str) -> list[tuple[str, str]]:
    predicate = given.get(f"{prefix}predicate", "").strip()
    name = f"{prefix}predicate"
    if predicate and predicate not in aliases(given, "predicates"):
        reason = "no such predicate is defined: add it to predicates"
        return [(name, f"Invalid value {predicate} for configuration {name}: {reason}")]
    if not predicate and f"{prefix}negate" in given:
        reason = f"there is no config '{name}' defining a predicate to be negated."
        return [(f"{prefix}type", f"Config '{prefix}negate' was provided but {reason}")]
    return []


# -- converters --------------------------------------------------------------------------------------


def converter_settings(
    given: Mapping[str, str], plugins: Plugins
) -> tuple[list[tuple[ConfigKey, ConfigValue]], list[tuple[str, str]]]:
    """Settings of the converters that the connector names itself, and errors by setting."""
    found: list[tuple[ConfigKey, ConfigValue]] = []
    problems: list[tuple[str, str]] = []
    for side, kind in SIDES.items():
        setting, prefix = f"{side}.converter", f"{side}.converter."
        name = given.get(setting)
        if name is None:
            continue
        try:
            definition = plugins.load(name, kind).CONFIG
        except ConnectError:
            problems.append((setting, no_class(setting, name, kind, plugins)))
            continue
        own = {key.removeprefix(prefix): text for key, text in given.items() if key.startswith(prefix)}
        for value in definition.validate({"converter.type": side, **own}):
            key = definition.keys.get(value.name)
            if key is not None:
                full = prefix + value.name
                found.append((replace(key, name=full), replace(value, name=full)))
    return found, problems


# -- Kafka's clients ---------------------------------------------------------------------------------


def client_kinds(kind: str, given: Mapping[str, str]) -> tuple[str, ...]:
    """The clients that tasks of a connector have."""
    if kind == "source":
        makes_topics = any(name.startswith("topic.creation.default.") for name in given)
        return ("producer", "admin") if makes_topics else ("producer",)
    has_letters = bool(given.get("errors.deadletterqueue.topic.name", "").strip())
    return ("consumer", "producer", "admin") if has_letters else ("consumer",)


def override_settings(
    kind: str, given: Mapping[str, str], worker: Mapping[str, str]
) -> list[tuple[ConfigKey | None, ConfigValue]]:
    """Client overrides: those of clients that the connector has, and those that are refused."""
    policy = worker.get("connector.client.config.override.policy", "All").rpartition(".")[2]
    policy = policy.removesuffix("ConnectorClientConfigOverridePolicy")
    allowed = aliases(worker, "connector.client.config.override.allowlist")
    used = client_kinds(kind, given)
    found: list[tuple[ConfigKey | None, ConfigValue]] = []
    for name, text in given.items():
        client, dot, short = name.partition(".override.")
        if client not in ("producer", "consumer", "admin") or not dot or not short:
            continue
        value = ConfigValue(name, text)
        permitted = {"All": True, "None": False, "Principal": short in PRINCIPAL}.get(
            policy, short in allowed
        )
        if not permitted:
            shown = HIDDEN if is_secret(name) else text
            reason = f"The '{policy}' policy does not allow '{short}' to be overridden here."
            value.errors.append(f"Invalid value {shown} for configuration {name}: {reason}")
        try:
            value.value = override_value(client, short, text)
        except ConfigError as error:
            value.errors.append(error.message)
        key = client_settings(client).get(short)
        if client in used or value.errors:
            found.append((None if key is None else replace(key, name=name), value))
    return found
