"""Errors of the operating system in the words that a person should read."""

import errno
from os import strerror
from socket import gaierror
from ssl import SSLError

from barnabas.security.tls.failures import describe


def reason_of(error: BaseException) -> str:
    """The text of an OSError for a person: `connection refused` instead of errno and address."""
    if isinstance(error, SSLError):
        return describe(error, is_server=False)
    if isinstance(error, gaierror):
        return "the host name is not known"
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    if isinstance(error, OSError) and error.errno is not None and error.errno in errno.errorcode:
        return strerror(error.errno).lower()
    if "Multiple exceptions" in str(error) and "refused" in str(error):
        return "connection refused"  # asyncio's summary when a name has several addresses
    return str(error) or type(error).__name__
