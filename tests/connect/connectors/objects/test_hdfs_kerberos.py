"""The sink and the source on an HDFS that wants Kerberos (Hadoop's own servers, and a KDC of MIT)."""

from __future__ import annotations

import base64
import os
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.connect.connectors.contexts import Offsets, started_sink, started_source
from tests.security.kdc import CLIENT, HOST, REALM, Kdc, missing
from tests.stores import java_servers
from tests.stores.java_servers import Hdfs

from barnabas.connect.connectors.objects.connectors import HdfsSinkConnector
from barnabas.connect.connectors.objects.hdfs_kerberos import Negotiate, challenge
from barnabas.connect.connectors.objects.object_source import HdfsSourceConnector
from barnabas.connect.data import INT64, Column, Records, struct
from barnabas.connect.plugins import ConnectError, RetriableError

SCHEMA = struct(name="Row", id=INT64)


@pytest.fixture(scope="module")
def kdc() -> Iterator[Kdc]:
    reason = missing()
    if reason is not None:
        pytest.skip(reason)
    with Kdc() as started, pytest.MonkeyPatch.context() as patch:
        for name, value in started.environment.items():
            if name != "KRB5_CLIENT_KTNAME":  # the connector's own settings must do
                patch.setenv(name, value)
        yield started


@pytest.fixture(scope="module")
def hdfs(kdc: Kdc) -> Iterator[Hdfs]:
    reason = java_servers.HDFS.available()
    if reason is not None:
        pytest.skip(f"no HDFS: {reason}")
    server, web = f"hdfs/{HOST}@{REALM}", f"HTTP/{HOST}@{REALM}"
    secret = kdc.folder / "signature"
    secret.write_text("of cookies in tests")
    more = {
        "hadoop.http.authentication.type": "kerberos",
        "hadoop.http.authentication.kerberos.principal": web,
        "hadoop.http.authentication.kerberos.keytab": kdc.key_table(web),
        "hadoop.http.authentication.signature.secret.file": str(secret),
        "hadoop.security.authentication": "kerberos",
        "hadoop.security.authorization": "true",
        "dfs.namenode.kerberos.principal": server,
        "dfs.namenode.keytab.file": kdc.key_table(server),
        "dfs.datanode.kerberos.principal": server,
        "dfs.datanode.keytab.file": kdc.key_table(server),
        "dfs.web.authentication.kerberos.principal": web,
        "dfs.web.authentication.kerberos.keytab": kdc.key_table(web),
        "dfs.block.access.token.enable": "true",
        "ignore.secure.ports.for.testing": "true",
        "dfs.namenode.http-address": "localhost:0",
        "dfs.datanode.hostname": "localhost",
    }
    flags = [f"-Djava.security.krb5.conf={kdc.environment['KRB5_CONFIG']}"]
    flags.append("--add-exports=java.security.jgss/sun.security.krb5=ALL-UNNAMED")
    with java_servers.hdfs(more, flags) as found:
        found.web_url = found.web_url.replace("127.0.0.1", HOST)
        yield found


def settings(hdfs: Hdfs, kdc: Kdc, **more: str) -> dict[str, str]:
    return {
        "hdfs.url": f"{hdfs.url}/data",
        "barnabas.webhdfs.url": hdfs.web_url,
        "hdfs.authentication.kerberos": "true",
        "connect.hdfs.principal": CLIENT,
        "connect.hdfs.keytab": kdc.key_table(CLIENT),
        "hdfs.namenode.principal": f"hdfs/_HOST@{REALM}",
        "format.class": "JsonFormat",
        **{name.replace("_", "."): value for name, value in more.items()},
    }


def put(config: dict[str, str], count: int = 20) -> None:
    task = started_sink(HdfsSinkConnector, {"flush.size": "10", "retry.backoff.ms": "100", **config})
    rows = Column.of([{"id": n} for n in range(count)], SCHEMA)
    try:
        task.put(Records.of("rows", rows, partitions=[0] * count, offsets=list(range(count))))
    finally:
        task.stop()


