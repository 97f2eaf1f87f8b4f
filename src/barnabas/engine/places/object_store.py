"""Opens object stores by their URL, with the settings that Spark has for them.

In: a URL, settings of Spark. Out: the client library, a store, and the prefix inside of it. S3, Google's and
Azure's stores are known. Does not know: what is kept there.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

SCHEMES = ("s3", "s3a", "gs", "abfs", "abfss", "az")
# Hadoop's names of settings, and those of the client of object stores.
SETTINGS = {
    "spark.hadoop.fs.s3a.endpoint": "aws_endpoint",
    "spark.hadoop.fs.s3a.endpoint.region": "aws_region",
    "spark.hadoop.fs.s3a.access.key": "aws_access_key_id",
    "spark.hadoop.fs.s3a.secret.key": "aws_secret_access_key",
    "spark.hadoop.fs.s3a.session.token": "aws_session_token",
}
PATH_STYLE = "spark.hadoop.fs.s3a.path.style.access"


class NoRecords(Exception):
    """The place cannot keep records; the message says why."""


class ObjectStore(NamedTuple):
    client: Any  # the library
    store: Any
    prefix: str


def open_store(url: str, settings: Mapping[str, str] | None = None, **more: Any) -> ObjectStore:
    """`more` goes to the client as it is."""
    scheme, _, rest = url.partition("://")
    if scheme not in SCHEMES:
        raise NoRecords(
            f"{url}: leases and states are kept in folders and at {', '.join(SCHEMES)}, not at {scheme}"
        )
    try:
        client: Any = import_module("obstore")
        stores: Any = import_module("obstore.store")
    except ImportError:
        raise NoRecords(f'{url}: a lake behind a URL needs pip install "barnabas[lake]"') from None
    root, _, prefix = rest.partition("/")
    options, connection = options_of(settings or {})
    address = f"{'s3' if scheme == 's3a' else scheme}://{root}"
    return ObjectStore(client, stores.from_url(address, client_options=connection, **options, **more), prefix)


def options_of(settings: Mapping[str, str]) -> tuple[dict[str, str], dict[str, Any]]:
    """Options of the store and of its HTTP client, from settings of Spark. What is missing comes from the
    environment, as for other clients of these stores."""
    found = {name: settings[given] for given, name in SETTINGS.items() if settings.get(given)}
    client: dict[str, Any] = {"timeout": "10s"}
    endpoint = found.get("aws_endpoint", "")
    if endpoint and "://" not in endpoint:
        found["aws_endpoint"] = f"https://{endpoint}"
    if endpoint.startswith("http://"):
        client["allow_http"] = True
    if settings.get(PATH_STYLE, "").lower() == "true" or endpoint:
        found["aws_virtual_hosted_style_request"] = "false"
    return found, client
