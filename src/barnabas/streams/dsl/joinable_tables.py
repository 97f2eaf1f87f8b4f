"""Joins of a table: their signatures, so that type checkers know what a joiner gets.

In: the other table, a joiner, and the foreign key where rows are joined by one. Out: the joined table. Does
not know: the nodes of joins (`table_joins` has them).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Literal, overload

from barnabas.plans import nodes as n
from barnabas.plans.type_variables import K2, V2, K, R, V
from barnabas.streams.dsl.graph import checked
from barnabas.streams.dsl.signatures import OfBoth, OfValue, WithKey
from barnabas.streams.serdes.formats import Form

if TYPE_CHECKING:
    from barnabas.streams.dsl.tables import KTable


class JoinableTable(Generic[K, V]):
    """The joins of `KTable`. With `with_key=True` a joiner gets the key first."""

    @overload
    def join(
        self,
        other: KTable[K, V2],
        joiner: OfBoth[V, V2, R],
        *,
        foreign_key: None = None,
        with_key: Literal[False] = False,
        value: Form[R] | str | None = None,
        store: str | None = None,
        name: str | None = None,
    ) -> KTable[K, R]: ...

    @overload
    def join(
        self,
        other: KTable[K, V2],
        joiner: WithKey[K, V, V2, R],
        *,
        foreign_key: None = None,
        with_key: Literal[True],
        value: Form[R] | str | None = None,
        store: str | None = None,
        name: str | None = None,
    ) -> KTable[K, R]: ...

    @overload
    def join(
        self,
        other: KTable[K2, V2],
        joiner: OfBoth[V, V2, R],
        *,
        foreign_key: OfValue[V, K2 | None],
        with_key: Literal[False] = False,
        value: Form[R] | str | None = None,
        store: str | None = None,
        name: str | None = None,
    ) -> KTable[K, R]: ...

    @overload
    def join(
        self,
        other: KTable[K2, V2],
        joiner: WithKey[K, V, V2, R],
        *,
        foreign_key: OfValue[V, K2 | None],
        with_key: Literal[True],
        value: Form[R] | str | None = None,
        store: str | None = None,
        name: str | None = None,
    ) -> KTable[K, R]: ...

    def join(self, other: Any, joiner: Any, *, foreign_key: Any = None, **more: Any) -> Any:
        """Join by key, or with the row whose key `foreign_key(value)` names."""
        return self._join(other, joiner, "inner", foreign_key, **more)

    @overload
    def left_join(
        self,
        other: KTable[K, V2],
        joiner: OfBoth[V, V2 | None, R],
        *,
        foreign_key: None = None,
        with_key: Literal[False] = False,
        value: Form[R] | str | None = None,
        store: str | None = None,
        name: str | None = None,
    ) -> KTable[K, R]: ...

    @overload
    def left_join(
        self,
        other: KTable[K, V2],
        joiner: WithKey[K, V, V2 | None, R],
        *,
        foreign_key: None = None,
        with_key: Literal[True],
        value: Form[R] | str | None = None,
        store: str | None = None,
        name: str | None = None,
    ) -> KTable[K, R]: ...

    @overload
    def left_join(
        self,
        other: KTable[K2, V2],
        joiner: OfBoth[V, V2 | None, R],
        *,
        foreign_key: OfValue[V, K2 | None],
        with_key: Literal[False] = False,
        value: Form[R] | str | None = None,
        store: str | None = None,
        name: str | None = None,
    ) -> KTable[K, R]: ...

    @overload
    def left_join(
        self,
        other: KTable[K2, V2],
        joiner: WithKey[K, V, V2 | None, R],
        *,
        foreign_key: OfValue[V, K2 | None],
        with_key: Literal[True],
        value: Form[R] | str | None = None,
        store: str | None = None,
        name: str | None = None,
    ) -> KTable[K, R]: ...

    def left_join(self, other: Any, joiner: Any, *, foreign_key: Any = None, **more: Any) -> Any:
        """As `join`; a row without a match comes with None on the right."""
        return self._join(other, joiner, "left", foreign_key, **more)

    @overload
    def outer_join(
        self,
        other: KTable[K, V2],
        joiner: OfBoth[V | None, V2 | None, R],
        *,
        with_key: Literal[False] = False,
        value: Form[R] | str | None = None,
        store: str | None = None,
        name: str | None = None,
    ) -> KTable[K, R]: ...

    @overload
    def outer_join(
        self,
        other: KTable[K, V2],
        joiner: WithKey[K, V | None, V2 | None, R],
        *,
        with_key: Literal[True],
        value: Form[R] | str | None = None,
        store: str | None = None,
        name: str | None = None,
    ) -> KTable[K, R]: ...

    def outer_join(self, other: Any, joiner: Any, **more: Any) -> Any:
        """Join by key; a row without a match comes with None on the other side."""
        return self._join(other, joiner, "outer", None, **more)

    def _join(self, other: Any, joiner: Any, kind: n.JoinKind, foreign_key: Any, **more: Any) -> Any:
        from barnabas.streams.dsl.table_joins import join_by_foreign_key, join_tables

        checked(joiner, "the joiner")
        if not hasattr(other, "to_stream"):
            raise TypeError(f"a table is joined with a table, not with {type(other).__name__}")
        if foreign_key is None:
            return join_tables(self, other, joiner, kind, **more)
        checked(foreign_key, "the foreign key")
        return join_by_foreign_key(self, other, foreign_key, joiner, kind, **more)
