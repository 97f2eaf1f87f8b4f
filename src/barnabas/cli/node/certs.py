"""certs: make an authority, and certificates of brokers and clients, for development.

In: a folder, names. Out: PEM and PKCS12 files, and properties files to use them with brokers and clients. The
first call makes the authority; later calls issue more certificates with it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError
from barnabas.cli.node.certificate_files import PASSWORD, CertificateFiles, local_hosts

EXAMPLES = (
    "",
    "--client alice --client bob",
    "--out /etc/barnabas/certs --broker broker-1 --host broker-1.example.com --host 10.0.0.1",
)
NEEDS_ARGUMENTS = False
DAYS = 825


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", default="certs", metavar="DIR", help="folder of the files (default: certs)")
    parser.add_argument(
        "--broker", action="append", metavar="NAME", help="issue a broker's certificate (default: broker)"
    )
    parser.add_argument(
        "--host",
        action="append",
        metavar="HOST",
        help="a host name or an address of the brokers, in addition to those of this machine",
    )
    parser.add_argument(
        "--client", action="append", default=[], metavar="NAME", help="issue a client's certificate"
    )
    parser.add_argument(
        "--days", type=int, default=DAYS, metavar="N", help=f"how long they are valid (default: {DAYS})"
    )
    parser.add_argument(
        "--password", default=PASSWORD, help=f"of the PKCS12 files (default: {PASSWORD}, as Java's)"
    )


def run(options: argparse.Namespace, out: Output) -> int:
    if options.days < 1:
        raise ToolError(f"--days {options.days}: certificates are valid for a day at least")
    files = CertificateFiles(Path(options.out), options.days, options.password)
    made = files.make_authority()
    out.line(f"{'Made' if made else 'Using'} the certificate authority {files.authority_file}")
    hosts = [*local_hosts(), *(options.host or [])]
    brokers = options.broker or (["broker"] if not options.client or made else [])
    for name in brokers:
        path = files.issue(name, hosts)
        settings = files.write_properties(
            name,
            {**files.key_properties(name), **files.trust_properties()},
        )
        out.line(f"Issued {path} (and .p12) for a broker at {', '.join(dict.fromkeys(hosts))}")
        out.line(f"  settings of the broker: {settings}")
    client = {"security.protocol": "SSL", **files.trust_properties()}
    for name in options.client:
        path = files.issue(name)
        settings = files.write_properties(name, {**client, **files.key_properties(name)})
        out.line(f"Issued {path} (and .p12) for the client User:CN={name}")
        out.line(f"  properties of the client: {settings}")
    settings = files.write_properties("client", client)
    out.line(f"Properties of clients without a certificate: {settings}")
    out.line("These certificates are for development. Keep the folder private: it holds the authority's key.")
    return 0
