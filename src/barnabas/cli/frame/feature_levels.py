"""Feature levels, for `features` and `storage`: the levels of a release, and the dependencies of a level.

In: a release, `name=level` texts. Out: lines. Does not know: clusters.
"""

from collections.abc import Iterator

from barnabas.cli.frame.parsing import ToolError
from barnabas.metadata import versions

ORDER = (
    versions.KRAFT_VERSION,
    versions.TRANSACTION_VERSION,
    versions.GROUP_VERSION,
    versions.ELR_VERSION,
    versions.SHARE_VERSION,
    versions.STREAMS_VERSION,
)
NEEDS = {(versions.ELR_VERSION, 1): (versions.METADATA_VERSION, versions.ELIGIBLE_LEADER_REPLICAS)}
LEVEL_MAX = 2**15 - 1


def level_of_release(release: str) -> int:
    """The `metadata.version` level of a release, such as `4.3` or `4.3-IV0`."""
    level = versions.release_level(release)
    if level is None:
        known = ", ".join(versions.RELEASES)
        raise ToolError(f"Unknown metadata.version '{release}'. Supported metadata.version are: {known}")
    return level


def defaults(level: int) -> dict[str, int]:
    """The other features, with their levels, of a new cluster with this `metadata.version`."""
    found = {name: versions.FEATURES[name].default_level(level) for name in ORDER}
    found[versions.KRAFT_VERSION] = 1 if level >= versions.RELEASES["3.9-IV0"] else 0
    return found


def mapping_lines(release: str | None) -> Iterator[str]:
    """The feature levels of a release (default: the newest)."""
    level = versions.LATEST_LEVEL if release is None else level_of_release(release)
    yield f"{versions.METADATA_VERSION}={level} ({release or versions.release_name(level)})"
    for name, default in defaults(level).items():
        yield f"{name}={default}"


def name_and_level(text: str) -> tuple[str, int]:
    """Parse `metadata.version=30`, as `features` accepts it."""
    name, equals, level = text.partition("=")
    if not equals:
        raise ToolError(f"Can't parse feature=level string {text}: equals sign not found.")
    try:
        number = int(level)
    except ValueError:
        number = LEVEL_MAX + 1
    if not -LEVEL_MAX <= number <= LEVEL_MAX:
        raise ToolError(
            f"Can't parse feature=level string {text}: unable to parse {level.strip()} as a short."
        )
    return name.strip(), number


def dependency_lines(name: str, level: int, unknown_level: str) -> Iterator[str]:
    """The dependencies of a feature level; `unknown_level` is the message for a level that does not exist."""
    if name == versions.METADATA_VERSION:
        if level not in versions.RELEASES.values():
            raise ToolError(f"Unknown metadata.version {level}")
        yield f"{name}={level} ({versions.release_name(level)}) has no dependencies."
        return
    if name not in versions.FEATURES:
        raise ToolError(f"Unknown feature: {name}")
    if not 0 <= level <= versions.FEATURES[name].max_level:
        raise ToolError(unknown_level.format(name=name, level=level))
    need = NEEDS.get((name, level))
    if need is None:
        yield f"{name}={level} has no dependencies."
        return
    yield f"{name}={level} requires:"
    yield f"    {need[0]}={need[1]} ({versions.release_name(need[1])})"
