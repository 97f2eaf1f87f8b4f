"""Joins of a stream: their signatures, so that type checkers know what a joiner gets.

In: the other stream, table or global table, a joiner, and windows where both are streams. Out: the joined
stream. Does not know: the nodes of joins (`joins` has them).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Literal, overload

from barnabas.plans import nodes as n
from barnabas.plans.type_variables import K2, V2, K, R, V
from barnabas.plans.windows import JoinWindows
from barnabas.streams.dsl.graph import checked
from barnabas.streams.dsl.signatures import OfBoth, WithKey
from barnabas.streams.serdes.formats import Form

if TYPE_CHECKING:
    from barnabas.streams.dsl.streams import KStream
    from barnabas.streams.dsl.tables import GlobalKTable, KTable


class JoinableStream(Generic[K, V]):
    """The joins of `KStream`. With `with_key=True` a joiner gets the key first."""

    @overload
    def join(
        self,
        other: KStream[K, V2],
        joiner: OfBoth[V, V2, R],
        windows: JoinWindows,
        *,
        with_key: Literal[False] = False,
        value: Form[R] | str | None = None,
        name: str | None = None,
    ) -> KStream[K, R]: ...

    @overload
    def join(
        self,
        other: KStream[K, V2],
        joiner: WithKey[K, V, V2, R],
        windows: JoinWindows,
        *,
        with_key: Literal[True],
        value: Form[R] | str | None = None,
        name: str | None = None,
    ) -> KStream[K, R]: ...

    @overload
    def join(
        self,
        other: KTable[K, V2],
        joiner: OfBoth[V, V2, R],
        *,
        grace_ms: int | None = None,
        with_key: Literal[False] = False,
        value: Form[R] | str | None = None,
        name: str | None = None,
    ) -> KStream[K, R]: ...

    @overload
    def join(
        self,
        other: KTable[K, V2],
        joiner: WithKey[K, V, V2, R],
        *,
        grace_ms: int | None = None,
        with_key: Literal[True],
        value: Form[R] | str | None = None,
        name: str | None = None,
    ) -> KStream[K, R]: ...

    @overload
    def join(
        self,
        other: GlobalKTable[K2, V2],
        joiner: OfBoth[V, V2, R],
        *,
        on: OfBoth[K, V, K2],
        with_key: Literal[False] = False,
        value: Form[R] | str | None = None,
        name: str | None = None,
    ) -> KStream[K, R]: ...

    @overload
    def join(
        self,
        other: GlobalKTable[K2, V2],
        joiner: WithKey[K, V, V2, R],
        *,
        on: OfBoth[K, V, K2],
        with_key: Literal[True],
        value: Form[R] | str | None = None,
        name: str | None = None,
    ) -> KStream[K, R]: ...

    def join(self, other: Any, joiner: Any, windows: JoinWindows | None = None, **more: Any) -> Any:
        """Pairs of records, or records with their row; others are left out."""
        return self._join(other, joiner, "inner", windows, **more)

    @overload
    def left_join(
        self,
        other: KStream[K, V2],
        joiner: OfBoth[V, V2 | None, R],
        windows: JoinWindows,
        *,
        with_key: Literal[False] = False,
        value: Form[R] | str | None = None,
        name: str | None = None,
        is_eager: bool = False,
    ) -> KStream[K, R]: ...

    @overload
    def left_join(
        self,
        other: KStream[K, V2],
        joiner: WithKey[K, V, V2 | None, R],
        windows: JoinWindows,
        *,
        with_key: Literal[True],
        value: Form[R] | str | None = None,
        name: str | None = None,
        is_eager: bool = False,
    ) -> KStream[K, R]: ...

    @overload
    def left_join(
        self,
        other: KTable[K, V2],
        joiner: OfBoth[V, V2 | None, R],
        *,
        grace_ms: int | None = None,
        with_key: Literal[False] = False,
        value: Form[R] | str | None = None,
        name: str | None = None,
    ) -> KStream[K, R]: ...

    @overload
    def left_join(
        self,
        other: KTable[K, V2],
        joiner: WithKey[K, V, V2 | None, R],
        *,
        grace_ms: int | None = None,
        with_key: Literal[True],
        value: Form[R] | str | None = None,
        name: str | None = None,
    ) -> KStream[K, R]: ...

    @overload
    def left_join(
        self,
        other: GlobalKTable[K2, V2],
        joiner: OfBoth[V, V2 | None, R],
        *,
        on: OfBoth[K, V, K2],
        with_key: Literal[False] = False,
        value: Form[R] | str | None = None,
        name: str | None = None,
    ) -> KStream[K, R]: ...

    @overload
    def left_join(
        self,
        other: GlobalKTable[K2, V2],
        joiner: WithKey[K, V, V2 | None, R],
        *,
        on: OfBoth[K, V, K2],
        with_key: Literal[True],
        value: Form[R] | str | None = None,
        name: str | None = None,
    ) -> KStream[K, R]: ...

    def left_join(self, other: Any, joiner: Any, windows: JoinWindows | None = None, **more: Any) -> Any:
        """As `join`; a record without a match comes with None on the right."""
        return self._join(other, joiner, "left", windows, **more)

    @overload
    def outer_join(
        self,
        other: KStream[K, V2],
        joiner: OfBoth[V | None, V2 | None, R],
        windows: JoinWindows,
        *,
        with_key: Literal[False] = False,
        value: Form[R] | str | None = None,
        name: str | None = None,
        is_eager: bool = False,
    ) -> KStream[K, R]: ...

    @overload
    def outer_join(
        self,
        other: KStream[K, V2],
        joiner: WithKey[K, V | None, V2 | None, R],
        windows: JoinWindows,
        *,
        with_key: Literal[True],
        value: Form[R] | str | None = None,
        name: str | None = None,
        is_eager: bool = False,
    ) -> KStream[K, R]: ...

    def outer_join(self, other: Any, joiner: Any, windows: JoinWindows | None = None, **more: Any) -> Any:
        """As `left_join` of streams; a right record without a match comes with None on the left."""
        return self._join(other, joiner, "outer", windows, **more)

    def _join(self, other: Any, joiner: Any, kind: n.JoinKind, windows: Any, **more: Any) -> Any:
        from barnabas.streams.dsl.joins import join_stream

        checked(joiner, "the joiner")
        return join_stream(self, other, joiner, kind, windows, **more)
