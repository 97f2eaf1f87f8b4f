"""The address of an HDFS: which namenodes answer over HTTP, below which folder, for which user.

In: a URL (`hdfs://`, `webhdfs://`, `swebhdfs://`), addresses that the user gave, the folder of Hadoop's
settings. Out: HTTP addresses, a root, a user; ConnectError where the URL leads nowhere. Does not know:
requests.
"""

from __future__ import annotations

import getpass
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

from barnabas.connect.plugins import ConnectError

SCHEMES = ("hdfs", "webhdfs", "swebhdfs")
HTTP_PORT, HTTPS_PORT = 9870, 9871  # of namenodes since Hadoop 3
FILES = ("core-site.xml", "hdfs-site.xml")


@dataclass(frozen=True, slots=True)
class HdfsPlace:
    namenodes: tuple[str, ...]  # http://host:port, one of them is active
    root: str  # `/` or `/data/lake`
    user: str


def is_hdfs(url: str) -> bool:
    return url.partition("://")[0] in SCHEMES


def place_of(url: str, given: Sequence[str], conf_dir: str, user: str) -> HdfsPlace:
    conf = conf_in(conf_dir) if conf_dir else {}
    scheme, _, rest = url.partition("://")
    if rest.startswith("/") or not rest:  # hdfs:///data: the cluster of fs.defaultFS
        default = conf.get("fs.defaultFS", "")
        if not is_hdfs(default):
            raise ConnectError(
                f"{url} names no namenode: write {scheme}://host:port/…, or set hadoop.conf.dir to a folder"
                " whose core-site.xml has fs.defaultFS"
            )
        url = f"{default.rstrip('/')}{rest}"
    found = urlsplit(url)
    try:
        port = found.port
    except ValueError as error:
        raise ConnectError(f"{url} is no address of HDFS: {error}") from None
    if not found.hostname:
        raise ConnectError(f"{url} is no address of HDFS: write {scheme}://host:port/…")
    host = found.hostname
    namenodes = checked(given) or known_in(conf, host) or by_default(found.scheme, host, port)
    user = user or found.username or os.environ.get("HADOOP_USER_NAME") or own_user()
    return HdfsPlace(namenodes, "/" + unquote(found.path).strip("/"), user)


def checked(given: Sequence[str]) -> tuple[str, ...]:
    for each in given:
        if urlsplit(each).scheme not in ("http", "https"):
            raise ConnectError(f"barnabas.webhdfs.url {each!r} must begin with http:// or https://")
    return tuple(each.rstrip("/").removesuffix("/webhdfs/v1") for each in given)


def by_default(scheme: str, host: str, port: int | None) -> tuple[str, ...]:
    """The port of hdfs:// is that of Hadoop's own protocol, those of the others are for HTTP."""
    host = f"[{host}]" if ":" in host else host
    if scheme == "swebhdfs":
        return (f"https://{host}:{port or HTTPS_PORT}",)
    return (f"http://{host}:{(port if scheme == 'webhdfs' else None) or HTTP_PORT}",)


def known_in(conf: Mapping[str, str], host: str) -> tuple[str, ...]:
    """Addresses of a name service (high availability), or of the one namenode."""
    is_tls = conf.get("dfs.http.policy") == "HTTPS_ONLY"
    setting = f"dfs.namenode.http{'s' if is_tls else ''}-address"
    members = [each.strip() for each in conf.get(f"dfs.ha.namenodes.{host}", "").split(",") if each.strip()]
    names = [f"{setting}.{host}.{each}" for each in members]
    if not names:
        names = [each for each in (f"{setting}.{host}", setting) if each in conf][:1]
    found = []
    for name in names:
        address = conf.get(name, "")
        if not address or "${" in address:
            raise ConnectError(f"{name} in hadoop.conf.dir is {address!r}: host:port is needed")
        named, _, port = address.rpartition(":")
        own = host if named in ("", "0.0.0.0", "[::]") else named
        found.append(f"http{'s' if is_tls else ''}://{own}:{port}")
    return tuple(found)


def conf_in(folder: str) -> dict[str, str]:
    """Settings of Hadoop's files; the later file wins."""
    found: dict[str, str] = {}
    paths = [path for name in FILES if (path := Path(folder) / name).exists()]
    if not paths:
        raise ConnectError(f"hadoop.conf.dir {folder} has neither {' nor '.join(FILES)}")
    for path in paths:
        try:
            root = ElementTree.parse(path).getroot()
        except (OSError, ElementTree.ParseError) as error:
            raise ConnectError(f"{path} cannot be read: {error}") from error
        for each in root.iter("property"):
            name, value = each.findtext("name"), each.findtext("value")
            if name and value is not None:
                found[name.strip()] = value.strip()
    return found


def own_user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        raise ConnectError("barnabas.hdfs.user is needed: this process has no user name") from None
