"""How inner loops are compiled, and the one thing that a loop over bytes does badly: copying many of them.

In: functions over numpy arrays. Out: the same functions compiled by numba, where it is installed, with the
machine's own copy of memory in place of slices; without numba they run as plain Python, slowly.
Does not know: records, Arrow, Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable

Function = TypeVar("Function", bound="Callable[..., Any]")


def copy_bytes(out: Any, out_at: int, data: Any, at: int, size: int) -> None:
    """`size` bytes of `data` into `out`. Who calls has checked that they lie within both."""
    out[out_at : out_at + size] = data[at : at + size]


try:
    from numba import njit
    from numba.core import cgutils, types
    from numba.extending import intrinsic, overload
except ImportError:  # pragma: no cover - the extra installs it

    def compiled(function: Function) -> Function:
        return function
else:

    def compiled(function: Function) -> Function:
        return cast("Function", njit(cache=True, nogil=True)(function))

    def _memcpy(typing_context: Any, out: Any, out_at: Any, data: Any, at: Any, size: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            def address(array: Any, kind: Any, index: Any) -> Any:
                start = context.make_array(kind)(context, builder, array).data
                return builder.gep(start, [index])

            target = address(arguments[0], signature.args[0], arguments[1])
            source = address(arguments[2], signature.args[2], arguments[3])
            raw_memcpy: Any = cgutils.raw_memcpy
            raw_memcpy(builder, target, source, arguments[4], 1)
            return context.get_dummy_value()

        return types.void(out, types.intp, data, types.intp, types.intp), generate

    memcpy: Any = intrinsic(_memcpy)

    @overload(copy_bytes)
    def _copy_bytes(out: Any, out_at: int, data: Any, at: int, size: int) -> Any:
        def copy(out: Any, out_at: int, data: Any, at: int, size: int) -> Any:
            memcpy(out, out_at, data, at, size)

        return copy
