"""A key distribution centre of Kerberos for tests: a realm on loopback, files in a temporary folder."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Self

from barnabas.testing.ports import free_ports
from barnabas.testing.waiting import wait_until

REALM = "BARNABAS.TEST"
HOST = "localhost"
CLIENT = f"alice@{REALM}"
SERVICE = f"kafka/{HOST}@{REALM}"
PROGRAMS = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit")
PLACES = "/usr/sbin:/usr/local/sbin:/opt/homebrew/opt/krb5/sbin"


def missing() -> str | None:
    """Why no KDC can run here; None if it can."""
    absent = [name for name in PROGRAMS if program(name) is None]
    if absent:
        return f"Kerberos is not installed ({', '.join(absent)} missing): make tools"
    try:
        import gssapi  # noqa: F401
    except ImportError as error:
        return f"the package gssapi is missing ({error}): pip install 'barnabas[kerberos]'"
    return None


def program(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:{PLACES}")


class Kdc:
    """`with Kdc() as kdc:` has principals, each with a key table, and an environment for programs."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="barnabas-kdc-"))
        (self.port,) = free_ports(1)
        self.environment = {
            "KRB5_CONFIG": str(self.folder / "krb5.conf"),
            "KRB5_KDC_PROFILE": str(self.folder / "kdc.conf"),
            "KRB5CCNAME": f"FILE:{self.folder}/tickets",
        }
        # Clients that know no key tables of their own log in with this one.
        self.environment["KRB5_CLIENT_KTNAME"] = f"{self.folder}/{CLIENT}.keytab"
        self._process: subprocess.Popen[bytes] | None = None

    def key_table(self, principal: str) -> str:
        """A file with the key of a principal, which is created the first time."""
        file = self.folder / f"{principal.replace('/', '-')}.keytab"
        if not file.exists():
            self._admin(f"addprinc -randkey {principal}")
            self._admin(f"ktadd -k {file} {principal}")
        return str(file)

    def options(self, principal: str) -> dict[str, str]:
        """Options of a JAAS entry for a client or a broker with the key of this principal."""
        return {
            "useKeyTab": "true",
            "storeKey": "true",
            "useTicketCache": "false",
            "keyTab": self.key_table(principal),
            "principal": principal,
        }

    def jaas(self, principal: str) -> str:
        options = " ".join(f'{name}="{value}"' for name, value in self.options(principal).items())
        return f"com.sun.security.auth.module.Krb5LoginModule required {options};"

    def __enter__(self) -> Self:
        (self.folder / "krb5.conf").write_text(
            f"""[libdefaults]
default_realm = {REALM}
dns_lookup_realm = false
dns_lookup_kdc = false
dns_canonicalize_hostname = false
rdns = false
udp_preference_limit = 1
[realms]
{REALM} = {{
  kdc = 127.0.0.1:{self.port}
}}
[domain_realm]
localhost = {REALM}
"""
        )
        (self.folder / "kdc.conf").write_text(
            f"""[kdcdefaults]
kdc_listen = 127.0.0.1:{self.port}
kdc_tcp_listen = 127.0.0.1:{self.port}
[realms]
{REALM} = {{
  database_name = {self.folder}/principal
  key_stash_file = {self.folder}/stash
  acl_file = {self.folder}/acl
  max_life = 1h
  supported_enctypes = aes256-cts:normal aes128-cts:normal
}}
[logging]
kdc = FILE:{self.folder}/kdc.log
"""
        )
        self._run("kdb5_util", "create", "-s", "-r", REALM, "-P", "only for tests")
        self._process = subprocess.Popen(
            [program("krb5kdc") or "krb5kdc", "-n", "-P", f"{self.folder}/pid"],
            env=os.environ | self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_until(self._answers, 20, "the KDC listens")
        self.key_table(CLIENT)
        return self

    def _answers(self) -> bool:
        assert self._process is not None and self._process.poll() is None, (
            self.folder / "kdc.log"
        ).read_text()
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _admin(self, query: str) -> None:
        self._run("kadmin.local", "-r", REALM, "-q", query)

    def _run(self, name: str, *arguments: str) -> None:
        done = subprocess.run(
            [program(name) or name, *arguments],
            env=os.environ | self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, f"{name}: {done.stdout}{done.stderr}"
