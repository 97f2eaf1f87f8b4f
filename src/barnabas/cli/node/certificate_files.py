"""Files with certificates for development: an authority, and what it issues, in one folder.

In: a folder, names, host names, days. Out: PEM and PKCS12 files, and properties files that name them. Files
with keys can be read by their owner alone. A second call keeps the authority and issues more.
"""

from __future__ import annotations

import datetime
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from barnabas.cli.frame.parsing import ToolError

AUTHORITY = "ca"
HOSTS = ("localhost", "127.0.0.1", "::1")
PASSWORD = "changeit"  # of PKCS12 files, which some programs refuse without one; Java's own custom


def local_hosts() -> list[str]:
    """Names and addresses under which this machine is reached by itself and its neighbours."""
    return list(dict.fromkeys([*HOSTS, socket.gethostname(), socket.getfqdn()]))


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    folder: Path
    days: int
    password: str = PASSWORD

    @property
    def authority_file(self) -> Path:
        return self.folder / f"{AUTHORITY}.pem"

    def make_authority(self) -> bool:
        """Make the authority unless there is one. Returns whether it was made."""
        from barnabas.security.tls.certificates import new_authority

        if self.authority_file.exists() and self._authority_key.exists():
            return False
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ToolError(f"cannot make the folder {self.folder}: {error.strerror}") from None
        made = new_authority("CN=Barnabas development CA", now(), self.days)
        self._write(self._authority_key, made.key_pem)
        self._write(self.authority_file, made.certificate_pem, is_secret=False)
        self._write(
            self.folder / "truststore.p12", made.trust_pkcs12(AUTHORITY, self.password), is_secret=False
        )
        return True

    def issue(self, name: str, hosts: Sequence[str] = ()) -> Path:
        """A certificate: of a broker with these hosts, or of a client. Returns its PEM file."""
        from barnabas.security.tls.certificates import issue, load_authority

        if not name or "/" in name or name in (AUTHORITY, ".", ".."):
            raise ToolError(f"{name!r} cannot be the name of a certificate: use letters, digits and dashes")
        try:
            authority = load_authority(self._authority_key.read_bytes(), self.authority_file.read_bytes())
            made = issue(authority, f"CN={name}", now(), hosts=hosts, days=self.days)
        except (OSError, ValueError) as error:
            raise ToolError(f"the authority in {self.folder} cannot be used: {error}") from None
        path = self.folder / f"{name}.pem"
        self._write(path, made.key_pem + made.chain_pem)
        self._write(self.folder / f"{name}.p12", made.pkcs12(name, self.password))
        return path

    def trust_properties(self) -> dict[str, str]:
        return {
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority_file.absolute()),
        }

    def key_properties(self, name: str) -> dict[str, str]:
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str((self.folder / f"{name}.pem").absolute()),
        }

    def write_properties(self, name: str, properties: Mapping[str, str]) -> Path:
        path = self.folder / f"{name}.properties"
        write_properties(path, properties)
        return path

    @property
    def _authority_key(self) -> Path:
        return self.folder / f"{AUTHORITY}.key"

    def _write(self, path: Path, data: bytes, *, is_secret: bool = True) -> None:
        write(path, data, is_secret=is_secret)


def write_properties(path: Path, properties: Mapping[str, str]) -> None:
    text = "".join(f"{name}={value}\n" for name, value in properties.items())
    write(path, text.encode(), is_secret=True)


def write(path: Path, data: bytes, *, is_secret: bool) -> None:
    """Write a file; one with a secret is never readable for others, not for a moment."""
    mode = 0o600 if is_secret else 0o644
    try:
        path.unlink(missing_ok=True)
        with open(path, "wb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            file.write(data)
    except OSError as error:
        raise ToolError(f"cannot write {path}: {error.strerror}") from None


def now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)
