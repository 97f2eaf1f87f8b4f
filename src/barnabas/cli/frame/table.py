"""Tables as Kafka's tools print them: each cell is as wide as its column and followed by a tab.

In: a header and rows of text. Out: lines.
"""

from collections.abc import Iterable, Sequence


def table_lines(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    every = [header, *rows]
    widths = [max(map(len, column)) for column in zip(*every, strict=True)]
    return ["".join(f"{cell:<{width}}\t" for cell, width in zip(row, widths, strict=True)) for row in every]
