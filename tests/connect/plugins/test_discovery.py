"""Plugins are found by every name that a configuration may give them, and by no other."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from barnabas.connect.data import INT64, STRING, struct
from barnabas.connect.plugins import (
    CONNECTORS,
    Connector,
    Kind,
    Known,
    PluginLoadError,
    Plugins,
    SourceContext,
    UnknownPluginError,
    source,
)

JAVA = "org.example.FileThingSourceConnector"


def plugins_with(*known: Known) -> Plugins:
    plugins = Plugins()
    plugins._known = list(known)
    plugins._by_spelling = {}
    for each in known:
        for spelling in each.spellings():
            plugins._by_spelling.setdefault(spelling, []).append(each)
    return plugins


@pytest.mark.parametrize(
    "name", [JAVA, "FileThingSourceConnector", "FileThingSource", "my.files:Thing", "Thing"]
)
def test_a_connector_is_found_by_all_its_names(name: str) -> None:
    thing = Known(Kind.SOURCE, "my.files:Thing", (JAVA,))
    assert plugins_with(thing).find(name) is thing


def test_a_converter_of_headers_is_found_as_apache_finds_it() -> None:
    found = {Plugins().find(name, (Kind.HEADER_CONVERTER,)).name for name in ("String", "StringConverter")}
    assert found == {"org.apache.kafka.connect.storage.StringConverter"}


def test_unknown_names_are_refused_with_what_is_known() -> None:
    plugins = plugins_with(Known(Kind.SOURCE, "my.files:Thing", (JAVA,)))
    with pytest.raises(UnknownPluginError, match="no connector is called 'org.example.Other'.*" + JAVA):
        plugins.find("org.example.Other")
    with pytest.raises(UnknownPluginError, match="no transformation is called"):
        plugins.find(JAVA, (Kind.TRANSFORMATION,))


def test_a_short_name_that_means_two_plugins_is_refused() -> None:
    one, two = Known(Kind.SINK, "a:One", ("x.Copy",)), Known(Kind.SINK, "b:Two", ("y.Copy",))
    plugins = plugins_with(one, two)
    with pytest.raises(UnknownPluginError):
        plugins.find("Copy")
    assert plugins.find("y.Copy") is two


def test_modules_of_plugin_path_may_be_named_and_no_others(tmp_path: Path) -> None:
    (tmp_path / "my_numbers_plugin.py").write_text(
        "from barnabas.connect.plugins import source\n"
        "@source(topic='numbers')\ndef numbers():\n    yield {'n': 1}\n"
    )
    plugins = Plugins([str(tmp_path)])
    assert plugins.find("my_numbers_plugin:numbers", CONNECTORS).kind is Kind.SOURCE
    assert issubclass(plugins.connector("my_numbers_plugin.numbers"), Connector)
    with pytest.raises(UnknownPluginError):
        plugins.find("json:loads")


def test_a_plugin_that_cannot_be_imported_says_why() -> None:
    with pytest.raises(PluginLoadError, match=r"x\.Gone cannot be loaded from no_such_module:Gone"):
        Known(Kind.SINK, "no_such_module:Gone", ("x.Gone",)).load()


class Offsets:
    def __init__(self, offset: dict[str, int] | None) -> None:
        self.offset = offset

    def read(self, partitions: object) -> list[dict[str, int] | None]:
        return [self.offset]


def run_once(connector: type[Connector], offset: dict[str, int] | None) -> tuple[list[object], object]:
    settings = connector.CONFIG.parse({"poll.interval.ms": "0"})
    task = connector.task()
    stopping = threading.Event()
    task.start(SourceContext("c", 0, settings, {}, stopping, offsets=Offsets(offset), poll_seconds=5))  # type: ignore[arg-type]
    records = task.poll()  # type: ignore[union-attr]
    task.stop()
    return ([], None) if records is None else (records.values.pylist(), records.positions[-1][1])


def test_a_generator_is_a_source_that_goes_on_where_it_was() -> None:
    @source(topic="t", key="n", schema=struct(n=INT64, text=STRING))
    def counted():  # type: ignore[no-untyped-def]
        for n in range(5):
            yield {"n": n, "text": str(n)}

    rows, offset = run_once(counted, {"count": 3})
    assert rows == [{"n": 3, "text": "3"}, {"n": 4, "text": "4"}]
    assert offset == {"count": 5}

    @source(topic="t")
    def with_offsets(context, offset):  # type: ignore[no-untyped-def]
        yield {"n": 7}, {"at": (offset or {"at": 0})["at"] + 1}

    assert run_once(with_offsets, {"at": 41}) == ([{"n": 7}], {"at": 42})
