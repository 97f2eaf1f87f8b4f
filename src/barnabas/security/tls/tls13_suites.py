"""The cipher suites of TLS 1.3 of a context, which Python can set only from 3.15 on.

Before, OpenSSL's own function is called (`SSL_CTX_set_ciphersuites`) with the pointer that CPython's context
holds behind its head. A listener with `ssl.cipher.suites` must use these suites and no others; without this
call it could only close connections that had chosen another one.
"""

from __future__ import annotations

import ctypes
import ssl
import sys
from collections.abc import Sequence

HEAD_BYTES = object.__basicsize__  # then comes `SSL_CTX *ctx`, in CPython 3.11 to 3.14


def set_suites(context: ssl.SSLContext, names: Sequence[str]) -> bool:
    """Allow these suites alone for TLS 1.3. Returns False if that is not possible here."""
    text = ":".join(names)
    if hasattr(context, "set_ciphersuites"):
        context.set_ciphersuites(text)
    elif sys.implementation.name == "cpython" and sys.version_info < (3, 15):
        import _ssl

        try:
            setter = ctypes.PyDLL(_ssl.__file__).SSL_CTX_set_ciphersuites
        except (AttributeError, OSError):
            return False
        setter.argtypes, setter.restype = [ctypes.c_void_p, ctypes.c_char_p], ctypes.c_int
        pointer = ctypes.c_void_p.from_address(id(context) + HEAD_BYTES)
        if setter(pointer, text.encode()) != 1:
            return False
    return {each["name"] for each in context.get_ciphers() if each["protocol"] == "TLSv1.3"} == set(names)
