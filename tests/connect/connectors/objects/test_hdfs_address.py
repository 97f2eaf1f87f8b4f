"""Addresses of HDFS: URLs, ports, users, and the files of Hadoop's settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.connect.connectors.objects.hdfs_address import HdfsPlace, is_hdfs, place_of
from barnabas.connect.plugins import ConnectError


def test_urls_lead_to_the_http_ports_of_namenodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HADOOP_USER_NAME", "hive")
    for url, address, root in (
        ("hdfs://nn:8020/data/lake/", "http://nn:9870", "/data/lake"),
        ("hdfs://nn", "http://nn:9870", "/"),
        ("webhdfs://nn:50070/a%20b", "http://nn:50070", "/a b"),
        ("swebhdfs://nn/x", "https://nn:9871", "/x"),
        ("hdfs://[::1]:8020/x", "http://[::1]:9870", "/x"),
    ):
        assert is_hdfs(url) and place_of(url, [], "", "") == HdfsPlace((address,), root, "hive")
    assert place_of("hdfs://me@nn/x", [], "", "").user == "me"
    given = ["https://gate:14000/webhdfs/v1/", "http://nn2:9870"]
    found = place_of("hdfs://nn/x", given, "", "you")
    assert found == HdfsPlace(("https://gate:14000", "http://nn2:9870"), "/x", "you")
    assert not is_hdfs("/data") and not is_hdfs("file:///data")


def settings(folder: Path, name: str, **values: str) -> None:
    rows = "".join(
        f"<property><name>{key.replace('_', '.')}</name><value>{value}</value></property>"
        for key, value in values.items()
    )
    (folder / name).write_text(f'<?xml version="1.0"?><configuration>{rows}</configuration>')


def test_a_name_service_leads_to_all_of_its_namenodes(tmp_path: Path) -> None:
    settings(tmp_path, "core-site.xml", fs_defaultFS="hdfs://lake")
    settings(
        tmp_path,
        "hdfs-site.xml",
        dfs_nameservices="lake",
        dfs_ha_namenodes_lake="one, two",
        **{"dfs_namenode_http-address_lake_one": "a:9870", "dfs_namenode_http-address_lake_two": "b:9870"},
    )
    for url in ("hdfs:///data", "hdfs://lake/data"):
        found = place_of(url, [], str(tmp_path), "u")
        assert found == HdfsPlace(("http://a:9870", "http://b:9870"), "/data", "u")


def test_one_namenode_may_listen_on_all_addresses_and_with_tls_only(tmp_path: Path) -> None:
    settings(
        tmp_path,
        "hdfs-site.xml",
        dfs_http_policy="HTTPS_ONLY",
        **{"dfs_namenode_https-address": "0.0.0.0:9999"},
    )
    assert place_of("hdfs://nn/", [], str(tmp_path), "u").namenodes == ("https://nn:9999",)
    settings(tmp_path, "hdfs-site.xml", **{"dfs_namenode_http-address": "${host}:1"})
    with pytest.raises(ConnectError, match="host:port is needed"):
        place_of("hdfs://nn/", [], str(tmp_path), "u")


def test_addresses_that_lead_nowhere_say_so(tmp_path: Path) -> None:
    for url, given, folder, text in (
        ("hdfs:///data", [], "", "names no namenode: write hdfs://host:port"),
        ("hdfs://nn:port/", [], "", "is no address of HDFS"),
        ("hdfs://nn/", ["nn:9870"], "", "must begin with http"),
        ("hdfs://nn/", [], str(tmp_path), "has neither core-site.xml nor hdfs-site.xml"),
    ):
        with pytest.raises(ConnectError, match=text):
            place_of(url, given, folder, "u")
    (tmp_path / "core-site.xml").write_text("<configuration>")
    with pytest.raises(ConnectError, match="cannot be read"):
        place_of("hdfs://nn/", [], str(tmp_path), "u")
