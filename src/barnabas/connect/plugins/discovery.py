"""Discovery of plugins: those of this package, entry points, modules in folders of `plugin.path`.

In: a name as it stands in a configuration: a Java class, a simple name, one without its suffix, or
`module:Class`. Out: the plugin, loaded when it is asked for. Names that mean two plugins are refused like
unknown ones, with the names that are right. Does not know: what plugins do.
"""

from __future__ import annotations

import logging
import pkgutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from barnabas.connect.plugins.connector import Connector
from barnabas.connect.plugins.errors import PluginLoadError, UnknownPluginError
from barnabas.connect.plugins.known import CONNECTORS, Kind, Known

log = logging.getLogger(__name__)

ROOMS = ("barnabas.connect.convert", "barnabas.connect.transforms")
CONNECTOR_ROOMS = "barnabas.connect.connectors"
GROUPS = {  # of entry points; connectors say themselves whether they are sources or sinks
    "barnabas.connectors": None,
    "barnabas.transforms": Kind.TRANSFORMATION,
    "barnabas.predicates": Kind.PREDICATE,
    "barnabas.converters": Kind.CONVERTER,
    "barnabas.header_converters": Kind.HEADER_CONVERTER,
}

SHIPPED = "barnabas-plugins-"  # begins the name of the archive of modules that executors get


class Plugins:
    """All plugins of a process. `folders` are those of `plugin.path`: their modules may be named."""

    def __init__(self, folders: Iterable[str] = ()) -> None:
        self._folders = [Path(each).resolve() for each in folders if each.strip()]
        self.folders = tuple(map(str, self._folders))
        self._known = [*own_plugins(), *installed_plugins()]
        for folder in self._folders:
            if folder.is_dir() and str(folder) not in sys.path:
                sys.path.append(str(folder))
        self._by_spelling: dict[str, list[Known]] = {}
        for each in self._known:
            for spelling in each.spellings():
                self._by_spelling.setdefault(spelling, []).append(each)

    def list(self, kinds: Sequence[Kind] = tuple(Kind)) -> list[Known]:
        """All plugins of these kinds, by kind and name."""
        order = list(Kind)
        found = [each for each in self._known if each.kind in kinds]
        return sorted(found, key=lambda each: (order.index(each.kind), each.name))

    def find(self, name: str, kinds: Sequence[Kind] = CONNECTORS) -> Known:
        """The plugin that a name means. UnknownPluginError lists what is known."""
        wanted = name.strip()
        found = [each for each in self._by_spelling.get(wanted, ()) if each.kind in kinds]
        exact = [each for each in found if wanted in (*each.names, each.target)]
        for some in (exact, found):
            if len({each.target for each in some}) == 1:
                return some[0]
        mine = self._in_folders(wanted, kinds)
        if mine is not None:
            return mine
        word = "connector" if tuple(kinds) == CONNECTORS else " or ".join(kinds).replace("_", " ")
        raise UnknownPluginError(word, name, {each.name for each in self.list(kinds)})

    def connector(self, name: str) -> type[Connector]:
        """The class of a connector."""
        found: type[Connector] = self.find(name, CONNECTORS).load()
        return found

    def load(self, name: str, kind: Kind) -> Any:
        return self.find(name, (kind,)).load()

    def _in_folders(self, name: str, kinds: Sequence[Kind]) -> Known | None:
        """`module:Class` or `module.Class` where the module lies in a folder of `plugin.path`.

        Other modules are not imported: a request must not make a worker import whatever it names.
        """
        module, _, attribute = name.partition(":") if ":" in name else name.rpartition(".")
        top = module.partition(".")[0]
        if not (module and attribute and all(part.isidentifier() for part in module.split("."))):
            return None
        if not self._has(top):
            return None
        target = f"{module}:{attribute}"
        if kinds[0] in CONNECTORS:
            loaded = Known(Kind.SOURCE, target).load()
            return Known(Kind(loaded.KIND), target, (), loaded.VERSION)
        return Known(kinds[0], target)

    def _has(self, top: str) -> bool:
        """Whether a folder has the module, or the archive of these folders that an executor got."""
        if any((folder / f"{top}.py").is_file() or (folder / top).is_dir() for folder in self._folders):
            return True
        if not self._folders or top in sys.builtin_module_names:
            return False
        spec = find_spec(top)
        return spec is not None and any(part.startswith(SHIPPED) for part in Path(spec.origin or "").parts)


def own_plugins() -> Iterator[Known]:
    """Plugins that the rooms of this package list."""
    rooms = list(ROOMS)
    if find_spec(CONNECTOR_ROOMS) is not None:
        package = import_module(CONNECTOR_ROOMS)
        rooms += [
            f"{CONNECTOR_ROOMS}.{each.name}" for each in pkgutil.iter_modules(package.__path__) if each.ispkg
        ]
    for room in rooms:
        if find_spec(room) is not None and find_spec(f"{room}.known") is not None:
            yield from import_module(f"{room}.known").PLUGINS


def installed_plugins() -> Iterator[Known]:
    """Entry points of installed packages. One that cannot be loaded is left out, and the log says why."""
    for group, kind in GROUPS.items():
        for point in entry_points(group=group):
            try:
                yield of_entry_point(point, kind)
            except Exception as error:
                log.warning("entry point %s of %s is left out: %s", point.name, group, error)


def of_entry_point(point: EntryPoint, kind: Kind | None) -> Known:
    if point.value.count(":") != 1:
        raise PluginLoadError(f"{point.value!r} must be package.module:Class")
    version = point.dist.version if point.dist is not None else ""
    if kind is not None:
        return Known(kind, point.value, (point.name,), version)
    found = point.load()
    names = (*found.JAVA_NAMES, point.name)
    return Known(Kind(found.KIND), point.value, names, found.VERSION)