@pytest.mark.long
@pytest.mark.timeout(600)
def test_files_are_written_and_read_back_with_a_key_table(hdfs: Hdfs, kdc: Kdc) -> None:
    asked = {"op": "LISTSTATUS", "user.name": "root"}
    plain = httpx.get(f"{hdfs.web_url}/webhdfs/v1/data", params=asked, timeout=60)
    assert plain.status_code == 401, "the cluster wants Kerberos"
    config = settings(hdfs, kdc)
    put(config)
    task = started_source(HdfsSourceConnector, config, Offsets())
    rows = [row.value["id"] for batch in iter(task.poll, None) for row in batch.rows()]
    task.stop()
    assert rows == list(range(20))
    later = {"file.discovery.starting.timestamp": str(int(time.time() + 3600) * 1000)}
    task = started_source(HdfsSourceConnector, {**config, **later}, Offsets())
    assert task.poll() is None
    task.stop()
    login = Negotiate(CLIENT, kdc.key_table(CLIENT))
    asked = {"op": "GETFILESTATUS"}
    place = f"{hdfs.web_url}/webhdfs/v1/data/topics/rows/partition=0/rows+0+0000000000+0000000009.json"
    assert httpx.get(place, params=asked, auth=login).json()["FileStatus"]["owner"] == "alice"
    with pytest.raises(ConnectError, match=r"401.*hdfs.authentication.kerberos=true"):
        put({**config, "hdfs.authentication.kerberos": "false", "barnabas.hdfs.user": "alice"})


class Asked(httpx.MockTransport):
    """A server that asks for a login each time."""

    def __init__(self) -> None:
        self.tokens: list[bytes] = []
        super().__init__(self.respond)

    def respond(self, request: httpx.Request) -> httpx.Response:
        given = request.headers.get("authorization", "")
        if not given:
            return httpx.Response(401, headers=[("www-authenticate", "Basic realm=x, Negotiate")])
        self.tokens.append(base64.b64decode(given.removeprefix("Negotiate ")))
        return httpx.Response(200)


def test_a_login_is_a_spnego_token_for_the_host(kdc: Kdc) -> None:
    kdc.key_table(f"HTTP/{HOST}@{REALM}")
    server = Asked()
    with httpx.Client(transport=server, auth=Negotiate(CLIENT, kdc.key_table(CLIENT))) as client:
        assert client.get(f"http://{HOST}:1/a").status_code == 200
    assert server.tokens[0].startswith(b"\x60") and b"\x2b\x06\x01\x05\x05\x02" in server.tokens[0][:12]


def test_each_key_table_has_tickets_of_its_own(kdc: Kdc, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ticket of one centre is worth nothing at another one, whose principals have the same names."""

    def log_in(centre: Kdc, host: str) -> int:
        centre.key_table(f"HTTP/{host}@{REALM}")
        login = Negotiate(CLIENT, centre.key_table(CLIENT))
        with httpx.Client(transport=Asked(), auth=login) as client:
            return client.get(f"http://{host}:1/a").status_code

    assert log_in(kdc, HOST) == 200
    with Kdc() as other:
        monkeypatch.setenv("KRB5_CONFIG", other.environment["KRB5_CONFIG"])
        assert log_in(other, "other.test") == 200


@pytest.mark.parametrize(
    ("principal", "host", "message"),
    [
        (f"mallory@{REALM}", HOST, f"Kerberos cannot .*mallory@{REALM}"),
        (CLIENT, "elsewhere.test", "Kerberos cannot get a ticket for HTTP"),
    ],
)
def test_a_refused_login_fails_the_task(kdc: Kdc, principal: str, host: str, message: str) -> None:
    login = Negotiate(principal, kdc.key_table(CLIENT))
    client = httpx.Client(transport=Asked(), auth=login)
    with client, pytest.raises(ConnectError, match=message) as raised:
        client.get(f"http://{host}:1/a")
    assert not isinstance(raised.value, RetriableError)


def test_a_centre_that_is_away_is_waited_for(
    kdc: Kdc, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    conf = tmp_path / "krb5.conf"
    text = (kdc.folder / "krb5.conf").read_text()
    conf.write_text(text.replace(f"127.0.0.1:{kdc.port}", "127.0.0.1:1"))
    key_table = kdc.key_table(f"bob@{REALM}")
    monkeypatch.setenv("KRB5_CONFIG", str(conf))
    client = httpx.Client(transport=Asked(), auth=Negotiate(f"bob@{REALM}", key_table))
    with client, pytest.raises(RetriableError, match="Kerberos cannot"):
        client.get(f"http://{HOST}:1/a")


def test_settings_that_cannot_log_in_are_refused(tmp_path: Any) -> None:
    pytest.importorskip("gssapi", reason="needs the extra `kerberos`")
    with pytest.raises(ConnectError, match=r"connect.hdfs.keytab: .*cannot be read"):
        Negotiate(CLIENT, str(tmp_path / "none"))
    table = tmp_path / "table"
    table.touch()
    with pytest.raises(ConnectError, match=r"connect.hdfs.principal is needed"):
        Negotiate("", os.fspath(table))
    assert challenge(httpx.Response(401, headers={"www-authenticate": "Basic realm=x"})) is None
