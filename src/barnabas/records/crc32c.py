"""CRC32C (Castagnoli), the checksum of record batches and of producer snapshots.

In: any bytes-like object (memoryviews are read without a copy). Out: an unsigned 32-bit integer.
The `crc32c` package computes it in hardware. Without the package, a table in Python is used.
Does not know: where the checksum of a batch is stored, which bytes it covers.
"""

import sys
from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import TypeAlias, cast

Buffer: TypeAlias = bytes | bytearray | memoryview
Crc32c: TypeAlias = Callable[[Buffer], int]

_POLYNOMIAL_REFLECTED = 0x82F63B78


def _table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ _POLYNOMIAL_REFLECTED if byte & 1 else byte >> 1
        table.append(byte)
    return table


def crc32c_by_table(data: Buffer) -> int:
    """Compute the checksum in pure Python, about a thousand times slower."""
    table = _table()
    crc = 0xFFFFFFFF
    for byte in bytes(data):
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def _extension() -> Crc32c | None:
    # The package's __init__ reads its own version with importlib.metadata, which takes longer than all other
    # imports before a broker's first response. So this loads only the compiled module.
    package = PathFinder.find_spec("crc32c")
    if package is None or package.submodule_search_locations is None:
        return None
    name = "crc32c._crc32c"
    if name not in sys.modules:
        spec = PathFinder.find_spec(name, package.submodule_search_locations)
        if spec is None or spec.loader is None:
            return None
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        sys.modules[name] = module
    return cast("Crc32c | None", getattr(sys.modules[name], "crc32c", None))


crc32c: Crc32c = _extension() or crc32c_by_table
